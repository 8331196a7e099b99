"""A client that is not ours, npm's MCP inspector, plays the whole scene over both transports.

`scripts/inspector` installs it, pinned with hashes; where it is not installed, these tests skip by its name.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import inspector
from pcpd.mcp_server.answers import DATA_NOTE
from pcpd.mcp_server.tools import BY_NAME
from tests.conftest import World
from tests.mcp_server.scene import SECRET, Stage, calls, staged

LONGEST_S = 60
pytestmark = pytest.mark.needs("inspector")


@pytest.fixture
def stage(world: World) -> Iterator[Stage]:
    """A vault, its owner and an agent's credential."""
    with staged(world) as made:
        yield made


class Foreign:
    """The inspector's command line: each call is a client's whole life."""

    def __init__(self, stage: Stage, transport: str, era: str) -> None:
        arguments, env = stage.stdio
        passed = [
            f"{name}={value}" for name, value in env.items() if name.startswith(("XDG_", "PCPD_", "PYTHON"))
        ]
        self._target = (
            [sys.executable, *arguments, *(word for pair in passed for word in ("-e", pair))]
            if transport == "stdio"
            else [stage.url, "--transport", "http", "--header", f"Authorization: Bearer {stage.token}"]
        )
        self._env, self._era = env, era

    def ask(self, method: str, *options: str) -> Any:
        """Asks one thing; gives the result, which must be nothing but JSON."""
        command = [*(inspector.command() or []), *self._target, "--quiet", "--protocol-era", self._era]
        done = subprocess.run(
            [*command, "--method", method, *options],
            env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (method, options, done.stdout, done.stderr)
        assert SECRET not in done.stdout
        return json.loads(done.stdout)

    def call(self, tool: str, arguments: Any) -> Any:
        """Calls a tool that must succeed; gives its answer as data."""
        said = self.ask("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        assert not said.get("isError"), (tool, said)
        return said["structuredContent"]


def parted(scene: list[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """The calls before the first one that changes something, which may be made at once, and the rest."""
    first = next(number for number, (name, _) in enumerate(scene) if not BY_NAME[name].effect.reads_only)
    return scene[:first], scene[first:]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_foreign_client_does_all_that_there_is(stage: Stage, transport: str) -> None:
    """It calls every tool, reads a page and the profile, and gets each prompt, with the handshake."""
    foreign = Foreign(stage, transport, "legacy")
    listed = {tool["name"] for tool in foreign.ask("tools/list", "--strict")["tools"]}
    reading, changing = parted(calls("foreign"))
    with ThreadPoolExecutor(2) as two:
        list(two.map(foreign.call, *zip(*reading, strict=True)))
    version = ""
    for name, arguments in changing:
        given = {**arguments, "if_version": version} if name == "remove_page" else arguments
        version = foreign.call(name, given).get("version") or version
    assert {name for name, _ in (*reading, *changing)} == listed
    has_resources_and_prompts(foreign)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_foreign_client_needs_no_handshake(stage: Stage, transport: str) -> None:
    """The same in the protocol's later era, for one tool."""
    foreign = Foreign(stage, transport, "modern")
    assert foreign.call("search_memory", {"query": "heat"})["total"] == 2
    has_resources_and_prompts(foreign)


def has_resources_and_prompts(foreign: Foreign) -> None:
    """Lists, reads and gets what there is beside tools."""
    uris = {each["uri"] for each in foreign.ask("resources/list")["resources"]}
    assert {"pcp://profile", "pcp://page/boiler", "pcp://page/a%20b%23c%3Fd%2541%20%C3%BC"} <= uris
    (template,) = foreign.ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "pcp://page/{+path}"
    for uri in ("pcp://page/a%20b%23c%3Fd%2541%20%C3%BC", "pcp://profile"):
        page, note = foreign.ask("resources/read", "--uri", uri)["contents"]
        assert page["mimeType"] == "text/markdown"
        assert DATA_NOTE in note["text"]
    prompts = {each["name"] for each in foreign.ask("prompts/list")["prompts"]}
    assert prompts == {"recall", "remember", "consolidate"}
    got = foreign.ask("prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=heat")
    assert "house/roof" in json.dumps(got)

"""`pcpd connect` before a real owner: what a person reads, what scripts get, and a client that then works."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import World

PAGES = {
    "boiler.md": "---\ntitle: Boiler\n---\nGas or heat pump?\n",
    "diary.md": "---\nsensitivity: sensitive\n---\nThe heat of shame.\n",
    "plan.md": "---\npartition: work\n---\nHeat.\n",
}
TOKEN = re.compile(r"pcp_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def vault(world: World) -> Path:
    """A vault with a page that an agent gets and two that it does not."""
    root = world.home / "my notes"
    root.mkdir()
    for file, text in PAGES.items():
        root.joinpath(file).write_text(text)
    world.pcpd("init", root)
    return root


def connect(
    world: World, vault: Path, *arguments: str | Path, check: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Runs `pcpd connect`; no token may be in what it prints."""
    done = world.pcpd("--vault", vault, "connect", *arguments, check=check)
    assert not TOKEN.search(done.stdout + done.stderr)
    return done


def told(world: World, vault: Path, *arguments: str) -> Any:
    """What a command says in JSON."""
    return json.loads(world.pcpd("--vault", vault, *arguments, "--json").stdout)


def started(world: World, entry: Any) -> StdioServerParameters:
    """The server as a client starts it: with the entry's environment, and little of its own."""
    own = {name: world.env[name] for name in ("PATH", "HOME", "PCPD_TESTS_WORLD")}
    return StdioServerParameters(command=entry["command"], args=entry["args"], env={**own, **entry["env"]})


def test_one_command_connects_a_client_and_what_it_did_can_be_seen(world: World, vault: Path) -> None:
    """The entry that was written is started as the client would, finds what was granted, and is in the trail."""
    file = world.home / ".cursor" / "mcp.json"
    done = json.loads(connect(world, vault, "cursor", "--yes", "--json").stdout)
    assert (done["config"], done["principal"]) == (str(file), "agent:cursor")
    assert file.stat().st_mode & 0o777 == 0o600
    entry = json.loads(file.read_text())["mcpServers"]["pcpd"]

    async def work() -> None:
        async with Client(stdio_client(started(world, entry))) as client:
            found = await client.call_tool("search_memory", {"query": "heat"})
            assert found.structured_content
            assert [hit["path"] for hit in found.structured_content["results"]] == ["boiler"]
            written = await client.call_tool("write_page", {"path": "x", "content": "y"})
            assert written.structured_content
            assert written.structured_content["outcome"] == "proposed"

    asyncio.run(asyncio.wait_for(work(), 120))
    rows = told(world, vault, "audit")["rows"]
    assert [
        (row["principal"], row["action"], row["outcome"])
        for row in rows
        if row["principal"] == "agent:cursor"
    ] == [
        ("agent:cursor", "propose", "ok"),
        ("agent:cursor", "search_memory", "ok"),
    ]
    (listed,) = [row for row in told(world, vault, "connect")["clients"] if row["client"] == "cursor"]
    assert (listed["state"], listed["principal"]) == ("connected", "agent:cursor")
    assert listed["last_used"].endswith("Z")


def test_scripts_get_read_and_propose_in_the_default_partition(world: World, vault: Path) -> None:
    """Fixed: the three types and the profile, normal; one JSON document, without the token."""
    file = world.home / "config.json"
    done = connect(world, vault, "claude-desktop", "--yes", "--config", file, "--json")
    said = json.loads(done.stdout)
    assert done.stderr == ""
    assert set(said) >= {"client", "principal", "granted", "config", "backup", "token_id", "next"}
    assert said["token_id"].startswith("tok_")
    (grant,) = told(world, vault, "grant")["grants"]
    assert grant == said["granted"] == {
        "principal": "agent:claude-desktop",
        "partitions": ["personal"],
        "categories": ["semantic", "episodic", "procedural", "profile"],
        "rights": ["read", "propose"],
        "sensitivity": "normal",
    }  # fmt: skip
    assert TOKEN.search(file.read_text())


def test_more_is_given_only_when_asked_for(world: World, vault: Path) -> None:
    """Writing and conversations by their options; any grant as `pcpd grant` takes it."""
    connect(
        world,
        vault,
        "zed",
        "--yes",
        "--write",
        "--conversations",
        "--partitions",
        "work",
        "--until",
        "2030-01-01",
    )
    (grant,) = told(world, vault, "grant")["grants"]
    assert grant["rights"] == ["read", "write"]
    assert "conversation" in grant["categories"]
    assert (grant["partitions"], grant["until"]) == (["work"], "2030-01-01T00:00:00Z")
    assert (
        "pcpd" in json.loads((world.home / "config" / "zed" / "settings.json").read_text())["context_servers"]
    )
    refused = connect(world, vault, "zed", "--yes", "--write", "--rights", "read", check=False)
    assert refused.returncode == 2


def test_without_a_terminal_nothing_is_agreed_to(world: World, vault: Path) -> None:
    """It refuses, changes nothing, and says how to see and how to agree."""
    refused = connect(world, vault, "cursor", check=False)
    assert refused.returncode == 2
    assert "--dry-run" in refused.stderr
    assert not (world.home / ".cursor").exists()
    assert told(world, vault, "grant")["grants"] == []
    assert told(world, vault, "token", "list")["tokens"] == []


def at_terminal(world: World, vault: Path, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Runs `pcpd connect` at a terminal and answers its question; gives its status and what was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pcpd", "--vault", vault, "connect", *arguments],
        env=dict(world.env), cwd=world.home, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"Connect? [y/N]" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, answer)
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    os.close(ours)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"\x04"], ids=["enter", "no", "end"])
def test_no_is_what_counts_unless_the_person_says_yes(world: World, vault: Path, answer: bytes) -> None:
    """Enter alone is a no; so is the end of input."""
    status, shown = at_terminal(world, vault, answer, "cursor")
    assert status == (130 if answer == b"\x04" else 5)
    assert "read every page in the partition personal" in shown
    assert not (world.home / ".cursor").exists()
    assert told(world, vault, "grant")["grants"] == []


def test_the_person_reads_what_the_agent_would_get_and_says_yes(world: World, vault: Path) -> None:
    """Pages by count and example, what stays closed, the file and the entry; the token is not shown."""
    status, shown = at_terminal(world, vault, b"y\n", "cursor")
    assert status == 0
    for said in (
        "Cursor would come to the vault",
        "1 page now, such as “Boiler”",
        "conversations: 2 pages now",
        "wait until you approve them: pcpd review",
        f"A new file, for you alone: {world.home}/.cursor/mcp.json",
        '"PCPD_TOKEN": "a token of its own, not shown here"',
        "Next: restart Cursor",
        "pcpd connect cursor --undo",
    ):
        assert said in shown, said
    assert not TOKEN.search(shown)
    assert told(world, vault, "grant")["grants"]


def test_in_a_vault_without_review_proposing_is_said_to_come_to_nothing(world: World) -> None:
    """The words follow the features in context.yaml."""
    root = world.home / "plain"
    world.pcpd("init", root, "--no-review")
    shown = connect(world, root, "cursor", "--dry-run").stderr
    assert "nobody reviews here" in shown
    assert "takes none yet" not in shown


def test_a_dry_run_shows_and_changes_nothing(world: World, vault: Path) -> None:
    """In words, or as one JSON document."""
    said = json.loads(connect(world, vault, "cursor", "--dry-run", "--json").stdout)
    assert (said["grant"]["rights"], said["pages"]) == (["read", "propose"], 1)
    assert not (world.home / ".cursor").exists()
    assert told(world, vault, "grant")["grants"] == []


def test_a_slip_of_the_pen_is_told_before_and_after(world: World, vault: Path) -> None:
    """A partition that nothing knows: by connect and by grant, in words and in JSON. A day that is over: refused."""
    slip, told_json = ("--rights", "read", "--partitions", "wrok"), []
    told_json += json.loads(connect(world, vault, "cursor", "--dry-run", *slip, "--json").stdout)["warnings"]
    for shown in (
        connect(world, vault, "cursor", "--dry-run", *slip).stderr,
        world.pcpd("--vault", vault, "grant", "agent:a", *slip).stderr,
        " ".join(told_json),
        *told(world, vault, "grant", "agent:a", *slip)["warnings"],
    ):
        assert "did you mean work?" in shown
    over = ("--until", "2020-01-01", "--json")
    assert "consent.until-past" in connect(world, vault, "cursor", "--yes", *over, check=False).stderr
    refused = world.pcpd("--vault", vault, "grant", "agent:b", "--rights", "read", *over, check=False)
    assert "consent.until-past" in refused.stderr


def test_undo_gives_the_file_its_bytes_and_the_agent_nothing(world: World, vault: Path) -> None:
    """And says what it took back; a second one says that there is nothing."""
    file = world.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    before = b'\xef\xbb\xbf{\r\n\t"mcpServers": {}, // none yet\r\n}\r\n'
    file.write_bytes(before)
    connect(world, vault, "cursor", "--yes")
    assert file.read_bytes() != before
    done = json.loads(connect(world, vault, "cursor", "--undo", "--json").stdout)
    assert (done["tokens"], done["grants"], done["entry_removed"]) == (1, 1, True)
    assert file.read_bytes() == before
    again = connect(world, vault, "cursor", "--undo", check=False)
    assert again.returncode == 4
    assert "connect.absent" in connect(world, vault, "cursor", "--undo", "--json", check=False).stderr


def test_a_client_that_is_not_known_gets_a_file_to_copy_from(world: World, vault: Path) -> None:
    """Beside the vault's state, for its owner alone; the token is in it, and nowhere on the screen."""
    done = json.loads(connect(world, vault, "other", "--principal", "agent:mine/2", "--yes", "--json").stdout)
    file = Path(done["config"])
    assert file.is_relative_to(world.home / "state")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["mcpServers"]["pcpd"]["env"]["PCPD_TOKEN"].startswith("pcp_")
    unknown = connect(world, vault, "claud", "--yes", check=False)
    assert unknown.returncode == 2
    assert "claude-desktop" in unknown.stderr


def test_a_broken_access_file_is_shown_before_anything_is_asked(world: World, vault: Path) -> None:
    """By connect and by grant alike; nothing comes into force, and nothing is written."""
    world.pcpd("--vault", vault, "grant", "agent:a", "--rights", "read")
    (access,) = (world.home / "config" / "pcpd").rglob("access.yaml")
    access.write_text("grants:\n  - {principal: agent:cursor, rights: all}\n")
    refused = connect(world, vault, "cursor", "--yes", check=False)
    assert refused.returncode == 1
    assert "line 2" in refused.stderr
    assert not (world.home / ".cursor").exists()
    again = world.pcpd("--vault", vault, "grant", "agent:b", "--rights", "read", check=False)
    assert "line 2" in again.stderr
    listed = world.pcpd("--vault", vault, "grant")
    assert "the last good one stays in force" in listed.stderr
    assert "agent:a" in listed.stdout


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_a_client_without_a_credential_hears_of_pcpd_connect(world: World, vault: Path, mode: str) -> None:
    """Without a token, and with one that was revoked: the session begins, and says what the person can do."""
    connect(world, vault, "cursor", "--yes")
    entry = json.loads((world.home / ".cursor" / "mcp.json").read_text())["mcpServers"]["pcpd"]
    connect(world, vault, "cursor", "--undo")

    async def hear(variables: dict[str, str]) -> None:
        parameters = started(world, {**entry, "env": variables})
        async with Client(stdio_client(parameters), mode=mode) as client:
            (tool,) = (await client.list_tools()).tools
            assert "pcpd connect" in str(tool.description)
            answer = await client.call_tool(tool.name, {})
            assert answer.is_error
            assert "pcpd connect" in str(answer.content)

    for token in (entry["env"]["PCPD_TOKEN"], ""):
        asyncio.run(asyncio.wait_for(hear({**entry["env"], "PCPD_TOKEN": token}), 120))


def test_the_entry_for_a_client_can_be_printed_for_those_who_put_it_in_by_hand(
    world: World, vault: Path
) -> None:
    """In each client's form, with a placeholder for the token."""
    said = told(world, vault, "mcp", "config", "--principal", "agent:v", "--client", "vscode")
    assert said["servers"]["pcpd"]["type"] == "stdio"
    assert "pcpd token create" in said["servers"]["pcpd"]["env"]["PCPD_TOKEN"]
    assert list(told(world, vault, "mcp", "config", "--principal", "agent:v")) == ["mcpServers"]

"""One scene that every client plays, whatever the transport and the protocol's era: each tool, resources, prompts."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcpd.mcp_server.tools import TOOLS
from tests.conftest import World

DRAFT = "---\nreview: {state: proposed}\n---\nNobody has looked at this.\n"
PAGES = {
    "boiler.md": "---\ntitle: Boiler\ntags: [heat]\n---\n# Boiler\n\nGas or heat pump? See [[house/roof]].\n",
    "house/roof.md": "The roof leaks where the heat pump stands.\n",
    "me.md": "Sam likes short answers.\n",
    "a b#c?d%41 ü.md": "A page with a name of its own.\n",
    **{f"drafts/{mark}.md": DRAFT for mark in ("page0", "page1", "page2", "foreign")},
    "secret.md": "---\npartition: work\n---\nThe heat of the secret.\n",
}
ODD = "a b#c?d%41 ü"
SECRET = "The heat of the secret"


@dataclass(frozen=True)
class Stage:
    """A vault with an owner, and an agent's credential for it."""

    world: World
    vault: Path
    token: str
    url: str
    owner: "subprocess.Popen[str]"

    @property
    def stdio(self) -> tuple[list[str], dict[str, str]]:
        """The arguments of `pcpd` that a client starts, and what it sees of the environment."""
        arguments = ["-m", "pcpd", "--vault", str(self.vault), "mcp", "--principal", "agent:claude"]
        return arguments, {**self.world.env, "PCPD_TOKEN": self.token}

    def save(self, file: str, text: str) -> None:
        """Writes a page as an editor does."""
        draft = self.vault / f".{Path(file).name}.tmp"
        draft.write_text(text)
        draft.rename(self.vault / file)

    def kill(self) -> None:
        """Kills the owner, which cannot say good-bye."""
        self.owner.kill()
        self.owner.wait()


@contextmanager
def staged(world: World) -> Iterator[Stage]:
    """A vault with pages, an owner that serves it, and an agent that may do all with all but one page."""
    vault = world.home / "vault"
    vault.mkdir()
    for file, text in PAGES.items():
        vault.joinpath(file).parent.mkdir(exist_ok=True)
        vault.joinpath(file).write_text(text)
    world.pcpd("init", vault)
    context = vault / ".pcp/context.yaml"
    context.write_text(context.read_text() + "profile: me\n")
    owner = world.start("--vault", vault, "run")
    try:
        assert owner.stderr is not None
        url = owner.stderr.readline().removeprefix("ready ").strip()
        made = world.pcpd("--vault", vault, "token", "create", "--principal", "agent:claude", "--json")
        world.pcpd("--vault", vault, "grant", "agent:claude", "--rights", "read,write,review")
        yield Stage(world, vault, json.loads(made.stdout)["token"], f"{url}/mcp", owner)
    finally:
        owner.terminate()
        owner.communicate(timeout=60)


def calls(mark: str) -> list[tuple[str, dict[str, Any]]]:
    """One good call of every tool, in an order in which each finds what it needs; pages are named after `mark`.

    `remove_page` needs the version of the page `{mark}/moved`: its caller fills it in.
    """
    path = f"notes/{mark}"
    found: list[tuple[str, dict[str, Any]]] = [
        ("describe_context", {}),
        ("search_memory", {"query": "heat"}),
        ("search", {"query": "heat"}),
        ("fetch", {"id": "boiler"}),
        ("list_pages", {"folder": "house"}),
        ("recent_pages", {"limit": 5}),
        ("read_page", {"path": "boiler"}),
        ("page_links", {"path": "boiler"}),
        ("page_history", {"path": "boiler"}),
        ("write_page", {"path": path, "content": "Heat.", "tags": '["heat", "x"]'}),
        ("edit_page", {"path": path, "op": "append", "content": "More heat."}),
        ("move_page", {"path": path, "to": f"{path}-moved"}),
        ("read_page", {"path": f"{path}-moved"}),
        ("remove_page", {"path": f"{path}-moved", "if_version": "?"}),
        ("list_proposals", {}),
        ("review_proposal", {"id": f"drafts/{mark}", "decision": "reject", "reason": "Heat enough."}),
    ]
    assert {tool.name for tool in TOOLS} == {name for name, _ in found}
    return found

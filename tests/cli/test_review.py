"""`pcpd review` before a real owner: what the person sees, decides, and what the other doors say of the same."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import World

BOILER = "# Boiler\n\nGas or heat pump?\n\nAsk Adler.\n"
HOSTILE = "\x1b[2J\x1b]0;gone\x07 \u202egnp 漢字の提案 \r[2K"


@dataclass(frozen=True)
class Desk:
    """A vault with an owner, an agent that may only propose, and one that may review."""

    world: World
    vault: Path
    url: str
    proposer: str
    reviewer: str

    def pcpd(self, *arguments: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Runs a command on the vault."""
        return self.world.pcpd("--vault", self.vault, *arguments, check=check)

    def told(self, *arguments: str) -> Any:
        """What a command says in JSON."""
        return json.loads(self.pcpd(*arguments, "--json").stdout)

    def ask(self, token: str, method: str, route: str, body: Any = None) -> tuple[int, Any]:
        """Asks the API as an agent."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = "text/markdown" if isinstance(body, bytes) else "application/json"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        where = f"{self.url}/vault/v1/{route}"
        request = urllib.request.Request(where, data, headers, method=method)  # noqa: S310 - our own owner
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def propose(self, path: str, text: str) -> str:
        """Proposes a new page; gives its id."""
        status, said = self.ask(self.proposer, "PUT", f"pages/{path}", text.encode())
        assert (status, said["outcome"]) == (202, "proposed"), said
        return path

    def propose_edit(self, old: str, new: str) -> str:
        """Proposes a change of the page boiler; gives its id."""
        edits = [{"op": "replace_text", "where": old, "value": new}]
        status, said = self.ask(self.proposer, "PATCH", "pages/boiler", {"edits": edits})
        assert (status, said["outcome"]) == (202, "proposed"), said
        return str(said["proposal"])

    def page(self, path: str) -> str:
        """A page's text on disk."""
        return self.vault.joinpath(f"{path}.md").read_text()


@pytest.fixture
def desk(world: World) -> Iterator[Desk]:
    """The scene of these tests."""
    vault = world.home / "vault"
    vault.mkdir()
    vault.joinpath("boiler.md").write_text(BOILER)
    world.pcpd("init", vault)
    owner = world.start("--vault", vault, "run")
    assert owner.stderr is not None
    url = owner.stderr.readline().removeprefix("ready ").strip()
    tokens = []
    for name, rights in (("proposer", "read,propose"), ("reviewer", "read,review")):
        made = world.pcpd("--vault", vault, "token", "create", "--principal", f"agent:{name}", "--json")
        tokens.append(json.loads(made.stdout)["token"])
        world.pcpd("--vault", vault, "grant", f"agent:{name}", "--rights", rights)
    yield Desk(world, vault, url, *tokens)
    owner.terminate()
    owner.communicate(timeout=60)


def test_scripts_list_show_approve_and_reject(desk: Desk) -> None:
    """By id, by its beginning, by the page's path; the statuses say what came of it."""
    assert "0 proposals" in desk.pcpd("review").stderr
    change = desk.propose_edit("Gas or heat pump?", "A heat pump.")
    new, other = desk.propose("notes/pump", "# Pump\n\nNew.\n"), desk.propose("notes/other", "Other.\n")
    assert "3 proposals waiting for you" in desk.pcpd("status").stdout
    listed = desk.pcpd("review")
    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    assert sorted((row[1], row[2], row[3], row[5]) for row in rows) == [
        ("change", "boiler", "agent:proposer", "open"),
        ("new", "notes/other", "agent:proposer", "open"),
        ("new", "notes/pump", "agent:proposer", "open"),
    ]
    assert "[-Gas or-]{+A+} heat pump[-?-]{+.+}" in desk.pcpd("review", "show", change[:6]).stdout
    assert desk.told("review", "show", "boiler")["waiting"]["id"] == change
    assert desk.pcpd("review", "approve", "boiler").stderr == "Approved: boiler\n"
    assert "A heat pump." in desk.page("boiler")
    done = desk.told("review", "reject", "notes/pump", "--reason", "Not so.")
    assert [(each["id"], each["outcome"]) for each in done["decided"]] == [(new, "rejected")]
    (rejected,) = desk.told("review", "--rejected")["items"]
    assert (rejected["id"], rejected["reason"]) == (new, "Not so.")
    status, said = desk.ask(desk.proposer, "PUT", "pages/notes/pump", b"# Pump\n\nNew.\n")
    assert (status, said["code"]) == (403, "proposal.rejected")
    nothing = desk.pcpd("review", "approve", "no/such", check=False)
    assert nothing.returncode == 4
    assert [each["id"] for each in desk.told("review")["items"]] == [other]


def test_many_are_approved_at_once_as_far_as_they_are_named(desk: Desk) -> None:
    """By who proposed them, and below a folder; without a choice nothing is decided."""
    for path in ("notes/a", "notes/b", "house/c"):
        desk.propose(path, f"{path}\n")
    assert desk.pcpd("review", "approve", check=False).returncode == 2
    assert desk.pcpd("review", "approve", "notes/a", "--all", check=False).returncode == 2
    assert desk.told("review", "approve", "--all", "--by", "agent:else")["decided"] == []
    done = desk.told("review", "approve", "--all", "--by", "agent:proposer", "--page-under", "notes/")
    assert sorted(each["path"] for each in done["decided"]) == ["notes/a", "notes/b"]
    assert desk.told("review", "approve", "--all")["decided"][0]["path"] == "house/c"
    assert "state: approved" in desk.page("house/c")


def test_what_conflicts_waits_shows_both_sides_and_takes_the_persons_text(desk: Desk) -> None:
    """The status is 6, and nothing was changed; `edit --file` decides it."""
    id_ = desk.propose_edit("Gas or heat pump?", "A heat pump.")
    desk.pcpd("edit", "boiler", "--replace", "Gas or heat pump?", "Gas, again.")
    refused = desk.pcpd("review", "approve", id_, check=False)
    assert refused.returncode == 6
    assert "Gas, again." in desk.page("boiler")
    shown = desk.pcpd("review", "show", id_).stdout
    assert "conflict" in shown
    assert "Gas, again." in shown
    assert "A heat pump." in shown
    file = desk.world.home / "text.md"
    file.write_text("# Boiler\n\nBoth.\n")
    done = desk.told("review", "edit", id_, "--file", str(file))
    assert done["decided"][0]["outcome"] == "approved"
    assert "Both." in desk.page("boiler")
    assert desk.told("review")["items"] == []


def test_the_three_doors_say_the_same(desk: Desk) -> None:
    """Queue, proposal and digest over the command line, the API and MCP; and one decision ends it for all."""
    desk.propose("notes/new", "漢字の提案\n")
    id_ = desk.propose_edit("Gas or heat pump?", "A heat pump.")
    mine, shown = desk.told("review")["items"], desk.told("review", "show", id_)
    assert desk.ask(desk.reviewer, "GET", "proposals") == (200, {"items": mine, "total": 2, "cursor": None})
    assert desk.ask(desk.reviewer, "GET", f"proposals/{id_}") == (200, shown)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pcpd", "--vault", str(desk.vault), "mcp", "--principal", "agent:reviewer"],
        env={**desk.world.env, "PCPD_TOKEN": desk.reviewer},
    )

    async def work() -> None:
        async with Client(stdio_client(server)) as client:
            listed = (await client.call_tool("list_proposals", {})).structured_content
            assert listed
            assert [(row["id"], row["by"], row["summary"]) for row in listed["proposals"]] == [
                (item["id"], item["by"], item["summary"]) for item in mine
            ]
            one = (await client.call_tool("list_proposals", {"id": id_})).structured_content
            assert one
            assert one["digest"] == shown["digest"]
            decided = {"id": id_, "decision": "approve", "if_digest": one["digest"]}
            assert not (await client.call_tool("review_proposal", decided)).is_error
            again = await client.call_tool("review_proposal", decided)
            assert again.is_error

    asyncio.run(asyncio.wait_for(work(), 120))
    assert "A heat pump." in desk.page("boiler")
    assert "verified: [" in desk.page("boiler") or "verified:" in desk.page("boiler")
    status, said = desk.ask(desk.reviewer, "POST", f"proposals/{id_}", {"decision": "approve"})
    assert (status, said["code"]) == (404, "proposal.not-found")
    assert desk.pcpd("review", "approve", id_, check=False).returncode == 4
    status, said = desk.ask(desk.proposer, "GET", "proposals")
    assert (status, said["total"], said["items"]) == (200, 0, [])


def test_what_a_proposal_says_steers_no_terminal(desk: Desk) -> None:
    """Escapes, marks that turn text around, megabytes: shown as what they are."""
    desk.propose("evil", f"# {HOSTILE}\n\n{HOSTILE}\n")
    desk.propose("huge", "word " * 400_000)
    for arguments in (("review",), ("review", "show", "evil"), ("review", "show", "huge")):
        done = desk.pcpd(*arguments)
        for bad in ("\x1b", "\x07", "\u202e", "\r"):
            assert bad not in done.stdout + done.stderr
    assert "漢字の提案" in desk.pcpd("review", "show", "evil").stdout
    assert "2,000,000 characters" in desk.pcpd("review", "show", "huge").stdout
    status, shown = at_terminal(desk, [(b"[a/e/r/s/q]", b"s"), (b"[a/e/r/s/q]", b"q")], "review", "next")
    assert status == 0
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
    assert "\u202e" not in shown


def at_terminal(
    desk: Desk, talk: "list[tuple[bytes, bytes]]", *arguments: str, editor: str = "false"
) -> tuple[int, str]:
    """Runs a command at a terminal: waits for each text in turn, and types what belongs to it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pcpd", "--vault", str(desk.vault), *arguments],
        env={**desk.world.env, "TERM": "xterm-256color", "EDITOR": editor},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown, heard = b"", b""
    for wanted, typed in talk:
        while wanted not in heard:
            piece = os.read(ours, 4096)
            shown, heard = shown + piece, heard + piece
        heard = heard.partition(wanted)[2]
        os.write(ours, typed)
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    os.close(ours)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


ASKED = b"[a/e/r/s/q]"


def test_a_person_goes_through_them_key_by_key(desk: Desk) -> None:
    """Skip, another key, edit, reject with a reason, approve: each does what it says, in colour."""
    change = desk.propose_edit("Gas or heat pump?", "A heat pump.")
    for path in ("x", "y", "z"):  # behind every id
        desk.propose(path, f"Page {path}.\n")
    editor = desk.world.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "Edited.\\n" > "$1"\n')
    editor.chmod(0o755)
    talk = [(ASKED, b"s"), (ASKED, b"x"), (ASKED, b"e"), (ASKED, b"r"), (b"Why", b"No.\r"), (ASKED, b"a")]
    status, shown = at_terminal(desk, talk, "review", "next", editor=str(editor))
    assert status == 0, shown
    assert "\x1b[31mGas or" in shown
    assert "[-" not in shown
    assert "a approve, e edit and approve" in shown
    assert "3 proposals decided, 1 still waiting." in shown
    assert "Edited." in desk.page("x")
    assert "No." in desk.page("y")
    assert "state: rejected" in desk.page("y")
    assert "state: approved" in desk.page("z")
    assert [each["id"] for each in desk.told("review")["items"]] == [change]


def test_what_changes_while_it_is_looked_at_is_not_approved(desk: Desk) -> None:
    """The person decides what they saw: it is told, it waits, and the status is 6; the end of input quits."""
    id_ = desk.propose_edit("Gas or heat pump?", "A heat pump.")
    editor = desk.world.home / "editor"
    editor.write_text(
        f'#!/bin/sh\nprintf "\\nLate.\\n" >> "{desk.vault}/boiler.md"\nprintf "Mine.\\n" > "$1"\n'
    )
    editor.chmod(0o755)
    status, shown = at_terminal(desk, [(ASKED, b"e")], "review", "next", editor=str(editor))
    assert status == 6, shown
    assert "your text is kept in" in shown
    assert "Mine." not in desk.page("boiler")
    assert [each["id"] for each in desk.told("review")["items"]] == [id_]
    assert at_terminal(desk, [(ASKED, b"\x04")], "review", "--interactive")[0] == 0
    assert at_terminal(desk, [(ASKED, b"\x03")], "review", "next")[0] == 130
    assert at_terminal(desk, [(ASKED, b"a")], "review", "next")[0] == 0
    assert "A heat pump." in desk.page("boiler")
    assert "Late." in desk.page("boiler")


def test_nobody_is_asked_where_there_is_no_terminal(desk: Desk) -> None:
    """Scripts are told what to use instead."""
    desk.propose("a", "A.\n")
    for arguments in (("review", "next"), ("review", "edit", "a"), ("review", "--interactive", "--json")):
        done = desk.pcpd(*arguments, check=False)
        assert (done.returncode, "no terminal" in done.stderr or "--json" in done.stderr) == (2, True)

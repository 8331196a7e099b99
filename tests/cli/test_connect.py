"""`pcpd connect` before a real owner: what a person reads, what scripts get, and a client that then works."""

import asyncio
import json
import os
import pty
import re
import signal
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
STOP = b"\x03"
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


def at_terminal(
    world: World, vault: Path, answer: bytes | None, *arguments: str, **env: str
) -> tuple[int, str]:
    """Runs `pcpd connect` at a terminal and answers its question; gives its status and what was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pcpd", "--vault", vault, "connect", *arguments],
        env={**world.env, **env}, cwd=world.home, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while answer and b"Connect? [y/N]" not in shown:
        shown += os.read(ours, 4096)
    if answer == STOP:
        process.send_signal(signal.SIGINT)
    else:
        os.write(ours, answer or b"")
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    os.close(ours)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"\x04", STOP], ids=["enter", "no", "end", "stop"])
def test_no_is_what_counts_unless_the_person_says_yes(world: World, vault: Path, answer: bytes) -> None:
    """Enter alone is a no; so is the end of input."""
    status, shown = at_terminal(world, vault, answer, "cursor")
    assert status == (130 if answer in {b"\x04", STOP} else 5)
    assert shown.endswith("\nNothing was changed.\n")
    assert "error" not in shown
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
        "connect cursor --undo",
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
    assert "did you mean claude-desktop or claude-code?" in unknown.stderr
    assert "did you mean cursor?" in connect(world, vault, "curser", "--yes", check=False).stderr


def test_a_dry_run_of_undo_tells_what_would_go_and_changes_nothing(world: World, vault: Path) -> None:
    """In words and in JSON; then undo does just that, and the folder that connect made goes too."""
    file = world.home / ".cursor" / "mcp.json"
    connect(world, vault, "cursor", "--yes")
    before, grants = file.read_bytes(), told(world, vault, "grant")
    shown = connect(world, vault, "cursor", "--undo", "--dry-run").stderr
    assert "Would be taken back from agent:cursor: 1 grant, 1 token." in shown
    assert f"The file {file}, which pcpd connect made, would be removed." in shown
    said = json.loads(connect(world, vault, "cursor", "--undo", "--dry-run", "--json").stdout)
    assert said["dry_run"]
    assert (file.read_bytes(), told(world, vault, "grant")) == (before, grants)
    done = json.loads(connect(world, vault, "cursor", "--undo", "--json").stdout)
    assert {**done, "dry_run": True} == said
    assert not file.parent.exists()


def test_connecting_again_says_what_goes_and_what_stays(world: World, vault: Path) -> None:
    """Its own earlier grant is replaced; what the person gave by hand is kept, and counts for what it could do."""
    connect(world, vault, "cursor", "--yes")
    by_hand = ("--rights", "read,write", "--sensitivity", "sensitive")
    world.pcpd("--vault", vault, "grant", "agent:cursor", *by_hand)
    again = ("cursor", "--partitions", "work")
    shown = connect(world, vault, *again, "--dry-run").stderr
    instead, keeps = (
        shown.index("Instead of what `pcpd connect` gave"),
        shown.index("It has besides, and keeps:"),
    )
    assert "read, propose: every page in the partition personal," in shown[instead:keeps]
    assert "read, write: every page in the partition personal, also those marked sensitive" in shown[keeps:]
    assert "By all of these it could read 3 pages now" in shown
    assert "other pages marked sensitive in work" in shown
    assert "change anything by itself in work\n" in shown
    said = json.loads(connect(world, vault, *again, "--yes", "--json").stdout)
    assert [each["sensitivity"] for each in said["keeps"]] == ["sensitive"]
    assert ([each["partitions"] for each in said["replaces"]], said["pages"]) == ([["personal"]], 3)
    grants = told(world, vault, "grant")["grants"]
    assert sorted(each["partitions"][0] for each in grants) == ["personal", "work"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cursor", "--yes", "--name", ""), "--name"),
        (("cursor", "--yes", "--config", "nowhere/x.json"), "there is no folder"),
        (("--undo",), "need a CLIENT"),
        (("--yes",), "need a CLIENT"),
        (("--dry-run",), "need a CLIENT"),
    ],
)
def test_what_was_surely_not_meant_is_refused(
    world: World, vault: Path, arguments: tuple[str, ...], said: str
) -> None:
    """And nothing is made: no folder, no token, no grant."""
    refused = connect(world, vault, *arguments, check=False)
    assert refused.returncode in {2, 4}
    assert said in refused.stderr
    assert not (world.home / "nowhere").exists()
    assert told(world, vault, "token", "list")["tokens"] == []


def test_a_printed_entry_is_for_a_principal_and_a_name_that_can_be(world: World, vault: Path) -> None:
    """As connect checks them."""
    for wrong in (("--principal", "mine"), ("--principal", "agent:a", "--name", " ")):
        refused = world.pcpd("--vault", vault, "mcp", "config", *wrong, check=False)
        assert (refused.returncode, refused.stdout) == (2, "")


def test_an_entry_that_went_missing_is_told(world: World, vault: Path) -> None:
    """A client wrote its file back as it remembered it; the state is a stable word, the rest is said beside it."""
    connect(world, vault, "cursor", "--yes")
    (world.home / ".cursor" / "mcp.json").write_text("{}")
    (listed,) = [row for row in told(world, vault, "connect")["clients"] if row["client"] == "cursor"]
    assert (listed["state"], listed["principal"]) == ("entry gone", "agent:cursor")
    assert "its token is still valid" in listed["problem"]
    assert "entry gone\tagent:cursor\t" in connect(world, vault).stdout


def test_the_list_fits_a_terminal_of_80_columns_and_breaks_no_word(world: World, vault: Path) -> None:
    """Files stand below their clients, `~` for the home; a long path loses its middle."""
    deep = world.home / "projects" / ("x" * 100)
    deep.mkdir(parents=True)
    connect(world, vault, "claude-desktop", "--yes")
    connect(world, vault, "cursor", "--yes", "--config", deep / "mcp.json")
    status, shown = at_terminal(world, vault, None, COLUMNS="80")
    rows = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n")
    assert status == 0
    assert max(map(len, rows)) <= 80
    assert rows[0].split("  ")[0] == "client"
    assert any(row.startswith("claude-desktop  yes   connected") for row in rows)
    assert "  ~/.cursor/mcp.json" in rows
    assert any("…" in row and row.endswith("/mcp.json") for row in rows)


def test_a_file_that_others_can_read_becomes_the_person_s_alone(world: World, vault: Path) -> None:
    """It is said first; `--keep-mode` leaves it; undo does not open it again."""
    file = world.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    kept = json.loads(connect(world, vault, "cursor", "--yes", "--keep-mode", "--json").stdout)
    assert any("chmod 600" in each for each in kept["warnings"])
    assert file.stat().st_mode & 0o777 == 0o644
    connect(world, vault, "cursor", "--undo")
    assert "Its mode becomes 0600" in connect(world, vault, "cursor", "--dry-run").stderr
    assert file.stat().st_mode & 0o777 == 0o644
    said = json.loads(connect(world, vault, "cursor", "--yes", "--json").stdout)
    assert any("its mode becomes 0600" in each for each in said["warnings"])
    assert file.stat().st_mode & 0o777 == 0o600
    connect(world, vault, "cursor", "--undo")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("{}", 0o600)


def test_the_words_at_the_end_name_what_was_named(world: World, vault: Path) -> None:
    """The entry's own name, the vault and the file; undo has words of its own."""
    file = world.home / "my.json"
    shown = connect(world, vault, "vscode", "--yes", "--name", "notes", "--config", file).stderr
    assert "Next: start the server notes in VS Code" in shown
    assert f"pcpd --vault '{vault}' connect vscode --undo --config {file}" in shown
    undone = connect(world, vault, "vscode", "--undo").stderr
    assert undone.endswith("Next: restart VS Code.\n")
    assert "Your client is connected." in connect(world, vault, "other", "--yes").stderr
    undone = connect(world, vault, "other", "--undo").stderr
    assert "Next: take the entry out of your client's configuration." in undone


def test_pages_whose_front_matter_cannot_be_read_are_named_apart(world: World, vault: Path) -> None:
    """They are no pages of other partitions, and nobody marked them sensitive."""
    for name in ("torn", "worn"):
        (vault / f"{name}.md").write_text("---\ntitle: [\n---\n")
    world.pcpd("--vault", vault, "rebuild")
    shown = connect(world, vault, "cursor", "--dry-run").stderr
    assert "recorded conversations: 2 pages now" in shown
    assert "read 2 pages whose front matter cannot be read" in shown


def test_a_client_of_plain_json_is_warned_of_comments(world: World, vault: Path) -> None:
    """Its file is edited, and it would not take it; one that reads comments is not warned of."""
    file = world.home / "x.json"
    file.write_text("{} // mine\n")
    file.chmod(0o600)
    for client, is_warned in (("claude-desktop", True), ("cursor", False)):
        said = json.loads(connect(world, vault, client, "--dry-run", "--json", "--config", file).stdout)
        assert any("reads plain JSON: no comments" in each for each in said["warnings"]) == is_warned


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

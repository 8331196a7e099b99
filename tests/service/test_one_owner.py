"""One process owns a vault at a time; everything else is its client (architecture.md, *The owner*)."""

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import GENEROUS_S, Machine, gone, kill
from tests.waiting import until


def test_command_starts_an_owner_where_there_is_none(machine: Machine) -> None:
    """It stays, for the next command; the person sees the result and nothing else."""
    done = machine.pcpd("search", "boiler")
    assert done.stdout.startswith("boiler  Boiler\n")
    assert done.stderr == "1 page.\n"
    assert machine.owner_pid() == machine.owner_pid()


def test_status_can_be_asked_without_starting_an_owner(machine: Machine) -> None:
    """Then it says that none runs: status 3."""
    for _ in range(2):
        done = machine.pcpd("status", "--no-start", check=False)
        assert (done.returncode, "no process owns" in done.stderr) == (3, True)
    pid = machine.owner_pid()
    assert machine.json("status", "--no-start")["owner"]["pid"] == pid


def test_init_leaves_no_owner_behind(machine: Machine) -> None:
    """And a second init changes nothing."""
    before = {path: path.stat().st_mtime_ns for path in machine.vault.rglob("*")}
    done = machine.world.pcpd("init", machine.vault)
    assert (done.returncode, "already" in done.stderr) == (0, True)
    assert {path: path.stat().st_mtime_ns for path in machine.vault.rglob("*")} == before
    owner = machine.run()
    assert owner.poll() is None


def test_init_inside_a_vault_says_so(machine: Machine) -> None:
    """Two owners would serve the same pages: that may be a slip."""
    done = machine.world.pcpd("init", machine.vault / "inner")
    assert f"It lies in the vault {machine.vault}" in done.stderr


@pytest.mark.parametrize("other_path", [False, True])
def test_second_run_says_who_owns_the_vault(machine: Machine, *, other_path: bool) -> None:
    """By the same path or by a link: status 3."""
    owner = machine.run()
    vault = machine.vault
    if other_path:
        vault = machine.world.home / "link"
        vault.symlink_to(machine.vault)
    second = machine.world.pcpd("--vault", vault, "run", check=False)
    assert second.returncode == 3
    assert f"process {owner.pid} owns" in second.stderr
    assert owner.poll() is None


def test_two_that_start_together_are_one_owner_and_one_refusal(machine: Machine) -> None:
    """The kernel's lock decides."""
    both = [machine.world.start("--vault", machine.vault, "run") for _ in range(2)]
    machine.owners += both
    until(lambda: any(each.poll() is not None for each in both))
    (loser,) = [each for each in both if each.poll() is not None]
    (winner,) = [each for each in both if each is not loser]
    assert loser.returncode == 3
    assert f"process {winner.pid} owns" in loser.stderr.read()
    assert machine.owner_pid() == winner.pid


def test_owner_of_a_client_hands_over_to_run(machine: Machine) -> None:
    """The person's own owner outranks one that a command started."""
    pid = machine.owner_pid()
    owner = machine.run()
    until(lambda: gone(pid))
    assert machine.owner_pid() == owner.pid


def test_clients_that_come_together_have_one_owner(machine: Machine) -> None:
    """However many start at the same moment, all are served."""
    with ThreadPoolExecutor(6) as pool:
        pids = set(pool.map(lambda _: machine.owner_pid(), range(6)))
    assert len(pids) == 1


def test_pages_are_found_by_path_file_or_name(machine: Machine) -> None:
    """From anywhere; what comes out is the file's bytes."""
    (machine.vault / "deep" / "er").mkdir(parents=True)
    page = machine.vault / "deep" / "er" / "Grüße (2).md"
    page.write_bytes(b"\xef\xbb\xbftext\r\n")
    until(lambda: machine.json("list")["total"] == 2)
    for name in ("deep/er/Grüße (2)", "deep/er/Grüße (2).md", "Grüße (2)", "grüße (2).md", page):
        assert machine.json("read", name)["text"] == "\ufefftext\r\n", name
    assert machine.pcpd("read", "Grüße", check=False).returncode == 4


def test_killed_owner_leaves_nothing_to_clean_up(machine: Machine) -> None:
    """Its socket stays, and the next command works all the same."""
    for _ in range(2):
        kill(machine.owner_pid())
        assert machine.json("search", "boiler")["total"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_owner_cleanly(machine: Machine, number: int) -> None:
    """It drains, removes its sockets, and says that all is well; the last edit is, or will be, in history."""
    owner = machine.run()
    machine.pcpd("edit", "boiler", "--append", "Paid.")
    owner.send_signal(number)
    assert owner.stderr
    assert (owner.wait(GENEROUS_S), owner.stderr.read()) == (0, "")
    assert not list(Path(machine.env["XDG_RUNTIME_DIR"]).rglob("socket"))
    until(lambda: machine.json("log", "boiler")["versions"], "what it left in the outbox is committed")


def test_signal_during_the_first_scan_ends_the_owner_cleanly(machine: Machine) -> None:
    """Nobody waits for a large vault to be read whole before it may end, and ending it is no failure."""
    for number in range(3_000):
        (machine.vault / f"n{number}.md").write_text("zyxquartz\n" * 50)
    owner = machine.world.start("--vault", machine.vault, "run")
    machine.owners.append(owner)
    until(lambda: list(Path(machine.env["XDG_RUNTIME_DIR"]).rglob("socket")))
    owner.send_signal(signal.SIGTERM)
    assert owner.wait(GENEROUS_S) == 0
    assert "error" not in owner.stderr.read()
    assert machine.json("search", "zyxquartz")["total"] == 3_000


def test_a_first_scan_that_fails_ends_the_owner_with_the_reason(machine: Machine) -> None:
    """A broken store stops the run: its code and hint reach whoever started it."""
    broken = """
import sys
from pcpd.errors import Broken
from pcpd.index import pages
def full(*_):
    raise Broken("index.full", "the index cannot grow, the disk is full", hint="free some space")
pages.put_all = full
from pcpd.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
    command = [sys.executable, "-c", broken, "--vault", str(machine.vault), "run"]
    done = subprocess.run(command, env=dict(machine.env), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "free some space" in done.stderr


def test_what_the_owner_keeps_is_for_its_owners_eyes_alone(machine: Machine) -> None:
    """Folders 0700 and files 0600, sockets and log too, under a umask that would let everybody read."""
    before = os.umask(0o022)
    try:
        machine.run()
        machine.pcpd("grant", "agent:claude", "--rights", "read")
    finally:
        os.umask(before)
    id_ = machine.json("status")["vault"]["id"]
    kept = [*(Path(machine.env[name]) / "pcpd" for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"))]
    places = [*(folder / id_ for folder in kept), Path(machine.env["XDG_RUNTIME_DIR"]) / "pcpd"]
    found = [path for place in places for path in (place, *place.rglob("*"))]
    assert {"pcpd.log", "access.yaml", "root.json", "socket"} <= {path.name for path in found}
    open_to_others = [path for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert not open_to_others


def test_a_person_can_ask_for_polling(machine: Machine) -> None:
    """The setting `watch`, for file systems whose events cannot be trusted."""
    config = Path(machine.env["XDG_CONFIG_HOME"]) / "pcpd" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('watch = "polling"\npoll_s = 0.1\n')
    machine.run()
    assert machine.json("status")["owner"]["watch"] == "polling"
    (machine.vault / "new.md").write_text("zyxquartz\n")
    until(lambda: machine.json("search", "zyxquartz")["total"] == 1)


def test_owner_elsewhere_is_named_with_the_folders_looked_in(machine: Machine, tmp_path: Path) -> None:
    """A client with another HOME and runtime folder finds the lock taken and no socket: status 3."""
    machine.run()
    env = {**machine.env, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": "",
           "XDG_CONFIG_HOME": "", "TMPDIR": str(tmp_path)}  # fmt: skip
    (tmp_path / "run").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-m", "pcpd", "--vault", machine.vault, "search", "boiler"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert str(tmp_path / "run" / "pcpd") in done.stderr


def test_client_without_runtime_folder_finds_the_owner(machine: Machine) -> None:
    """An MCP client's environment is poor; state and socket folders are looked through."""
    env = {name: value for name, value in machine.env.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-m", "pcpd", "--vault", machine.vault, "status", "--json"],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert machine.owner_pid() == json.loads(done.stdout)["owner"]["pid"]


def test_copied_vault_gets_state_of_its_own(machine: Machine) -> None:
    """Both are served at once; tokens and grants of the one say nothing in the other."""
    machine.pcpd("token", "create", "--principal", "agent:c")
    machine.pcpd("grant", "agent:c", "--rights", "read")
    copy = machine.world.home / "copy"
    shutil.copytree(machine.vault, copy)
    copied = Machine(machine.world, copy)
    assert copied.json("token", "list")["tokens"] == []
    assert copied.json("grant")["grants"] == []
    assert copied.owner_pid() != machine.owner_pid()
    assert "copy" in json.dumps(copied.json("status")["notices"])
    (copy / "boiler.md").unlink()
    until(lambda: copied.json("search", "boiler")["total"] == 0)
    assert machine.json("search", "boiler")["total"] == 1


def test_copy_that_replaces_its_original_takes_its_state(machine: Machine) -> None:
    """A restored backup: `accept --copy` says so, once the original's owner has ended."""
    token = machine.json("token", "create", "--principal", "agent:c")["id"]
    copied = Machine(machine.world, machine.world.home / "copy")
    shutil.copytree(machine.vault, copied.vault)
    copied.owner_pid()
    assert copied.pcpd("accept", "--copy", check=False).returncode == 6
    kill(machine.owner_pid())
    copied.pcpd("accept", "--copy")
    assert [each["id"] for each in copied.json("token", "list")["tokens"]] == [token]
    assert machine.json("token", "list")["tokens"] == []


def test_copy_can_get_an_id_of_its_own(machine: Machine) -> None:
    """Then it is a vault like any other; an owner that a command started hands over for it, others stay."""
    copied = Machine(machine.world, machine.world.home / "copy")
    shutil.copytree(machine.vault, copied.vault)
    lasting = machine.run(copied.vault)
    assert copied.world.pcpd("init", copied.vault, "--new-id", check=False).returncode == 3
    lasting.terminate()
    lasting.wait(GENEROUS_S)
    copied.owner_pid()
    copied.world.pcpd("init", copied.vault, "--new-id")
    status = copied.json("status")
    assert status["vault"]["id"] != machine.json("status")["vault"]["id"]
    assert "copy" not in {each["topic"] for each in status["notices"]}


def test_moved_vault_keeps_its_state(machine: Machine) -> None:
    """The same vault at another path, with its tokens."""
    token = machine.json("token", "create", "--principal", "agent:c")["id"]
    kill(machine.owner_pid())
    moved = Machine(machine.world, machine.vault.rename(machine.world.home / "moved"))
    assert [each["id"] for each in moved.json("token", "list")["tokens"]] == [token]


def test_vault_that_cannot_be_opened_says_why_through_every_client(machine: Machine) -> None:
    """The owner's own words, not that it ended."""
    (machine.vault / ".pcp" / "context.yaml").write_text("id: [\n")
    done = machine.pcpd("search", "boiler", check=False)
    assert done.returncode == 1
    assert "context.yaml" in done.stderr


def test_owner_of_a_client_ends_when_idle(machine: Machine) -> None:
    """And removes its sockets."""
    owner = machine.world.start("--vault", machine.vault, "run", "--idle-exit", "0.2s")
    machine.owners.append(owner)
    assert owner.wait(GENEROUS_S) == 0


@pytest.fixture
def agent(machine: Machine) -> Iterator["subprocess.Popen[bytes]"]:
    """A relay for an agent that may read and write."""
    token = machine.json("token", "create", "--principal", "agent:c")["token"]
    machine.pcpd("grant", "agent:c", "--rights", "read,write")
    relay = subprocess.Popen(
        [sys.executable, "-m", "pcpd", "--vault", machine.vault, "mcp", "--principal", "agent:c"],
        env={**machine.env, "PCPD_TOKEN": token}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    yield relay
    relay.kill()
    relay.communicate()


def call(relay: "subprocess.Popen[bytes]", identity: int, method: str, **params: Any) -> None:
    """Sends a request."""
    assert relay.stdin
    relay.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}).encode() + b"\n"
    )
    relay.stdin.flush()


def answer(relay: "subprocess.Popen[bytes]") -> Any:
    """Waits for the next message."""
    assert relay.stdout
    return json.loads(relay.stdout.readline())


def begin(relay: "subprocess.Popen[bytes]") -> None:
    """Shakes hands, as the SDK's client does."""
    info = {"name": "test", "version": "1"}
    call(relay, 0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    assert "result" in answer(relay)
    assert relay.stdin
    relay.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    relay.stdin.flush()


def test_agents_session_outlives_its_owners(machine: Machine, agent: "subprocess.Popen[bytes]") -> None:
    """Killed before each call; the relay starts the next one, and each page is written once."""
    begin(agent)
    for number in range(1, 4):
        kill(machine.owner_pid())
        call(
            agent,
            number,
            "tools/call",
            name="write_page",
            arguments={"path": f"notes/n{number}", "content": "text"},
        )
        said = answer(agent)
        assert said["id"] == number
        assert not said["result"].get("isError"), said
    assert {path.name for path in (machine.vault / "notes").iterdir()} == {"n1.md", "n2.md", "n3.md"}


def test_write_during_which_the_owner_is_killed_is_made_once(
    machine: Machine, agent: "subprocess.Popen[bytes]"
) -> None:
    """Killed before the file is there, or as soon as it is: the answer says what is on disk.

    An owner that dies between the file and its note of the key leaves a page that the repeated write meets: it
    is then refused with the version that stands there, and never written a second time.
    """
    begin(agent)
    for number in range(1, 7):
        pid, file = machine.owner_pid(), machine.vault / "notes" / f"n{number}.md"
        arguments = {"path": f"notes/n{number}", "content": "text"}
        call(agent, number, "tools/call", name="write_page", arguments=arguments)
        if number % 2:
            until(file.exists)
        os.kill(pid, signal.SIGKILL)
        said = answer(agent)
        assert said["id"] == number
        version = hashlib.sha256(file.read_bytes()).hexdigest()
        assert version in json.dumps(said["result"]), said
        assert not said["result"].get("isError") or "page.exists" in json.dumps(said)
    names = sorted(path.name for path in (machine.vault / "notes").iterdir())
    assert names == [f"n{number}.md" for number in range(1, 7)]


def test_agent_without_a_token_hears_how_it_gets_one(machine: Machine) -> None:
    """Its session begins all the same, so that clients show the words in which it is told."""
    done = subprocess.run(
        [sys.executable, "-m", "pcpd", "--vault", machine.vault, "mcp", "--principal", "agent:c"],
        env=dict(machine.env), input=b'{"jsonrpc": "2.0", "id": 0, "method": "initialize",'
        b' "params": {"protocolVersion": "2025-06-18"}}\n',
        capture_output=True, check=True,
    )  # fmt: skip
    assert "pcpd connect" in json.loads(done.stdout)["result"]["instructions"]

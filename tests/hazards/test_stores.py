"""Databases that are locked, full, read-only, damaged or on a network: said, and no page of the vault is at risk."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pcpd import durable, sqlite
from pcpd.errors import Broken, PcpError
from pcpd.index import outbox, pages
from pcpd.index.rows import FileRow
from pcpd.memory import read, steward, upkeep, write
from pcpd.memory.keeper import Urgency
from pcpd.pages.authorship import Proposed
from pcpd.pages.changes import Stat
from tests.doors import Doors, make_doors
from tests.hazards.conftest import Asked
from tests.service.conftest import Machine, kill
from tests.vaults import Opened
from tests.waiting import until

__all__ = ["make_doors"]

BROWSER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE browsed (x)")
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def browser(database: Path) -> Iterator[None]:
    """A database browser: another process with an open transaction that writes, which it never commits."""
    process = subprocess.Popen(
        [sys.executable, "-c", BROWSER, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for locks and between tries are short."""
    monkeypatch.setattr(sqlite, "BUSY_MS", 50)
    monkeypatch.setattr(steward, "FIRST_RETRY_S", 0.05)


@pytest.mark.usefixtures("impatient")
def test_an_index_that_a_database_browser_locks_is_an_error_and_recovers(
    make_opened: Callable[..., Opened],
) -> None:
    """An act hears of it, a save waits, health is not green; all is found, and committed, once the lock is gone."""
    opened = make_opened(ahead_s=3600, quiet_s=0.05).open()
    ask = Asked(opened)
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    with browser(opened.memory.index.path):
        opened.save("saved.md", "zyxsaved\n")
        until(lambda: "locked" in ask.notice("index"))
        assert not ask.is_in_step()
        with pytest.raises(Broken, match="locked by another program") as caught:
            write.write_page(opened.memory, opened.person, "act", Proposed("zyxact\n"))
        assert caught.value.code == "index.locked"
        assert not (opened.root / "act.md").exists()
        assert ask.found("zyxquartz") == ["boiler"]
        assert ask.found("zyxsaved") == []
    until(lambda: ask.found("zyxsaved") == ["saved"])
    until(ask.is_in_step)
    until(lambda: ask.notice("index") == "")
    ask.commit_all()
    until(lambda: ask.notice("commits") == "")
    until(ask.equals_a_rebuild)
    for file in opened.root.glob("*.md"):
        until(lambda file=file: ask.commits(file.name))  # type: ignore[misc]
    assert {each.code for each in opened.failures} == {"index.locked"}
    opened.failures.clear()


@pytest.mark.usefixtures("impatient")
def test_a_ledger_that_is_locked_refuses_what_it_cannot_write_down(opened: Opened, ask: Asked) -> None:
    """An agent's act without its row in the trail is not answered; the person reads on."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    agent = opened.agent("agent:claude", "read")
    with closing(sqlite3.connect(opened.memory.ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Broken) as caught:
            read.search(opened.memory, agent, "zyxquartz")
        assert caught.value.code == "ledger.locked"
        assert ask.found("zyxquartz") == ["boiler"]
        other.execute("ROLLBACK")
    assert read.search(opened.memory, agent, "zyxquartz").total == 1


def limited(opened: Opened, pages: int) -> None:
    """Lets the index grow by no more than some pages, as a full disk does; 0 lifts it."""
    writer = opened.memory.index.writer._connection
    most = pages or 2**30
    used = writer.execute("PRAGMA page_count").fetchone()[0] if pages else 0
    writer.execute(f"PRAGMA max_page_count = {used + most}")


@pytest.mark.usefixtures("impatient")
def test_a_full_disk_is_said_and_the_index_follows_when_there_is_space(opened: Opened, ask: Asked) -> None:
    """Health is not green meanwhile; what was found before is found, and no page in the vault is at risk."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    opened.memory.keeper.run(Urgency.ACT, lambda: limited(opened, 1)).result()
    text = "".join(f"zyxlarge word{number}\n" for number in range(20_000))
    path = opened.save("large.md", text)
    until(lambda: "disk is full" in ask.notice("index"))
    assert not ask.is_in_step()
    assert ask.found("zyxquartz") == ["boiler"]
    assert path.read_text() == text
    opened.memory.keeper.run(Urgency.ACT, lambda: limited(opened, 0)).result()
    until(lambda: ask.found("zyxlarge") == ["large"])
    until(ask.is_in_step)
    until(lambda: ask.notice("index") == "")
    opened.failures.clear()


FULL = """
import resource, sys
from pathlib import Path
from pcpd.errors import PcpError
from tests.vaults import Opened
opened = Opened(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    opened.open()
except PcpError as error:
    print(error.code, error.message, flush=True)
"""


def test_an_owner_that_starts_on_a_full_disk_says_so_and_touches_no_page(
    make_opened: Callable[..., Opened],
) -> None:
    """By a limit on the size of files, at which the system refuses to write as on a full disk."""
    opened = make_opened()
    for number in range(200):
        opened.save(f"n{number}.md", f"zyxquartz {number} {'word ' * 500}\n")
    before = {path.name: path.read_bytes() for path in opened.root.glob("*.md")}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(opened.base), str(300 * 1024)],
        env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("index."), done
    assert {path.name: path.read_bytes() for path in opened.root.glob("*.md")} == before
    opened.open()
    assert read.search(opened.memory, opened.person, "zyxquartz").total == 200
    assert Asked(opened).is_in_step()


def test_a_state_folder_that_cannot_be_written_is_refused_with_the_reason(
    unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No silent read-only mode: the owner does not start, and says what to do."""
    opened = Opened(unprivileged / "one")
    monkeypatch.setattr("pcpd.memory.begin._open_history", lambda *_: (None, "not here"))
    opened.open()
    opened.save("boiler.md", "zyxquartz\n")
    opened.close()
    state = unprivileged / "one" / "state" / "v"
    for path in state.iterdir():
        path.chmod(0o400)
    state.chmod(0o500)
    try:
        with pytest.raises(PcpError) as caught:
            opened.open()
        assert caught.value.hint
        assert str(state) in caught.value.message
        assert (opened.root / "boiler.md").read_text() == "zyxquartz\n"
    finally:
        state.chmod(0o700)
    for path in state.iterdir():
        path.chmod(0o600)
    opened.running = None
    assert Asked(opened.open()).found("zyxquartz") == ["boiler"]
    opened.close()


def test_state_on_a_network_file_system_is_refused_with_the_reason(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any database is opened there; the vault is as it was."""
    opened = make_opened()
    opened.save("boiler.md", "zyxquartz\n")
    monkeypatch.setattr(
        durable, "network_filesystem", lambda path: "fuse.sshfs" if "state" in str(path) else None
    )
    with pytest.raises(PcpError, match=r"fuse\.sshfs") as caught:
        opened.open()
    assert caught.value.code == "state.network"
    assert "XDG_STATE_HOME" in caught.value.hint
    assert [path.name for path in (opened.base / "state").rglob("*.sqlite")] == []
    monkeypatch.undo()
    assert Asked(opened.open()).found("zyxquartz") == ["boiler"]


@pytest.mark.parametrize("damage", ["overwritten", "cut", "other schema"])
def test_a_damaged_index_is_made_anew_at_the_start_and_said(opened: Opened, ask: Asked, damage: str) -> None:
    """The vault is all that it needs; versions that waited for a commit are compared with HEAD again."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    opened.close()
    (opened.root / "new.md").write_text("zyxnew\n")
    (database,) = (opened.base / "state/v").glob("index-*.sqlite")
    if damage == "overwritten":
        database.write_bytes(os.urandom(database.stat().st_size))
    elif damage == "cut":
        os.truncate(database, 1000)
    else:
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA user_version = 7")
    opened.open()
    assert ask.found("zyxquartz") == ["boiler"]
    assert ask.found("zyxnew") == ["new"]
    assert "made anew" in ask.notice("index-reset")
    ask.commit_all()
    assert ask.commits("boiler.md") == ["A\tboiler.md"]
    opened.restart()
    assert ask.notice("index-reset") == ""


def test_an_index_that_is_found_damaged_at_work_is_said_and_rebuilt_on_request(
    opened: Opened, ask: Asked
) -> None:
    """`pcpd rebuild` puts a new one in its place; nothing but the index was touched."""
    for number in range(30):
        opened.save(f"n{number}.md", f"zyxquartz {number}\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").total == 30)
    ask.commit_all()
    until(opened.memory.index.checkpoint)
    path = opened.memory.index.path
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    upkeep.rebuild(opened.memory)
    assert read.search(opened.memory, opened.person, "zyxquartz").total == 30
    until(ask.equals_a_rebuild)
    opened.failures.clear()


def test_a_damaged_ledger_is_set_aside_and_status_says_it(opened: Opened, ask: Asked) -> None:
    """Under a dated name beside the new one; pages are served, agents need new tokens."""
    opened.save("boiler.md", "zyxquartz\n")
    opened.close()
    ledger = opened.base / "state/v/ledger.sqlite"
    damaged = os.urandom(10_000)
    ledger.write_bytes(damaged)
    opened.open()
    assert "ledger-corrupt-" in ask.notice("ledger")
    (aside,) = ledger.parent.glob("ledger-corrupt-*.sqlite")
    assert aside.read_bytes() == damaged
    assert ask.found("zyxquartz") == ["boiler"]


def test_more_files_than_a_statement_takes_parameters(opened: Opened, ask: Asked) -> None:
    """40,000 pages known, found gone, asked for: every list goes in pieces."""
    names, stat = [f"n{number}.png" for number in range(40_000)], Stat(1, 1, 1, 1, 0o600)

    def fill() -> None:
        with opened.memory.transaction() as tx:
            pages.put_all(
                tx, [(FileRow(name, "attachment", stat, 1, "ab" * 32), None, None) for name in names]
            )
            for name in names:
                outbox.mark(tx, name, 1)

    def clear() -> None:
        with opened.memory.transaction() as tx:
            due = outbox.due(tx, 10**18, quiet_ns=0, longest_ns=0)
            outbox.clear(tx, due)
            pages.remove(tx, *names)

    opened.memory.keeper.run(Urgency.ACT, fill).result()
    with opened.memory.index.reader() as conn:
        assert len(pages.known(conn)) >= 40_000
    opened.memory.keeper.run(Urgency.ACT, clear).result()
    with opened.memory.index.reader() as conn:
        assert len(pages.known(conn)) < 10
    assert ask.status()["attachments"] == 0  # the context is none of the person's


def test_several_clients_loops_and_a_long_search_never_meet_a_locked_database(machine: Machine) -> None:
    """CLI loops beside a big import: each is answered, and what is killed in between needs no clean-up."""
    machine.run()
    for number in range(300):
        (machine.vault / f"import{number}.md").write_text(f"zyxquartz {number} " + "word " * 200 + "\n")
    for number in range(4):
        machine.pcpd("edit", "boiler", "--append", f"zyxline {number}")
        assert machine.json("search", "zyxline")["total"] == 1
    until(lambda: machine.json("search", "zyxquartz")["total"] == 300)
    kill(machine.owner_pid())
    assert machine.json("search", "zyxquartz")["total"] == 300
    assert machine.json("status")["notices"] == []


@pytest.mark.usefixtures("impatient")
def test_health_is_not_green_while_the_index_cannot_follow(make_doors: Callable[..., Doors]) -> None:
    """Whoever watches the owner over HTTP sees it without a token: `in_step` is false, and true again afterwards."""
    doors = make_doors({"boiler.md": "zyxquartz\n"})
    assert doors.vault("GET", "health", tcp=True).json()["in_step"] is True
    with browser(doors.opened.memory.index.path):
        doors.opened.save("saved.md", "zyxsaved\n")
        until(lambda: doors.vault("GET", "health", tcp=True).json()["in_step"] is False)
        assert doors.vault("GET", "status").json()["index"]["in_step"] is False
    until(lambda: doors.vault("GET", "health", tcp=True).json()["in_step"] is True)
    doors.opened.failures.clear()

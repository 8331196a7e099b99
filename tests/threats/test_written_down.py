"""What agents do is written down before it is answered, exactly once, whatever fails meanwhile."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from pcpd import sqlite
from pcpd.errors import Broken, PcpError
from pcpd.ledger import audit, begun
from pcpd.ledger.audit import AuditRow
from pcpd.ledger.proof import verify_chain
from pcpd.memory import read, write
from pcpd.memory.audit import Trail
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def unwritable(opened: Opened) -> Iterator[None]:
    """A ledger that takes nothing any more, as on a disk that became full or read-only."""
    with opened.memory.ledger.reading() as connection:
        connection.execute("PRAGMA query_only = ON")
    yield
    with opened.memory.ledger.reading() as connection:
        connection.execute("PRAGMA query_only = OFF")


@contextmanager
def locked(opened: Opened) -> Iterator[None]:
    """A ledger on which another program has an open transaction."""
    with closing(sqlite3.connect(opened.memory.ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def rows(opened: Opened) -> list[AuditRow]:
    """The trail, oldest first."""
    return audit.rows(opened.memory.ledger, after=0)


@pytest.mark.parametrize("failing", [unwritable, locked])
def test_what_cannot_be_written_down_is_not_done(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, failing: Callable[[Opened], AbstractContextManager[None]]
) -> None:
    """Every act of an agent is refused, and no file is touched; the person goes on."""
    monkeypatch.setattr(sqlite, "BUSY_MS", 50)
    opened.restart()
    memory, agent = opened.memory, opened.agent("agent:a", "read", "write")
    write.write_page(memory, opened.person, "boiler", Proposed("Gas.\n"))
    before = (opened.root / "boiler.md").read_bytes()
    acts: list[Callable[[], object]] = [
        lambda: write.write_page(memory, agent, "new", Proposed("Text.\n")),
        lambda: write.edit_page(memory, agent, "boiler", [Edit("append", "", "More.\n")]),
        lambda: write.move_page(memory, agent, "boiler", "moved"),
        lambda: write.remove_page(memory, agent, "boiler", if_version=opened.version("boiler")),
        lambda: read.read_page(memory, agent, "boiler"),
        lambda: read.search(memory, agent, "gas"),
        lambda: read.list_pages(memory, agent),
    ]
    with failing(opened):
        for act in acts:
            with pytest.raises(Broken) as caught:
                act()
            assert caught.value.code.startswith("ledger.")
        assert read.list_pages(memory, opened.person).total == 1
        write.write_page(memory, opened.person, "mine", Proposed("Text.\n"))
    assert (opened.root / "boiler.md").read_bytes() == before
    assert {file.name for file in opened.root.glob("*.md")} == {"boiler.md", "mine.md"}
    assert rows(opened) == []
    acts[0]()
    assert [row.action for row in rows(opened)] == ["write_page"]
    assert begun.left(memory.ledger) == []


def test_a_change_whose_row_fails_is_written_down_at_the_next_start(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent gets the error; the trail says that the change began, and on which page."""
    agent = opened.agent("agent:a", "read", "write")

    def refuse(_trail: Trail, _row: AuditRow) -> None:
        raise Broken("ledger.full", "the disk is full")

    with monkeypatch.context() as failing:
        failing.setattr(Trail, "write", refuse)
        with pytest.raises(Broken):
            write.write_page(opened.memory, agent, "new", Proposed("Text.\n"))
    read.list_pages(opened.memory, agent)
    opened.restart()
    listed, lost = rows(opened)
    assert (listed.action, listed.outcome) == ("list_pages", "ok")
    assert (lost.principal, lost.action, lost.channel, lost.outcome) == (
        "agent:a",
        "write_page",
        "mcp",
        "owner.lost",
    )
    assert audit.object_paths(opened.memory.ledger, lost.object_ids) == {lost.object_ids[0]: "new"}
    opened.restart()
    assert len(rows(opened)) == 2
    assert verify_chain(opened.memory.ledger).ok


KILLED = """
import os, signal, sys
from pathlib import Path
from pcpd.memory.audit import Trail
from pcpd.memory import write
from pcpd.pages.authorship import Proposed
from tests.vaults import Opened

opened = Opened(Path(sys.argv[1])).open()
agent = opened.agent("agent:a", "read", "write")
write.write_page(opened.memory, agent, "first", Proposed("Text.\\n"))
Trail.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write.write_page(opened.memory, agent, "second", Proposed("Text.\\n"))
"""


def test_a_kill_between_a_change_and_its_row_leaves_a_row(opened: Opened) -> None:
    """One for each change, and the one that nobody lived to tell says so."""
    opened.close()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(opened.base)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (opened.root / "second.md").exists()
    opened.open()
    assert [(row.action, row.outcome, len(row.object_ids)) for row in rows(opened)] == [
        ("write_page", "ok", 1),
        ("write_page", "owner.lost", 1),
    ]


def test_every_call_is_one_row_whether_it_ends_well_or_not(opened: Opened) -> None:
    """With who, what, by which door, how it ended, how long it took; of refusals too."""
    memory, agent = opened.memory, opened.agent("agent:a", "read", "write")
    nobody = opened.agent("agent:nobody")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("ok", lambda: write.write_page(memory, agent, "new", Proposed("Text.\n"))),
        ("page.exists", lambda: write.write_page(memory, agent, "new", Proposed("Other.\n"))),
        ("path.strict", lambda: write.write_page(memory, agent, "../Out", Proposed("Text.\n"))),
        ("denied", lambda: write.write_page(memory, nobody, "else", Proposed("Text.\n"))),
        ("ok", lambda: write.edit_page(memory, agent, "new", [Edit("append", "", "More.\n")])),
        (
            "text.not-found",
            lambda: write.edit_page(memory, agent, "new", [Edit("replace_text", "absent", "x")]),
        ),
        ("page.not-found", lambda: write.edit_page(memory, nobody, "new", [Edit("append", "", "x")])),
        ("ok", lambda: write.move_page(memory, agent, "new", "old")),
        ("page.not-found", lambda: write.remove_page(memory, agent, "new")),
        ("page.no-version", lambda: write.remove_page(memory, agent, "old")),
        ("ok", lambda: write.remove_page(memory, agent, "old", if_version=opened.version("old"))),
    ]
    for number, (outcome, call) in enumerate(calls, 1):
        try:
            call()
        except PcpError:
            assert outcome != "ok"
        found = rows(opened)
        assert (len(found), found[-1].outcome) == (number, outcome)
        assert found[-1].duration_ms > 0
        assert found[-1].at.endswith("Z")
    assert {row.channel for row in rows(opened)} == {"mcp"}
    assert begun.left(memory.ledger) == []
    assert verify_chain(memory.ledger).ok

"""Audit rows are committed before the answer, by who acts: one alone at once, those that come meanwhile together."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pcpd.errors import Broken, Unavailable
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow
from pcpd.ledger.ledger import Ledger
from pcpd.ledger.proof import verify_chain
from pcpd.memory import audit as memory_audit
from pcpd.memory.audit import Trail
from tests.waiting import LONGEST_S, until

ROW = AuditRow(
    at="2026-11-30T12:00:00Z", principal="agent:claude", action="read_page", channel="http", outcome="ok"
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger."""
    opened = Ledger.open(tmp_path, lambda: datetime(2026, 11, 30, 12, tzinfo=UTC))
    yield opened
    opened.close()


class Held:
    """Holds up the first writer, so that others come meanwhile; counts the rows of each transaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, error: Exception | None = None) -> None:
        self.is_writing, self.may_go_on = threading.Event(), threading.Event()
        self.sizes: list[int] = []
        self._error = error
        self._record = audit.record
        monkeypatch.setattr(audit, "record", self)

    def __call__(self, ledger: Ledger, rows: Sequence[AuditRow]) -> None:
        """Writes as the ledger does, when it may."""
        self.sizes.append(len(rows))
        self.is_writing.set()
        assert self.may_go_on.wait(LONGEST_S)
        if self._error is not None and len(self.sizes) == 2:
            raise self._error
        self._record(ledger, rows)


def test_a_row_is_in_the_ledger_when_its_act_goes_on(ledger: Ledger) -> None:
    """Written by the act's own thread: no other is there that could die."""
    before = threading.active_count()
    Trail(ledger).write(ROW)
    assert [row.action for row in audit.rows(ledger)] == ["read_page"]
    assert threading.active_count() == before


def test_rows_that_come_while_one_is_written_are_written_together(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most so many at a time; each act goes on once its own row is there."""
    monkeypatch.setattr(memory_audit, "BATCH", 5)
    trail, held, count = Trail(ledger), Held(monkeypatch), 7
    with ThreadPoolExecutor(count + 1) as acts:
        first = acts.submit(trail.write, ROW)
        assert held.is_writing.wait(LONGEST_S)
        others = [acts.submit(trail.write, ROW) for _ in range(count)]
        until(lambda: len(trail._rows) == count)
        assert not first.done()
        held.may_go_on.set()
        for act in (first, *others):
            act.result(LONGEST_S)
    assert held.sizes == [1, 5, 2]
    assert verify_chain(ledger).rows == 1 + count


def test_many_acts_at_once_lose_no_row(ledger: Ledger) -> None:
    """However their turns fall."""
    trail = Trail(ledger)
    with ThreadPoolExecutor(12) as acts:
        for act in [acts.submit(trail.write, ROW) for _ in range(480)]:
            act.result(LONGEST_S)
    trail.close()
    proof = verify_chain(ledger)
    assert (proof.ok, proof.rows) == (True, 480)


def test_what_the_ledger_refuses_reaches_every_act_that_waited_for_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them answers; the act before and the one after are not touched."""
    held = Held(monkeypatch, error=Broken("ledger.full", "the disk is full"))
    trail = Trail(ledger)
    with ThreadPoolExecutor(4) as acts:
        first = acts.submit(trail.write, ROW)
        assert held.is_writing.wait(LONGEST_S)
        others = [acts.submit(trail.write, ROW) for _ in range(3)]
        until(lambda: len(trail._rows) == 3)
        held.may_go_on.set()
        first.result(LONGEST_S)
        for act in others:
            with pytest.raises(Broken, match="disk is full"):
                act.result(LONGEST_S)
    trail.write(ROW)
    assert len(audit.rows(ledger)) == 2


def test_the_end_waits_for_rows_under_way_and_takes_no_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner that ends closes the ledger only then."""
    trail, held = Trail(ledger), Held(monkeypatch)
    with ThreadPoolExecutor(3) as acts:
        under_way = [acts.submit(trail.write, ROW)]
        assert held.is_writing.wait(LONGEST_S)
        under_way.append(acts.submit(trail.write, ROW))
        until(lambda: len(trail._rows) == 1)
        closing = acts.submit(trail.close)
        until(lambda: trail._closing)
        with pytest.raises(Unavailable, match="shutting down"):
            trail.write(ROW)
        assert not closing.done()
        held.may_go_on.set()
        closing.result(LONGEST_S)
        assert len(audit.rows(ledger)) == 2
        for act in under_way:
            act.result(LONGEST_S)

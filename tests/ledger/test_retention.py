"""Old rows go, and what is left is still proved; what was cut otherwise shows."""

from dataclasses import replace

import pytest

from pcpd.ledger import audit, begun, retention
from pcpd.ledger.audit import AuditRow
from pcpd.ledger.ledger import Ledger
from pcpd.ledger.proof import verify_chain
from tests.ledger.conftest import Clock

ROW = AuditRow(
    at="2026-01-01T00:00:00Z", principal="agent:a", action="read_page", channel="mcp", outcome="ok"
)


def filled(ledger: Ledger, months: int = 10) -> None:
    """A trail with a row a month."""
    audit.record(ledger, [replace(ROW, at=f"2026-{month:02}-01T00:00:00Z") for month in range(1, months + 1)])


def numbers(ledger: Ledger) -> list[int]:
    """The rows that are there, oldest first."""
    return [row.number for row in audit.rows(ledger, after=0)]


def faults(ledger: Ledger) -> list[str]:
    """What a check of the trail says."""
    return [fault.what for fault in verify_chain(ledger).faults]


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_old_rows_go_and_the_rest_is_proved(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """However many go at a time; the check says what went; the trail goes on, and can be cut again."""
    monkeypatch.setattr(retention, "CHUNK", chunk)
    filled(ledger)
    assert retention.prune(ledger, "2026-05-01T00:00:00Z") == 4
    assert numbers(ledger) == [5, 6, 7, 8, 9, 10]
    proof = verify_chain(ledger)
    assert (proof.ok, proof.rows, proof.pruned, proof.pruned_before) == (True, 6, 4, "2026-05-01T00:00:00Z")
    assert retention.prune(ledger, "2026-05-01T00:00:00Z") == 0
    audit.record(ledger, [ROW])
    assert numbers(ledger)[-1] == 11
    assert retention.prune(ledger, "2026-06-01T00:00:00Z") == 1
    assert (verify_chain(ledger).ok, verify_chain(ledger).pruned) == (True, 5)


def test_a_trail_of_which_all_is_old_goes_on(ledger: Ledger) -> None:
    """Its end is still sealed, and the next row has the next number."""
    filled(ledger)
    assert retention.prune(ledger, "2027-01-01T00:00:00Z") == 10
    assert (verify_chain(ledger).ok, verify_chain(ledger).rows) == (True, 0)
    audit.record(ledger, [ROW])
    assert numbers(ledger) == [11]
    assert verify_chain(ledger).ok


def test_only_the_beginning_goes(ledger: Ledger) -> None:
    """A row out of time, as after a clock that was set back, stays between newer ones; nothing goes from nothing."""
    assert retention.prune(ledger, "2027-01-01T00:00:00Z") == 0
    audit.record(ledger, [replace(ROW, at="2026-06-01T00:00:00Z"), ROW])
    assert retention.prune(ledger, "2026-03-01T00:00:00Z") == 0
    assert numbers(ledger) == [1, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM pruned",
        "UPDATE pruned SET number = 6, mac = (SELECT mac FROM audit WHERE number = 6)",
        "UPDATE pruned SET before = '2020-01-01T00:00:00Z'",
        "DELETE FROM audit WHERE number = 5",
        "DELETE FROM audit WHERE number = 10",
        "UPDATE audit SET principal = 'agent:b' WHERE number = 5",
    ],
)
def test_what_is_cut_by_hand_shows_before_and_after(ledger: Ledger, sql: str) -> None:
    """A stub that is edited, moved on or taken away, and rows that are cut behind it."""
    filled(ledger)
    retention.prune(ledger, "2026-05-01T00:00:00Z")
    assert faults(ledger) == []
    with ledger.transaction() as tx:
        tx.execute(sql)
    assert faults(ledger)


def test_a_change_whose_row_went_is_not_accounted_for_again(ledger: Ledger, clock: Clock) -> None:
    """Its note goes with it: the next start would take it for a change that was lost."""
    begun.add(ledger, replace(ROW, id="act_1"))
    audit.record(ledger, [replace(ROW, id="act_1")])
    clock.pass_time(days=30)
    retention.prune(ledger, "2026-05-01T00:00:00Z")
    assert begun.left(ledger) == []

"""A write that a client repeats is answered again, for a day."""

from pathlib import Path

from pcpd.ledger import idempotency
from pcpd.ledger.ledger import Ledger
from tests.ledger.conftest import Clock


def test_an_answer_is_recalled_by_principal_and_key(ledger: Ledger) -> None:
    """Another principal's equal key is another request."""
    idempotency.settle(ledger, "agent:a", "k1", '{"version": 1}')
    assert idempotency.recall(ledger, "agent:a", "k1") == '{"version": 1}'
    assert idempotency.recall(ledger, "agent:a", "k2") is None
    assert idempotency.recall(ledger, "agent:b", "k1") is None


def test_what_is_settled_later_replaces_what_was_noted_first(ledger: Ledger) -> None:
    """First what a write means to do, then what came of it."""
    idempotency.settle(ledger, "agent:a", "k", "intent")
    idempotency.settle(ledger, "agent:a", "k", "answer")
    assert idempotency.recall(ledger, "agent:a", "k") == "answer"


def test_an_answer_survives_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    """A relay repeats its write to the next owner."""
    idempotency.settle(ledger, "agent:a", "k", "first")
    ledger.close()
    again = Ledger.open(tmp_path, clock)
    assert idempotency.recall(again, "agent:a", "k") == "first"
    again.close()


def test_answers_are_forgotten_after_a_day(ledger: Ledger, clock: Clock, tmp_path: Path) -> None:
    """The key may be used again; the old answer is in no byte of the files after the next checkpoint."""
    idempotency.settle(ledger, "agent:a", "k", "an-old-answer")
    clock.pass_time(hours=23, minutes=59)
    assert idempotency.recall(ledger, "agent:a", "k") == "an-old-answer"
    clock.pass_time(minutes=1)
    assert idempotency.recall(ledger, "agent:a", "k") is None
    idempotency.settle(ledger, "agent:a", "k", "new")
    assert idempotency.recall(ledger, "agent:a", "k") == "new"
    ledger.checkpoint()
    assert all(b"an-old-answer" not in path.read_bytes() for path in tmp_path.iterdir())

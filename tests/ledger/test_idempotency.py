"""A write that a client repeats is answered again, for a day."""

from pathlib import Path

from pcpd.ledger import idempotency
from pcpd.ledger.ledger import Ledger
from tests.ledger.conftest import Clock


def test_an_answer_is_recalled_by_principal_and_key(ledger: Ledger) -> None:
    """Another principal's equal key is another request."""
    idempotency.remember(ledger, "agent:a", "k1", '{"version": 1}')
    assert idempotency.recall(ledger, "agent:a", "k1") == '{"version": 1}'
    assert idempotency.recall(ledger, "agent:a", "k2") is None
    assert idempotency.recall(ledger, "agent:b", "k1") is None


def test_the_first_answer_stays(ledger: Ledger) -> None:
    """Two deliveries of one request get the same answer."""
    idempotency.remember(ledger, "agent:a", "k", "first")
    idempotency.remember(ledger, "agent:a", "k", "second")
    assert idempotency.recall(ledger, "agent:a", "k") == "first"


def test_an_answer_survives_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    """A relay repeats its write to the next owner."""
    idempotency.remember(ledger, "agent:a", "k", "first")
    ledger.close()
    again = Ledger.open(tmp_path, clock)
    assert idempotency.recall(again, "agent:a", "k") == "first"
    again.close()


def test_answers_are_forgotten_after_a_day(ledger: Ledger, clock: Clock, tmp_path: Path) -> None:
    """The key may be used again; the old answer is in no byte of the files after the next checkpoint."""
    idempotency.remember(ledger, "agent:a", "k", "an-old-answer")
    clock.pass_time(hours=23, minutes=59)
    assert idempotency.recall(ledger, "agent:a", "k") == "an-old-answer"
    clock.pass_time(minutes=1)
    assert idempotency.recall(ledger, "agent:a", "k") is None
    idempotency.remember(ledger, "agent:a", "k", "new")
    assert idempotency.recall(ledger, "agent:a", "k") == "new"
    ledger.checkpoint()
    assert all(b"an-old-answer" not in path.read_bytes() for path in tmp_path.iterdir())

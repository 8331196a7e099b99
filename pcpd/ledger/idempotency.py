"""Remembers for a day what a write answered, so that one that a client repeats is not done twice."""

from datetime import timedelta

from pcpd.ledger.ledger import Ledger

KEPT = timedelta(days=1)


def recall(ledger: Ledger, principal: str, key: str) -> str | None:
    """Gives the answer, as JSON, that this principal's write under `key` got in the last day; else None."""
    with ledger.reading() as connection:
        row = connection.execute(
            "SELECT answer FROM idempotency WHERE principal = ? AND key = ? AND at > ?",
            (principal, key, ledger.stamp(-KEPT)),
        ).fetchone()
    return None if row is None else str(row[0])


def settle(ledger: Ledger, principal: str, key: str, answer: str) -> None:
    """Keeps what is known of a write, as JSON, in place of what was known before; forgets what is older than a day.

    Durable when it returns.
    """
    with ledger.transaction() as tx:
        tx.execute("DELETE FROM idempotency WHERE at <= ?", (ledger.stamp(-KEPT),))
        tx.execute(
            "INSERT INTO idempotency (principal, key, at, answer) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (principal, key) DO UPDATE SET answer = excluded.answer",
            (principal, key, ledger.stamp(), answer),
        )

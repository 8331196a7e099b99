"""Who is paused, so that a restart lets nobody in again."""

from pcpd.ledger.ledger import Ledger

EVERYBODY = "*"
"""Stands for everybody with a token; no principal is called so."""


def listing(ledger: Ledger) -> dict[str, str]:
    """Gives who is paused, and since when."""
    with ledger.reading() as connection:
        found = connection.execute("SELECT principal, at FROM paused ORDER BY principal").fetchall()
    return {str(row["principal"]): str(row["at"]) for row in found}


def begin(ledger: Ledger, principal: str, at: str) -> None:
    """Notes a pause; one that is under way keeps its time. Durable when it returns."""
    with ledger.transaction() as tx:
        tx.execute("INSERT INTO paused VALUES (?, ?) ON CONFLICT DO NOTHING", (principal, at))


def end(ledger: Ledger, principal: str | None) -> int:
    """Ends a principal's pause, or every one with None; gives how many there were. Durable when it returns."""
    with ledger.transaction() as tx:
        if principal is None:
            return tx.execute("DELETE FROM paused").rowcount
        return tx.execute("DELETE FROM paused WHERE principal = ?", (principal,)).rowcount

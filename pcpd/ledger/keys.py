"""Secret keys of this device, by name: random, made when first asked for, never changed."""

from pcpd.ledger.ledger import Ledger
from pcpd.sqlite import Transaction

KEY_BYTES = 32


def get_or_create(ledger: Ledger, name: str) -> bytes:
    """Gives the key of that name, 32 bytes."""
    with ledger.transaction() as tx:
        return key_in(tx, ledger, name)


def key_in(tx: Transaction, ledger: Ledger, name: str) -> bytes:
    """Gives the key of that name in a transaction that is open already."""
    known = ledger.known_keys.get(name)
    if known is not None:
        return known
    row = tx.execute("SELECT key FROM keys WHERE name = ?", (name,)).fetchone()
    if row is not None:
        # Not remembered when made: its transaction may still fail.
        return ledger.known_keys.setdefault(name, bytes(row[0]))
    key = ledger.entropy(KEY_BYTES)
    tx.execute("INSERT INTO keys (name, key, made_at) VALUES (?, ?, ?)", (name, key, ledger.stamp()))
    return key

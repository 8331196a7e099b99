"""Removes rows of the audit trail for their age, and keeps what is left provable: a sealed stub stands for what went.

Only from the beginning, and only while each row is old enough: the chain has no holes.
"""

import sqlite3
from dataclasses import dataclass

from pcpd.ledger import audit, chain, keys
from pcpd.ledger.ledger import Ledger
from pcpd.sqlite import Reads

CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Stub:
    """What old rows left: the last number that went, its mac, what time they were older than, when that was done."""

    number: int
    mac: bytes
    before: str
    at: str
    seal: bytes

    def is_sealed(self, key: bytes) -> bool:
        """Tells whether it is as it was written."""
        return chain.equal(self.seal, _seal(key, self))


def stub(reads: Reads | sqlite3.Connection) -> Stub | None:
    """Gives the stub; None where nothing was removed."""
    row = reads.execute("SELECT number, mac, before, at, seal FROM pruned").fetchone()
    if row is None:
        return None
    return Stub(int(row["number"]), bytes(row["mac"]), str(row["before"]), str(row["at"]), bytes(row["seal"]))


def prune(ledger: Ledger, before: str) -> int:
    """Removes the rows at the beginning that are older than `before` (RFC 3339 UTC); gives how many went.

    In steps, so that no act waits for long; each leaves a whole trail. What went leaves the file and its log too.
    """
    removed = 0
    while True:
        done = _step(ledger, before)
        removed += done
        if done < CHUNK:
            break
    if removed:
        ledger.checkpoint()
    return removed


def _step(ledger: Ledger, before: str) -> int:
    with ledger.transaction() as tx:
        key = keys.key_in(tx, ledger, audit.KEY)
        first = tx.execute("SELECT min(number) FROM audit").fetchone()[0]
        if first is None:
            return 0
        end = int(first) + CHUNK
        kept = tx.execute(
            "SELECT min(number) FROM audit WHERE at >= ? AND number < ?", (before, end)
        ).fetchone()[0]
        stop = end if kept is None else int(kept)
        last = tx.execute(
            "SELECT number, mac FROM audit WHERE number < ? ORDER BY number DESC LIMIT 1", (stop,)
        ).fetchone()
        if last is None:
            return 0
        left = Stub(int(last["number"]), bytes(last["mac"]), before, ledger.stamp(), b"")
        tx.execute("DELETE FROM begun WHERE id IN (SELECT id FROM audit WHERE number <= ?)", (left.number,))
        done = tx.execute("DELETE FROM audit WHERE number <= ?", (left.number,)).rowcount
        tx.execute(
            "INSERT OR REPLACE INTO pruned VALUES (1, ?, ?, ?, ?, ?)",
            (left.number, left.mac, left.before, left.at, _seal(key, left)),
        )
    return done


def _seal(key: bytes, left: Stub) -> bytes:
    return chain.mac_of(key, b"pcpd pruned\0" + left.mac, (left.number, left.before, left.at))

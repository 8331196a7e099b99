"""Checks the audit trail against its chain, and names each row that was edited, inserted or cut."""

import sqlite3
from dataclasses import dataclass

from pcpd.ledger import audit, chain, keys, retention
from pcpd.ledger.ledger import Ledger

CHUNK = 2_000
FAULT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with the trail at row `number`, in words."""

    number: int
    what: str


@dataclass(frozen=True, slots=True)
class Proof:
    """How many rows were looked at and what is wrong, at most 100 faults.

    `pruned` rows before them were removed for their age: those older than `pruned_before`.
    """

    rows: int
    faults: tuple[Fault, ...]
    pruned: int = 0
    pruned_before: str | None = None

    @property
    def ok(self) -> bool:
        """Tells whether the trail is whole."""
        return not self.faults


def verify_chain(ledger: Ledger) -> Proof:
    """Checks every row; holds the ledger for one chunk of rows at a time."""
    walk = _Walk(keys.get_or_create(ledger, audit.KEY))
    while True:
        with ledger.reading() as connection:
            found = connection.execute(
                f"SELECT {audit.COLUMNS}, mac FROM audit WHERE number > ? ORDER BY number LIMIT ?",  # noqa: S608
                (walk.number, CHUNK),
            ).fetchall()
            trail = connection.execute("SELECT id, rows, head, seal FROM trail").fetchone()
            left = retention.stub(connection)
        if not walk.has_begun:
            walk.begin(left)
        elif left != walk.left:  # rows went meanwhile: what was looked at is no trail any more
            return verify_chain(ledger)
        if walk.head is None and walk.rows == 0 and trail is not None:
            walk.head = chain.first_head(walk.key, trail["id"])
        for row in found:
            walk.step(row)
        if len(found) < CHUNK:
            walk.end(trail)
            pruned, before = (left.number, left.before) if left else (0, None)
            return Proof(walk.rows, tuple(walk.faults[:FAULT_LIMIT]), pruned, before)


class _Walk:
    """Where the check has come to. `head` is the mac of the row before; None where that row is missing."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.number = 0
        self.rows = 0
        self.head: bytes | None = None
        self.faults: list[Fault] = []
        self.has_begun = False
        self.left: retention.Stub | None = None

    def begin(self, left: retention.Stub | None) -> None:
        """Begins behind the rows that were removed for their age, where the stub that they left is whole."""
        self.has_begun, self.left = True, left
        if left is None:
            return
        self.number, self.head = left.number, left.mac
        if not left.is_sealed(self.key):
            self.faults.append(
                Fault(1, "what stands for the rows that were removed for their age was edited")
            )

    def step(self, row: sqlite3.Row) -> None:
        """Checks one row against the one before."""
        number, mac = int(row["number"]), bytes(row["mac"])
        if number != self.number + 1:
            self._missing(self.number + 1, number - 1)
            self.head = None
        if self.head is not None and not chain.equal(chain.mac_of(self.key, self.head, tuple(row)[:-1]), mac):
            self.faults.append(Fault(number, f"row {number} was edited, or put in from elsewhere"))
        self.number, self.head = number, mac
        self.rows += 1

    def end(self, trail: sqlite3.Row | None) -> None:
        """Checks where the trail says that it ends."""
        if trail is None:
            if self.rows:
                self.faults.append(Fault(self.number, "the row that seals the end of the trail is missing"))
            return
        sealed, head = int(trail["rows"]), bytes(trail["head"])
        if not chain.equal(chain.seal_of(self.key, sealed, head), bytes(trail["seal"])):
            self.faults.append(Fault(sealed, "the seal at the end of the trail was edited"))
        elif sealed > self.number:
            self._missing(self.number + 1, sealed)
        elif sealed < self.number:
            self.faults.append(Fault(sealed + 1, f"rows after {sealed} were put in from elsewhere"))
        elif self.head is not None and not chain.equal(head, self.head):
            self.faults.append(Fault(sealed, f"row {sealed} was edited, or put in from elsewhere"))

    def _missing(self, first: int, last: int) -> None:
        which = f"row {first} is" if first == last else f"rows {first} to {last} are"
        self.faults.append(Fault(first, f"{which} missing"))

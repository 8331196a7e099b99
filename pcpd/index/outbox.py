"""What the index owes the world outside: versions that are not in git yet, and effects to be done.

Index, ledger and git cannot share a transaction. So the index notes, in the transaction that makes a change,
what must follow from it; whoever drains the notes does each effect at least once.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pcpd.sqlite import Reads, Transaction


class Due(NamedTuple):
    """A file whose version on disk waits for a commit. Times in wall-clock nanoseconds."""

    file: str
    first_ns: int
    last_ns: int


class Owed(NamedTuple):
    """An effect that is still to be done; safe to do twice."""

    id: int
    kind: str
    payload: object


def mark(tx: Transaction, file: str, at_ns: int, *, pace: str = "page") -> None:
    """Notes that a file changed and waits for a commit; `pace` names the waiting times that apply to it."""
    mark_all(tx, [file], at_ns, pace=pace)


def mark_all(tx: Transaction, files: Iterable[str], at_ns: int, *, pace: str = "page") -> None:
    """Does for many files what `mark` does for one.

    Each mark is later than the one before, also where the clock stands or was set back: `clear` tells by it.
    """
    tx.executemany(
        "INSERT INTO to_commit VALUES (?1, ?2, ?3, ?3) ON CONFLICT (file) DO UPDATE SET"
        " pace = ?2, last_ns = max(last_ns + 1, ?3)",
        [(file, pace, at_ns) for file in files],
    )


def due(reads: Reads, now_ns: int, *, quiet_ns: int, longest_ns: int, pace: str = "page") -> list[Due]:
    """Gives the files that were quiet for `quiet_ns`, or have waited for `longest_ns`, by name.

    Marks from the future (the clock was set back) are due: they would wait for the clock otherwise.
    """
    rows = reads.execute(
        "SELECT file, first_ns, last_ns FROM to_commit WHERE pace = ?"
        " AND (last_ns <= ? OR first_ns <= ? OR last_ns > ?) ORDER BY file",
        (pace, now_ns - quiet_ns, now_ns - longest_ns, now_ns),
    )
    return [Due(*row) for row in rows]


def is_waiting(reads: Reads) -> bool:
    """Tells whether some file waits for a commit."""
    return bool(reads.execute("SELECT EXISTS (SELECT 1 FROM to_commit)").fetchone()[0])


def waiting(reads: Reads) -> list[Due]:
    """Gives every file that waits for a commit, of any pace, by name."""
    return [Due(*row) for row in reads.execute("SELECT file, first_ns, last_ns FROM to_commit ORDER BY file")]


def clear(tx: Transaction, committed: Iterable[Due]) -> None:
    """Notes that these versions are committed. A file marked again since it was seen keeps waiting."""
    rows = [(seen.file, seen.last_ns) for seen in committed]
    tx.executemany("DELETE FROM to_commit WHERE file = ? AND last_ns = ?", rows)
    tx.executemany("UPDATE to_commit SET first_ns = last_ns WHERE file = ? AND last_ns > ?", rows)


def add(tx: Transaction, kind: str, payload: object) -> int:
    """Notes an effect to be done after the transaction; `payload` is any JSON value. Gives its id."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return tx.execute("INSERT INTO outbox (kind, payload) VALUES (?, ?)", (kind, text)).lastrowid or 0


def pending(reads: Reads, kind: str, limit: int = 100) -> list[Owed]:
    """Gives the oldest effects of a kind that are not done."""
    rows = reads.execute(
        "SELECT id, kind, payload FROM outbox WHERE kind = ? ORDER BY id LIMIT ?", (kind, limit)
    )
    return [Owed(number, kind, json.loads(payload)) for number, kind, payload in rows]


def done(tx: Transaction, ids: Sequence[int]) -> None:
    """Forgets effects that are done."""
    tx.executemany("DELETE FROM outbox WHERE id = ?", [(number,) for number in ids])


def carry_over(old: Reads, new: Transaction) -> None:
    """Takes everything that is owed from one index to another: a rebuild settles nothing."""
    new.executemany(
        "INSERT OR REPLACE INTO to_commit VALUES (?, ?, ?, ?)",
        old.execute("SELECT file, pace, first_ns, last_ns FROM to_commit"),
    )
    new.executemany(
        "INSERT INTO outbox (kind, payload) VALUES (?, ?)",
        old.execute("SELECT kind, payload FROM outbox ORDER BY id"),
    )

"""What changed: one number a change of a page, kept per class of facts so that each reader is told their part alone.

A change is written in the transaction that makes it. Whatever a reader gets (changes, the last number, whether
old ones were dropped) follows from the classes that they may see, and from no other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from pcpd.index.pages import chunks
from pcpd.index.visible import where
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads, Transaction

KEPT = 10_000
"""Changes that are kept of each class."""
SLACK = 500
"""Changes over that before the oldest are dropped."""

Kind = Literal["created", "changed", "removed"]

_STATES = (
    "SELECT p.path, p.partition, p.category, p.sensitivity, p.hidden, f.version"
    " FROM pages AS p JOIN files AS f ON f.file = p.path || '.md'"
)


class State(NamedTuple):
    """A page as far as changes are concerned: the facts that access depends on, and the digest of its bytes."""

    partition: str
    category: str
    sensitivity: str
    hidden: int
    version: bytes

    @property
    def facts(self) -> tuple[object, ...]:
        """What names its class."""
        return self[:4]


@dataclass(frozen=True, slots=True)
class Change:
    """One change as one reader may know it. `version` in hex; None where the page is gone or was not read."""

    seq: int
    kind: Kind
    path: str
    version: str | None
    at: str
    category: str


def epoch(reads: Reads) -> int:
    """Gives what tells this index's numbers from another's; 0 while no changes are kept."""
    row = reads.execute("SELECT epoch FROM event_clock").fetchone()
    return 0 if row is None else int(row[0])


def begin(tx: Transaction, epoch: int) -> None:
    """Keeps changes from now on, under an epoch that no other index has (not 0)."""
    tx.execute("DELETE FROM event_clock")
    tx.execute("INSERT INTO event_clock VALUES (?, 0)", (epoch,))


def states(reads: Reads, files: Sequence[str] | None = None) -> dict[str, State]:
    """Gives the pages in these files as they stand in the index, by path; all pages for None."""
    if files is None:
        return {row[0]: State(*row[1:]) for row in reads.execute(_STATES)}
    wanted = {file.removesuffix(".md") for file in files if file.endswith(".md")}
    rows = _by_keys(reads, _STATES, "TRUE", [], wanted)
    return {row[0]: State(*row[1:]) for row in rows if row[0] in wanted}


def write(tx: Transaction, before: Mapping[str, State], after: Mapping[str, State], at: str) -> int:
    """Notes how pages differ from what they were; gives how many do. `at` is the time, RFC 3339 UTC."""
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    if not changed:
        return 0
    classes = _Classes(tx)
    seq = int(tx.execute("UPDATE event_clock SET seq = seq + ? RETURNING seq", (len(changed),)).fetchone()[0])
    rows: list[tuple[int, int, str, int, int, bytes | None, str]] = []
    for number, path in enumerate(sorted(changed), seq - len(changed) + 1):
        for facts, was, now, version in _halves(before, after, path):
            rows.append((classes[facts], number, path, was, now, version, at))
    tx.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    classes.count(row[0] for row in rows)
    return len(changed)


def following(reads: Reads, visible: Visibility, seq: int, limit: int) -> tuple[list[Change], int]:
    """Gives up to `limit` changes after a number as the reader may know them today, and the last number looked at.

    Fewer than `limit`: there are no more. Of a page that they may not read today, only that it is gone.
    """
    found: list[Change] = []
    while len(found) < limit:
        some = list(_some(reads, visible, seq, 2 * limit + 1))
        if not some:
            break
        known = _known_today(reads, visible, {change.path for change in some})
        for change in some:
            seq = change.seq
            if change.kind == "removed" or change.path in known:
                found.append(change)
                if len(found) == limit:
                    break
    return found, seq


def last(reads: Reads, visible: Visibility) -> int:
    """Gives the number of the last change that the reader may know of, kept or dropped."""
    condition, values = where(visible)
    row = reads.execute(
        "SELECT max(coalesce((SELECT max(seq) FROM events WHERE class = p.id), p.floor))"  # noqa: S608
        f" FROM event_classes AS p WHERE {condition}",
        values,
    ).fetchone()
    return row[0] or 0


def floor(reads: Reads, visible: Visibility) -> int:
    """Gives the number up to which changes that the reader might know of were dropped."""
    condition, values = where(visible)
    row = reads.execute(f"SELECT max(floor) FROM event_classes AS p WHERE {condition}", values).fetchone()  # noqa: S608
    return row[0] or 0


def _halves(
    before: Mapping[str, State], after: Mapping[str, State], path: str
) -> Iterator[tuple[tuple[object, ...], int, int, bytes | None]]:
    """Gives the class, `was`, `now` and version of each row that a page's change takes."""
    old, new = before.get(path), after.get(path)
    if new is not None:
        yield new.facts, int(old is not None and old.facts == new.facts), 1, new.version
    if old is not None and (new is None or old.facts != new.facts):
        yield old.facts, 1, 0, None


class _Classes:
    """The numbers of the classes, made as they are asked for, with how many rows each is given."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._numbers: dict[tuple[object, ...], int] = {}

    def __getitem__(self, facts: tuple[object, ...]) -> int:
        """Gives the number of a class."""
        if facts not in self._numbers:
            columns = "partition, category, sensitivity, hidden"
            self._tx.execute(f"INSERT OR IGNORE INTO event_classes ({columns}) VALUES (?, ?, ?, ?)", facts)  # noqa: S608
            row = self._tx.execute(f"SELECT id FROM event_classes WHERE ({columns}) = (?, ?, ?, ?)", facts)  # noqa: S608
            self._numbers[facts] = int(row.fetchone()[0])
        return self._numbers[facts]

    def count(self, numbers: Iterable[int]) -> None:
        """Notes that these classes got a row each time that they are named, and drops what is too old."""
        for number, many in _counted(numbers):
            row = self._tx.execute(
                "UPDATE event_classes SET kept = kept + ? WHERE id = ? RETURNING kept", (many, number)
            )
            kept = int(row.fetchone()[0])
            if kept > KEPT + SLACK:
                self._drop(number, kept - KEPT)

    def _drop(self, number: int, many: int) -> None:
        floor = self._tx.execute(
            "SELECT seq FROM events WHERE class = ? ORDER BY seq LIMIT 1 OFFSET ?", (number, many - 1)
        ).fetchone()[0]
        self._tx.execute("DELETE FROM events WHERE class = ? AND seq <= ?", (number, floor))
        self._tx.execute(
            "UPDATE event_classes SET kept = kept - ?, floor = ? WHERE id = ?", (many, floor, number)
        )


def _counted(numbers: Iterable[int]) -> list[tuple[int, int]]:
    return [(number, len(list(same))) for number, same in groupby(sorted(numbers))]


def _some(reads: Reads, visible: Visibility, seq: int, rows: int) -> Iterator[Change]:
    """Gives some of the changes after a number, by what the page's facts were before and after each."""
    condition, values = where(visible)
    found = reads.execute(
        "SELECT e.seq, e.path, e.was, e.now, lower(hex(e.version)), e.at, p.category"  # noqa: S608
        f" FROM event_classes AS p JOIN events AS e ON e.class = p.id WHERE {condition} AND e.seq > ?"
        " ORDER BY e.seq, e.now LIMIT ?",
        (*values, seq, rows),
    ).fetchall()
    if len(found) == rows and found[-1]["seq"] != found[-2]["seq"]:
        found.pop()  # what it belongs with may follow
    for number, same in groupby(found, lambda row: int(row["seq"])):
        yield _change(number, list(same))


def _change(number: int, halves: list[Any]) -> Change:
    was, now = any(half["was"] for half in halves), any(half["now"] for half in halves)
    kind: Kind = "removed" if not now else "changed" if was else "created"
    told = halves[-1]  # the class that the page is in now stands last
    return Change(
        number, kind, told["path"], (told[4] or None) if now else None, told["at"], told["category"]
    )


def _known_today(reads: Reads, visible: Visibility, paths: set[str]) -> set[str]:
    condition, values = where(visible)
    return {row[0] for row in _by_keys(reads, "SELECT p.path FROM pages AS p", condition, values, paths)}


def _by_keys(
    reads: Reads, select: str, condition: str, values: list[object], paths: Iterable[str]
) -> Iterator[Any]:
    """Gives the rows of the pages whose lookup form is that of one of the paths."""
    for chunk in chunks(sorted({lookup_key(path) for path in paths})):
        marks = ", ".join("?" * len(chunk))
        yield from reads.execute(f"{select} WHERE {condition} AND p.key IN ({marks})", [*values, *chunk])

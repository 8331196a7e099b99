"""BM25 over what the reader may see. The only module that knows FTS5's `bm25()`.

FTS5's function takes the number of pages, their mean length and each term's frequency from the whole table,
hidden rows included (engineering-facts.md, SQLite), and cannot be told otherwise. Where these are what is wanted, its
answer is taken. Else what a page itself contributes is had back from it, for its formula is known: with one phrase in
the expression, score = weight * t and t = 2.2 f / (f + 1.2 (0.25 + 0.75 length / mean)), hence f, the weighted
occurrences, a whole number; and a phrase that is named twice counts twice, so the difference of two statements is what
that phrase gave. From f and the length BM25 is made anew, with the statistics of the visible pages, or of those that
a cursor froze. So a score hangs on nothing but the page and these statistics; both ways agree to twelve digits.

Ranking costs about 1 us a match and unit, so callers bound the rows (`ordering`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pcpd.index.matching import Condition, Unit
from pcpd.sqlite import Reads

WEIGHTS = (10, 5, 1, 1)
"""Title, tags, extra, body: what one occurrence counts."""

K1, B = 1.2, 0.75  # FTS5's own constants: the way back needs just these
_MOST = 1_000  # occurrences; beyond, the way back loses digits, and BM25 has long been level
_LEAST = 1e-6  # FTS5's weight for what stands in more than half of the rows
_DIGITS = 12

Scored = tuple[int, str, float]
"""Number and path of a page, and its BM25, the better the higher."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of a set of pages: their number and tokens, and how many hold each unit."""

    pages: int
    tokens: int
    counts: tuple[int, ...]

    def weight(self, unit: int) -> float:
        """What a unit is worth: its inverse document frequency, above zero even where most pages hold it."""
        count = min(self.counts[unit], self.pages)
        return math.log(1 + (self.pages - count + 0.5) / (count + 0.5))

    def bm25_weight(self, unit: int) -> float:
        """The same as FTS5 takes it."""
        count = min(self.counts[unit], self.pages)
        weight = math.log((self.pages - count + 0.5) / (count + 0.5))
        return weight if weight > 0 else _LEAST

    @property
    def mean(self) -> float:
        """Mean tokens of a page."""
        return self.tokens / self.pages if self.pages and self.tokens else 1.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What the reader sees, for the text tables: `classes` of pages, None where that is every page."""

    classes: tuple[int, ...] | None
    pages: int
    tokens: int


def sight(conn: Reads, seen: Condition) -> Sight:
    """Gives what a condition on the facts of pages leaves to see; `classes` has the columns it speaks of."""
    rows = conn.execute(
        "SELECT p.id, p.pages, p.tokens FROM classes AS p"  # noqa: S608 - a condition of `visible`
        f" WHERE {seen.sql} AND p.pages > 0 ORDER BY p.id",
        seen.values,
    ).fetchall()
    pages, tokens = sum(row[1] for row in rows), sum(row[2] for row in rows)
    is_all = pages == conn.execute("SELECT coalesce(sum(pages), 0) FROM classes").fetchone()[0]
    return Sight(None if is_all else tuple(row[0] for row in rows), pages, tokens)


def statistics(conn: Reads, units: Sequence[Unit], seen: Sight) -> Statistics:
    """Counts over the pages that the reader sees; what else the query asks of them does not matter."""
    counts = tuple(_count(conn, unit, seen) for unit in units)
    return Statistics(seen.pages, seen.tokens, counts)


def own_statistics(conn: Reads, units: Sequence[Unit]) -> Statistics:
    """Counts over the whole table, as FTS5 does."""
    return statistics(conn, units, sight(conn, Condition()))


def seen_by(seen: Sight) -> str:
    """Gives the condition on alias `l` of lengths."""
    return f"l.class IN ({', '.join(map(str, seen.classes))})" if seen.classes is not None else "TRUE"


def scores(
    conn: Reads,
    units: Sequence[Unit],
    expression: Callable[[Sequence[str]], str],
    where: Condition,
    *,
    own: Statistics,
    wanted: Statistics,
) -> list[Scored]:
    """Scores pages by the wanted statistics; `own` are those of the whole table, for the same units.

    `expression` makes the FTS5 text of the units' texts. A unit counts once, however often it is named there.
    """
    if own != wanted or any(times > 1 for times in _mentions(units, expression)):
        return anew(conn, units, expression, where, own=own, wanted=wanted)
    rows = _scored(conn, expression([unit.stems for unit in units]), where)
    return [(page, path, round(score, _DIGITS)) for page, path, _, score in rows]


def anew(
    conn: Reads,
    units: Sequence[Unit],
    expression: Callable[[Sequence[str]], str],
    where: Condition,
    *,
    own: Statistics,
    wanted: Statistics,
) -> list[Scored]:
    """Answers as `scores`, always by the way back: one statement a unit."""
    texts = [unit.stems for unit in units]
    rows = _scored(conn, expression(texts), where)
    left = [row[3] for row in rows]
    totals = [0.0] * len(rows)
    mentions = _mentions(units, expression)
    for number in range(len(units)):
        if number == len(units) - 1:
            parts = left
        else:
            twice = [f"({text} AND {text})" if at == number else text for at, text in enumerate(texts)]
            again = _scored(conn, expression(twice), where)
            parts = [two[3] - one[3] for one, two in zip(rows, again, strict=True)]
            left = [rest - part for rest, part in zip(left, parts, strict=True)]
        once = [part / mentions[number] for part in parts]
        _add(totals, rows, once, (own, wanted, number))
    return [(row[0], row[1], round(total, _DIGITS)) for row, total in zip(rows, totals, strict=True)]


def _mentions(units: Sequence[Unit], expression: Callable[[Sequence[str]], str]) -> list[int]:
    """Counts how often the expression names each unit: `new blue or new` names the first one twice."""
    marks = [f"<{number}>" for number in range(len(units))]
    text = expression(marks)
    return [max(1, text.count(mark)) for mark in marks]


def score(occurrences: Sequence[int], tokens: int, wanted: Statistics) -> float:
    """Gives BM25 from the weighted occurrences of each unit in a page of so many tokens."""
    damping = K1 * (1 - B + B * tokens / wanted.mean)
    total = sum(
        wanted.bm25_weight(unit) * count * (K1 + 1) / (count + damping)
        for unit, count in enumerate(occurrences)
    )
    return round(total, _DIGITS)


def _add(
    totals: list[float],
    rows: Sequence[tuple[int, str, int, float]],
    parts: Sequence[float],
    of: tuple[Statistics, Statistics, int],
) -> None:
    """Adds to each total what the unit is worth by the wanted statistics, given what it was by FTS5's own."""
    own, wanted, unit = of
    theirs, ours = own.bm25_weight(unit), wanted.bm25_weight(unit) * (K1 + 1)
    fixed, slope, wanted_slope = K1 * (1 - B), K1 * B / own.mean, K1 * B / wanted.mean
    for at, (row, part) in enumerate(zip(rows, parts, strict=True)):
        level = part / theirs
        rest = K1 + 1 - level
        count = round(level * (fixed + slope * row[2]) / rest) if rest > 1e-12 else _MOST
        count = min(count, _MOST)
        totals[at] += ours * count / (count + fixed + wanted_slope * row[2])


def _count(conn: Reads, unit: Unit, seen: Sight) -> int:
    if seen.classes is None:
        sql = "SELECT count(*) FROM stems WHERE stems MATCH ?"
    else:
        sql = (
            "SELECT count(*) FROM stems AS s JOIN lengths AS l ON l.page = s.rowid"  # noqa: S608 - whole numbers
            f" WHERE stems MATCH ? AND {seen_by(seen)}"
        )
    return int(conn.execute(sql, (unit.stems,)).fetchone()[0])


def _scored(conn: Reads, expression: str, where: Condition) -> list[tuple[int, str, int, float]]:
    sql = (
        f"SELECT s.rowid, p.path, l.tokens, -bm25(stems, {', '.join(map(str, WEIGHTS))})"  # noqa: S608
        " FROM stems AS s JOIN lengths AS l ON l.page = s.rowid JOIN pages AS p ON p.id = s.rowid"
        f" WHERE stems MATCH ? AND {where.sql} ORDER BY s.rowid"
    )
    return conn.execute(sql, (expression, *where.values)).fetchall()

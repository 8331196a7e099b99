"""BM25 over what the reader may see. The only module that knows FTS5's `bm25()`.

FTS5's function takes the number of pages, their mean length and each term's frequency from the whole table,
hidden rows included (engineering-facts.md, SQLite), and it cannot be told otherwise. But its formula is known, so what
a page itself contributes can be had back from it: with one phrase in the expression, score = -idf * t with
t = 2.2 f / (f + 1.2 (0.25 + 0.75 length / mean)), hence f, the weighted number of occurrences, a whole number; and a
phrase that is named twice counts twice, so that the difference of two statements is what one phrase gave. From f and
the length `scores` makes BM25 anew with the statistics of the visible pages, or of those that a cursor froze. So a page's
score depends on nothing but the page and those statistics.

Ranking costs about 1 us a match and unit, so the caller bounds the rows (`search`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pcpd.index import visible
from pcpd.index.matching import Condition, Unit
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

WEIGHTS = (10, 5, 1, 1)
"""Title, tags, extra, body: what one occurrence counts."""

K1, B = 1.2, 0.75  # FTS5's own constants: the way back needs just these
_MOST = 1_000  # occurrences; beyond, the way back loses digits, and BM25 has long been level
_LEAST_IDF = 1e-6  # FTS5's floor for terms of more than half of the rows


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of a set of pages: their number and tokens, and how many hold each unit."""

    pages: int
    tokens: int
    counts: tuple[int, ...]

    def weight(self, unit: int) -> float:
        """The inverse document frequency, never below zero."""
        count = min(self.counts[unit], self.pages)
        return math.log(1 + (self.pages - count + 0.5) / (count + 0.5))

    @property
    def mean(self) -> float:
        """Mean tokens of a page."""
        return self.tokens / self.pages if self.pages and self.tokens else 1.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A page that matches: number, path, tokens, and for each unit the weighted occurrences."""

    page: int
    path: str
    tokens: int
    occurrences: tuple[int, ...]


def statistics(conn: Reads, units: Sequence[Unit], seen: Visibility) -> Statistics:
    """Counts over the pages that the reader sees (filters of the query do not matter)."""
    everything = _totals(conn, "(TRUE)", [])
    sight, values = visible.where(seen)
    # Two rows of sums instead of a scan: `classes` has the columns that a grant speaks of.
    pages, tokens = _totals(conn, sight, values)
    if pages == everything[0]:
        return Statistics(pages, tokens, _counts(conn, units))
    sql = (
        "SELECT count(*) FROM stems AS s JOIN pages AS p ON p.id = s.rowid"  # noqa: S608
        f" WHERE stems MATCH ? AND {sight}"
    )
    return Statistics(
        pages, tokens, tuple(conn.execute(sql, (unit.stems, *values)).fetchone()[0] for unit in units)
    )


def occurrences(
    conn: Reads,
    units: Sequence[Unit],
    expression: Callable[[Sequence[str]], str],
    where: Condition,
) -> list[Ranked]:
    """Gives the pages that match the expression of the units and the condition, in the order of their numbers.

    `expression` makes the FTS5 text of the units' texts, which it may name in any way, but each just once.
    """
    texts = [unit.stems for unit in units]
    pages, length = _totals(conn, "(TRUE)", [])
    mean = length / pages if pages else 1.0
    weights = [_fts5_weight(pages, count) for count in _counts(conn, units)]
    base = _scored(conn, expression(texts), where)
    parts: list[list[float]] = []
    for number in range(len(units) - 1):
        twice = [f"({text} AND {text})" if at == number else text for at, text in enumerate(texts)]
        scored = _scored(conn, expression(twice), where)
        parts.append([two[3] - one[3] for one, two in zip(base, scored, strict=True)])
    parts.append([row[3] - sum(part[at] for part in parts) for at, row in enumerate(base)])
    return [
        Ranked(
            page,
            path,
            tokens,
            tuple(_occurrences(parts[unit][at] / weights[unit], tokens / mean) for unit in range(len(units))),
        )
        for at, (page, path, tokens, _) in enumerate(base)
    ]


def score(page: Ranked, statistics: Statistics) -> float:
    """BM25 of a page, rounded so that nothing hangs on a last digit."""
    damping = K1 * (1 - B + B * page.tokens / statistics.mean)
    total = sum(
        statistics.weight(unit) * count * (K1 + 1) / (count + damping)
        for unit, count in enumerate(page.occurrences)
        if count
    )
    return round(total, 9)


def _totals(conn: Reads, sight: str, values: Sequence[object]) -> tuple[int, int]:
    row = conn.execute(
        f"SELECT coalesce(sum(p.pages), 0), coalesce(sum(p.tokens), 0) FROM classes AS p WHERE {sight}",  # noqa: S608
        values,
    ).fetchone()
    return int(row[0]), int(row[1])


def _counts(conn: Reads, units: Sequence[Unit]) -> tuple[int, ...]:
    sql = "SELECT count(*) FROM stems WHERE stems MATCH ?"
    return tuple(conn.execute(sql, (unit.stems,)).fetchone()[0] for unit in units)


def _scored(conn: Reads, expression: str, where: Condition) -> list[tuple[int, str, int, float]]:
    sql = (
        f"SELECT s.rowid, p.path, l.tokens, -bm25(stems, {', '.join(map(str, WEIGHTS))})"  # noqa: S608
        " FROM stems AS s JOIN pages AS p ON p.id = s.rowid JOIN lengths AS l ON l.page = s.rowid"
        f" WHERE stems MATCH ? AND {where.sql} ORDER BY s.rowid"
    )
    return [tuple(row) for row in conn.execute(sql, (expression, *where.values))]


def _fts5_weight(pages: int, count: int) -> float:
    weight = math.log((pages - count + 0.5) / (count + 0.5))
    return weight if weight > 0 else _LEAST_IDF


def _occurrences(part: float, relative_length: float) -> int:
    """Solves FTS5's formula for the number of occurrences."""
    damping = K1 * (1 - B + B * relative_length)
    rest = K1 + 1 - part
    return min(_MOST, round(part * damping / rest)) if rest > 0 else _MOST

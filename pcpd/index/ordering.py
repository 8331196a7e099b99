"""The order in which pages that hold some text are shown, and what of it a cursor must freeze.

Places come in stages: `best` (ranked, then looked at), `ranked`, and the rest by descending number of the row, which
is not kept in memory. Given what is frozen, each page's place hangs on that page alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

from pcpd.index import rank, snippets, tokens
from pcpd.index.matching import Condition, Matching, Unit, all_of, exact, loosened
from pcpd.sqlite import Reads

Mode = Literal["all", "any", "prefix"]
"""Pages hold all units, or any; or begin a word so."""

RANKED = 1_200
"""Matches that are ranked, divided by the number of words: the newest. BM25 costs 1 us for each of them and word."""
RANKED_LEAST = 400
OLDER = 100
"""As many of the newest with the very words, and with the words in title or tags, are ranked in any case.

From their texts: FTS5 would look through all matches for them, and once more for each word.
"""
ANY = 2_000
"""Matches of words of which any will do: rare words first, beyond this common ones are left out."""
PREFIX = 100
"""Newest pages that begin a word so, and newest with it in title or tags, that are ranked."""
BEST = 50
"""Best ranked pages whose texts are looked at."""
EXACT = 2.2
"""Worth of the very words, in units of their weight: as much as BM25 gives at most for all forms of them."""
EXACT_AMONG = 1.0
"""The same for one word of several, among the best."""
CLOSE = 2.0
"""Worth of the best passage: words that stand close together say more than words far apart."""


KEPT = 16 * 1024
"""Characters of a text that is kept for its snippet when it was looked at: 50 of longer ones would be felt."""
_LAST_ROW = 2**63 - 1
_HEAD = 4_096  # characters of title and tags that are looked at


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the order hangs on beside the pages. `newest…`: the least number of a row that is ranked so."""

    mode: Mode
    chosen: tuple[int, ...]
    statistics: rank.Statistics
    newest: int = 0
    newest_exact: int = 0
    newest_head: int = 0
    threshold: float = 0.0


Looked = dict[int, tuple[str, Sequence[tuple[int, int]]]]
"""Whole texts of pages that were looked at, and where the units stand in them, folded."""


class Place(NamedTuple):
    """Where a page stands. Sorts as it is shown."""

    stage: int
    below: float
    path: str
    page: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A query's text, ready for FTS5: the driving table, its expression, the condition, and what is ranked."""

    table: Literal["stems", "words"]
    expression: str
    head: str
    exact: str
    sight: rank.Sight
    where: Condition | None
    units: tuple[Unit, ...]
    groups: tuple[tuple[Unit, ...], ...]


def ask(found: Matching, seen: rank.Sight, mode: str, chosen: Sequence[int]) -> Asked:
    """Gives what to ask in a mode; `chosen` are the numbers of the loosened units that count in mode `any`."""
    if mode == "prefix":
        return Asked("words", found.prefix, f"head : ({found.prefix})", "", seen, found.where, (), ())
    if mode == "any":
        loose = loosened(found.groups)
        units = tuple(loose[number] for number in chosen)
        groups: tuple[tuple[Unit, ...], ...] = (units,)
    else:
        units, groups = found.units, found.groups
    expression = all_of([[unit.stems for unit in group] for group in groups])
    exactly = all_of([[f"({exact([unit])})" for unit in group] for group in groups])
    return Asked(
        "stems", expression, f"{{title tags}} : ({expression})", exactly, seen, found.where, units, groups
    )


def freeze(conn: Reads, found: Matching, seen: rank.Sight, *, is_question: bool) -> tuple[Frozen, int]:
    """Decides how the pages of a query are ordered, and counts them."""
    if not found.groups:
        asked = ask(found, seen, "prefix", ())
        frozen = Frozen("prefix", (), rank.statistics(conn, (), seen))
        total = count(conn, asked)
        if total > PREFIX:
            frozen = replace(
                frozen,
                newest=_nth(conn, asked, asked.expression, PREFIX),
                newest_head=_nth(conn, asked, asked.head, PREFIX),
            )
        return frozen, total
    loose = loosened(found.groups)
    if not is_question or len(loose) < 2:
        asked = ask(found, seen, "all", ())
        statistics = rank.statistics(conn, asked.units, seen)
        is_one_word = len(asked.units) == 1 and asked.where is None
        total = statistics.counts[0] if is_one_word else count(conn, asked)
        if total or len(loose) < 2:
            return _freeze_all(conn, asked, statistics, total), total
    return _freeze_any(conn, found, loose, seen)


def count(conn: Reads, asked: Asked) -> int:
    """Counts the pages, whether ranked or not."""
    sql = f"SELECT count(*) {_source(asked)}"
    return int(conn.execute(sql, (asked.expression, *_values(asked))).fetchone()[0])


def places(
    conn: Reads, asked: Asked, frozen: Frozen, own: rank.Statistics | None = None
) -> tuple[list[Place], Frozen, Looked]:
    """Gives the ranked places in order, the threshold of the best, where it was not frozen yet, and texts looked at.

    `own`: the statistics of the whole table for the units, where they are known already.
    """
    if frozen.mode == "prefix":
        return sorted(_prefix_places(conn, asked, frozen)), frozen, {}
    own = own or rank.own_statistics(conn, asked.units)
    ranked = _ranked_any if frozen.mode == "any" else _ranked_all
    rows = ranked(conn, asked, frozen, own)
    very: set[int] = set()
    if frozen.mode == "all":
        older, very = _ranked_older(conn, asked, frozen)
        rows += older
        very |= _very_words(conn, asked, frozen.newest)
    bonus = EXACT * sum(map(frozen.statistics.weight, range(len(asked.units))))
    scored = sorted(
        Place(1, -score - (bonus if page in very else 0.0), path, page) for page, path, score in rows
    )
    if not frozen.threshold:
        frozen = replace(frozen, threshold=_threshold([-place.below for place in scored]))
    best = [place for place in scored if -place.below >= frozen.threshold]
    plain = {page: score for page, _, score in rows}
    looked: Looked = {}
    known = [(place, plain[place.page]) for place in best]
    ordered = sorted(_look(conn, known, asked.units, frozen.statistics, looked))
    return [*ordered, *scored[len(best) :]], frozen, looked


def rest(conn: Reads, asked: Asked, before: int) -> Iterator[tuple[int, str]]:
    """Gives number and path of all pages by descending number, below `before`, ranked or not."""
    sql = f"SELECT s.rowid, p.path {_source(asked, wide=True)} AND s.rowid < ? ORDER BY s.rowid DESC"
    for row in conn.execute(sql, (asked.expression, *_values(asked), before)):
        yield row[0], row[1]


def _freeze_all(conn: Reads, asked: Asked, statistics: rank.Statistics, total: int) -> Frozen:
    frozen = Frozen("all", (), statistics)
    ranked = max(RANKED // len(asked.units), RANKED_LEAST)
    if total <= ranked:
        return frozen
    newest = _nth(conn, asked, asked.expression, ranked)
    newest_head = min(newest, _nth(conn, asked, asked.head, OLDER))
    newest_exact = newest
    if all(unit.term.kind == "word" for unit in asked.units):  # else words alone do not make a match
        newest_exact = min(newest, _nth(conn, asked, asked.exact, OLDER, table="words"))
    return replace(frozen, newest=newest, newest_head=newest_head, newest_exact=newest_exact)


def _freeze_any(
    conn: Reads, found: Matching, loose: tuple[Unit, ...], seen: rank.Sight
) -> tuple[Frozen, int]:
    statistics = rank.statistics(conn, loose, seen)
    counts = statistics.counts
    held = sorted((number for number in range(len(loose)) if counts[number]), key=lambda n: (counts[n], n))
    chosen: list[int] = []
    matches = 0
    for number in held:
        matches += counts[number]
        if chosen and matches > ANY:
            break
        chosen.append(number)
    frozen = Frozen(
        "any",
        tuple(chosen),
        rank.Statistics(statistics.pages, statistics.tokens, tuple(counts[number] for number in chosen)),
    )
    if not chosen:
        return frozen, 0
    asked = ask(found, seen, "any", chosen)
    total = count(conn, asked)
    if total > ANY:
        frozen = replace(frozen, newest=_nth(conn, asked, asked.expression, ANY))
    return frozen, total


def _ranked_all(conn: Reads, asked: Asked, frozen: Frozen, own: rank.Statistics) -> list[rank.Scored]:
    where = _where(asked, "s.rowid >= ?", (frozen.newest,))
    expression = partial(_expression, asked.groups)
    return rank.scores(conn, asked.units, expression, where, own=own, wanted=frozen.statistics)


def _ranked_older(conn: Reads, asked: Asked, frozen: Frozen) -> tuple[list[rank.Scored], set[int]]:
    """Ranks the older pages with the words in title or tags, or with the very words, from their texts.

    Gives also those that hold all words as typed.
    """
    pages: dict[int, tuple[str, int]] = {}
    for table, expression, newest in (
        ("stems", asked.head, frozen.newest_head),
        ("words", asked.exact, frozen.newest_exact),
    ):
        if newest < frozen.newest:
            pages |= _found(conn, asked, table, expression, (newest, frozen.newest))
    shown = texts(conn, list(pages), snippets.RANKED)
    terms = [unit.term for unit in asked.units]
    rows, very = [], set()
    for page, (path, length) in pages.items():
        columns = [tokens.fold(column) for column in shown[page]]
        counts, is_very = snippets.occurrences(columns, rank.WEIGHTS[:2] + rank.WEIGHTS[3:], terms)
        rows.append((page, path, rank.score(counts, length, frozen.statistics)))
        very |= {page} if is_very else set()
    return rows, very


def _found(
    conn: Reads, asked: Asked, table: str, expression: str, between: tuple[int, int]
) -> dict[int, tuple[str, int]]:
    """Gives path and length of the pages in a range of rows that match an expression."""
    sql = (
        f"SELECT s.rowid, p.path, l.tokens {_source(asked, table, wide=True)}"
        " AND s.rowid >= ? AND s.rowid < ?"
    )
    rows = conn.execute(sql, (expression, *_values(asked), *between))
    return {page: (path, length) for page, path, length in rows}


def _ranked_any(conn: Reads, asked: Asked, frozen: Frozen, own: rank.Statistics) -> list[rank.Scored]:
    """Scores pages that hold any unit: at once by FTS5's own statistics, else each unit alone."""
    where = _where(asked, "s.rowid >= ?", (frozen.newest,))
    statistics = frozen.statistics
    if own == statistics:
        return rank.scores(conn, asked.units, " OR ".join, where, own=own, wanted=own)
    totals: dict[int, tuple[str, float]] = {}
    for number, unit in enumerate(asked.units):
        mine, theirs = (replace(them, counts=them.counts[number : number + 1]) for them in (own, statistics))
        for page, path, score in rank.scores(conn, [unit], "".join, where, own=mine, wanted=theirs):
            totals[page] = (path, totals.get(page, ("", 0.0))[1] + score)
    return [(page, path, round(score, 12)) for page, (path, score) in totals.items()]


def _very_words(conn: Reads, asked: Asked, newest: int) -> set[int]:
    """Gives the newest pages that hold all words as typed."""
    sql = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ?"
    return {row[0] for row in conn.execute(sql, (asked.exact, newest))}


def _threshold(scores: Sequence[float]) -> float:
    """Gives the least score of the best: of `BEST` pages, or of those before a crowd of equals."""
    if len(scores) <= BEST:
        return 1e-12
    edge = scores[BEST - 1]
    crowd = sum(score == edge for score in scores)
    if crowd <= BEST:
        return edge or 1e-12
    better = [score for score in scores if score > edge]
    return better[-1] if better else max(scores) + 1.0


def _look(
    conn: Reads,
    best: Sequence[tuple[Place, float]],
    units: Sequence[Unit],
    statistics: rank.Statistics,
    looked: Looked,
) -> Iterator[Place]:
    """Orders the best, given with their BM25, by what their texts show; adds to `looked` those that it keeps."""
    shown = texts(conn, [place.page for place, _ in best], snippets.RANKED)
    weights = [statistics.weight(number) for number in range(len(units))]
    terms = [unit.term for unit in units]
    among = EXACT if len(units) == 1 else EXACT_AMONG
    for place, bm25 in best:
        title, tags, body = shown[place.page]
        seen = snippets.best(tokens.fold(f"{title}\n{tags}"), tokens.fold(body), terms, weights)
        if len(body) < KEPT:
            looked[place.page] = body, seen.found
        very = [weight for weight, is_very in zip(weights, seen.exact, strict=True) if is_very]
        value = bm25 + among * sum(very)
        if len(units) > 1:
            value += CLOSE * seen.worth
        yield Place(0, -round(value, 12), place.path, place.page)


def _prefix_places(conn: Reads, asked: Asked, frozen: Frozen) -> Iterator[Place]:
    """Ranks the newest that begin a word so by BM25 over what their texts show; `words` keeps no places."""
    last = asked.expression.rpartition('"')[0].rpartition('"')[2]
    pages = _found(conn, asked, "words", asked.expression, (frozen.newest, _LAST_ROW))
    pages |= _found(conn, asked, "words", asked.head, (frozen.newest_head, _LAST_ROW))
    shown = texts(conn, list(pages), snippets.RANKED)
    one = replace(frozen.statistics, counts=(0,))
    for number, (path, length) in pages.items():
        columns = [snippets.beginnings(tokens.fold(column), last) for column in shown[number]]
        held = sum(weight * many for weight, many in zip((10, 5, 1), columns, strict=True))
        yield Place(0, -rank.score([held], length, one), path, number)


def texts(conn: Reads, pages: Sequence[int], length: int) -> Mapping[int, tuple[str, str, str]]:
    """Gives title, tags and text of pages, the beginning of each."""
    found: dict[int, tuple[str, str, str]] = {}
    for start in range(0, len(pages), 500):
        chunk = pages[start : start + 500]
        sql = (
            "SELECT page, substr(title, 1, ?), substr(tags, 1, ?), substr(body, 1, ?) FROM texts"  # noqa: S608 - only question marks
            f" WHERE page IN ({', '.join('?' * len(chunk))})"
        )
        for number, title, tags, body in conn.execute(sql, (_HEAD, _HEAD, length, *chunk)):
            found[number] = (title, tags, body)
    return found


def _expression(groups: Sequence[Sequence[Unit]], texts: Sequence[str]) -> str:
    """Makes the expression of groups with each unit named by its text; a unit that stands twice is one."""
    units = list(dict.fromkeys(unit for group in groups for unit in group))
    named = dict(zip(units, texts, strict=True))
    return all_of([[named[unit] for unit in group] for group in groups])


def _nth(
    conn: Reads, asked: Asked, expression: str, number: int, *, below: int | None = None, table: str = ""
) -> int:
    """Gives the row of the nth newest page that matches; 0 where there are fewer."""
    limit = "" if below is None else " AND s.rowid < ?"
    values = (expression, *_values(asked), *(() if below is None else (below,)), number - 1)
    sql = f"SELECT s.rowid {_source(asked, table)}{limit} ORDER BY s.rowid DESC LIMIT 1 OFFSET ?"
    row = conn.execute(sql, values).fetchone()
    return int(row[0]) if row else 0


def _source(asked: Asked, table: str = "", *, wide: bool = False) -> str:
    """Gives FROM and WHERE, with no table that is not needed: joins are what counting a common word costs."""
    name = table or asked.table
    lengths = " JOIN lengths AS l ON l.page = s.rowid"
    pages = " JOIN pages AS p ON p.id = s.rowid"
    return (
        f"FROM {name} AS s{lengths if wide or asked.sight.classes is not None else ''}"
        f"{pages if wide or asked.where else ''} WHERE {name} MATCH ? AND {rank.seen_by(asked.sight)}"
        f"{f' AND {asked.where.sql}' if asked.where else ''}"
    )


def _where(asked: Asked, sql: str, values: Sequence[object]) -> Condition:
    """Gives what is visible, asked for and in these bounds, for a statement that has all tables."""
    more = f" AND {asked.where.sql}" if asked.where else ""
    return Condition(f"({rank.seen_by(asked.sight)}{more} AND {sql})", (*_values(asked), *values))


def _values(asked: Asked) -> tuple[object, ...]:
    return asked.where.values if asked.where else ()


__all__ = ["Asked", "Frozen", "Looked", "Place", "ask", "count", "freeze", "places", "rest", "texts"]

"""The order in which pages that hold some text are shown, and what of it a cursor must freeze.

Places come in stages: `best` (ranked, then looked at), `ranked`, and the rest by descending number of the row, which
is not kept in memory. Given what is frozen, each page's place hangs on that page alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pcpd.index import rank, snippets, tokens
from pcpd.index.matching import Condition, Matching, Unit, all_of, exact, loosened, phrase
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

RANKED = 1_500
"""Matches that are ranked: the newest; BM25 costs 1 us for each of them and each word."""
RANKED_MORE = 400
"""Older ones that are ranked too: with the very words, and with the words in title or tags."""
ANY = 3_000
"""Matches of words of which any will do: rare words first, beyond this common ones are left out."""
PREFIX = 100
"""Newest pages that begin a word so, and newest with it in title or tags, that are ranked."""
BEST = 50
"""Best ranked pages whose texts are looked at."""
EXACT = 2.2
"""Worth of the very word, in units of its weight: as much as BM25 gives at most for all forms of it."""
CLOSE = 2.0
"""Worth of the best passage: as words that stand close together say more than words far apart."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """What the order hangs on beside the pages. `newest…`: the least number of a row that is ranked so."""

    mode: Literal["all", "any", "prefix"]
    chosen: tuple[int, ...]
    statistics: rank.Statistics
    newest: int = 0
    newest_exact: int = 0
    newest_head: int = 0
    threshold: float = 0.0


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
    where: Condition
    units: tuple[Unit, ...]
    groups: tuple[tuple[Unit, ...], ...]


def ask(found: Matching, mode: str, chosen: Sequence[int]) -> Asked:
    """Gives what to ask in a mode; `chosen` are the numbers of the loosened units that count in mode `any`."""
    if mode == "prefix":
        return Asked("words", found.prefix, f"head : ({found.prefix})", "", found.where, (), ())
    if mode == "any":
        loose = loosened(found.groups)
        units = tuple(loose[number] for number in chosen)
        groups: tuple[tuple[Unit, ...], ...] = (units,)
    else:
        units, groups = found.units, found.groups
    expression = all_of([[unit.stems for unit in group] for group in groups])
    exactly = all_of([[f"({exact([unit])})" for unit in group] for group in groups])
    return Asked("stems", expression, f"{{title tags}} : ({expression})", exactly, found.where, units, groups)


def freeze(conn: Reads, found: Matching, seen: Visibility, *, is_question: bool) -> tuple[Frozen, int]:
    """Decides how the pages of a query are ordered, and counts them."""
    if not found.groups:
        asked = ask(found, "prefix", ())
        frozen = Frozen("prefix", (), rank.statistics(conn, (), seen))
        total = count(conn, asked)
        if total > PREFIX:
            frozen = _replace(
                frozen,
                newest=_nth(conn, asked, asked.expression, PREFIX),
                newest_head=_nth(conn, asked, asked.head, PREFIX),
            )
        return frozen, total
    loose = loosened(found.groups)
    if not is_question or len(loose) < 2:
        asked = ask(found, "all", ())
        total = count(conn, asked)
        if total or len(loose) < 2:
            return _freeze_all(conn, asked, seen, total), total
    return _freeze_any(conn, found, loose, seen)


def count(conn: Reads, asked: Asked) -> int:
    """Counts the pages, whether ranked or not."""
    sql = f"SELECT count(*) {_source(asked)}"
    return int(conn.execute(sql, (asked.expression, *asked.where.values)).fetchone()[0])


def places(conn: Reads, asked: Asked, frozen: Frozen) -> tuple[list[Place], Frozen]:
    """Gives the ranked places in order, and the threshold of the best, where it was not frozen yet."""
    if frozen.mode == "prefix":
        return sorted(_prefix_places(conn, asked, frozen)), frozen
    rows = _ranked_any(conn, asked, frozen) if frozen.mode == "any" else _ranked_all(conn, asked, frozen)
    very = _very_words(conn, asked, rows) if frozen.mode == "all" else set()
    bonus = EXACT * sum(map(frozen.statistics.weight, range(len(asked.units))))
    scored = [
        (rank.score(row, frozen.statistics) + (bonus if row.page in very else 0.0), row) for row in rows
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1].path))
    if not frozen.threshold:
        frozen = _replace(frozen, threshold=_threshold([value for value, _ in scored]))
    best = [pair for pair in scored if pair[0] >= frozen.threshold]
    ordered = sorted(_look(conn, best, asked.units, frozen.statistics))
    ordered += [Place(1, -value, row.path, row.page) for value, row in scored[len(best) :]]
    return ordered, frozen


def rest(conn: Reads, asked: Asked, before: int) -> Iterator[tuple[int, str]]:
    """Gives number and path of all pages by descending number, below `before`, ranked or not."""
    sql = f"SELECT s.rowid, p.path {_source(asked)} AND s.rowid < ? ORDER BY s.rowid DESC"
    for row in conn.execute(sql, (asked.expression, *asked.where.values, before)):
        yield row[0], row[1]


def _freeze_all(conn: Reads, asked: Asked, seen: Visibility, total: int) -> Frozen:
    frozen = Frozen("all", (), rank.statistics(conn, asked.units, seen))
    if total <= RANKED:
        return frozen
    newest = _nth(conn, asked, asked.expression, RANKED)
    return _replace(
        frozen,
        newest=newest,
        newest_head=_nth(conn, asked, asked.head, RANKED_MORE, below=newest),
        newest_exact=_nth(conn, asked, asked.exact, RANKED_MORE, below=newest, table="words"),
    )


def _freeze_any(
    conn: Reads, found: Matching, loose: tuple[Unit, ...], seen: Visibility
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
    asked = ask(found, "any", chosen)
    total = count(conn, asked)
    if total > ANY:
        frozen = _replace(frozen, newest=_nth(conn, asked, asked.expression, ANY))
    return frozen, total


def _ranked_all(conn: Reads, asked: Asked, frozen: Frozen) -> list[rank.Ranked]:
    def ranked(where: Condition) -> list[rank.Ranked]:
        return rank.occurrences(conn, asked.units, lambda texts: _expression(asked.groups, texts), where)

    if not frozen.newest:
        return ranked(asked.where)
    rows = ranked(_both(asked.where, "s.rowid >= ?", frozen.newest))
    oldest = min(frozen.newest_exact or frozen.newest, frozen.newest_head or frozen.newest)
    if oldest < frozen.newest:
        more = _both(asked.where, "s.rowid >= ? AND s.rowid < ?", oldest, frozen.newest)
        rows += ranked(
            _both(
                more,
                "(+s.rowid IN (SELECT rowid FROM stems WHERE stems MATCH ? AND rowid >= ? AND rowid < ?)"
                " OR +s.rowid IN (SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ?))",
                asked.head, frozen.newest_head or frozen.newest, frozen.newest,
                asked.exact, frozen.newest_exact or frozen.newest, frozen.newest,
            )
        )  # fmt: skip
    return rows


def _ranked_any(conn: Reads, asked: Asked, frozen: Frozen) -> list[rank.Ranked]:
    """Asks for each unit alone and joins the answers: a page must hold one of them."""
    where = _both(asked.where, "s.rowid >= ?", frozen.newest)
    pages: dict[int, rank.Ranked] = {}
    counts: dict[int, list[int]] = {}
    for number, unit in enumerate(asked.units):
        for row in rank.occurrences(conn, [unit], lambda texts: texts[0], where):
            pages.setdefault(row.page, row)
            counts.setdefault(row.page, [0] * len(asked.units))[number] = row.occurrences[0]
    return [
        rank.Ranked(page, row.path, row.tokens, tuple(counts[page])) for page, row in sorted(pages.items())
    ]


def _very_words(conn: Reads, asked: Asked, rows: Sequence[rank.Ranked]) -> set[int]:
    """Gives the pages among the rows that hold all words as typed."""
    if not rows:
        return set()
    pages = [row.page for row in rows]
    sql = "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid <= ?"
    return {row[0] for row in conn.execute(sql, (asked.exact, min(pages), max(pages)))}


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
    best: Sequence[tuple[float, rank.Ranked]],
    units: Sequence[Unit],
    statistics: rank.Statistics,
) -> Iterator[Place]:
    """Orders the best by what their texts show."""
    shown = texts(conn, [row.page for _, row in best], snippets.RANKED)
    weights = [statistics.weight(number) for number in range(len(units))]
    terms = [unit.term for unit in units]
    for _, row in best:
        title, tags, body = shown[row.page]
        seen = snippets.best(tokens.fold(f"{title}\n{tags}"), tokens.fold(body), terms, weights)
        value = rank.score(row, statistics)
        value += EXACT * sum(weight for weight, very in zip(weights, seen.exact, strict=True) if very)
        if len(units) > 1:
            value += CLOSE * seen.worth
        yield Place(0, -round(value, 9), row.path, row.page)


def _prefix_places(conn: Reads, asked: Asked, frozen: Frozen) -> Iterator[Place]:
    """Ranks the newest that begin a word so by BM25 over what their texts show; `words` keeps no places."""
    last = asked.expression.rpartition('"')[0].rpartition('"')[2]
    pages: dict[int, tuple[str, int]] = {}
    for expression, newest in ((asked.expression, frozen.newest), (asked.head, frozen.newest_head)):
        sql = f"SELECT s.rowid, p.path, l.tokens {_source(asked)} AND s.rowid >= ?"
        sql = sql.replace(" WHERE ", " JOIN lengths AS l ON l.page = s.rowid WHERE ", 1)
        for number, path, length in conn.execute(sql, (expression, *asked.where.values, newest)):
            pages[number] = (path, length)
    shown = texts(conn, list(pages), snippets.RANKED)
    one = rank.Statistics(frozen.statistics.pages, frozen.statistics.tokens, (0,))
    for number, (path, length) in pages.items():
        columns = [snippets.beginnings(tokens.fold(column), last) for column in shown[number]]
        held = sum(weight * many for weight, many in zip((10, 5, 1), columns, strict=True))
        score = rank.score(rank.Ranked(number, path, length, (held,)), one)
        yield Place(0, -score, path, number)


def texts(conn: Reads, pages: Sequence[int], length: int) -> Mapping[int, tuple[str, str, str]]:
    """Gives title, tags and the beginning of the text of pages."""
    found: dict[int, tuple[str, str, str]] = {}
    for start in range(0, len(pages), 500):
        chunk = pages[start : start + 500]
        sql = (
            "SELECT page, title, tags, substr(body, 1, ?) FROM texts"  # noqa: S608 - only question marks
            f" WHERE page IN ({', '.join('?' * len(chunk))})"
        )
        for number, title, tags, body in conn.execute(sql, (length, *chunk)):
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
    values = (expression, *asked.where.values, *(() if below is None else (below,)), number - 1)
    sql = f"SELECT s.rowid {_source(asked, table)}{limit} ORDER BY s.rowid DESC LIMIT 1 OFFSET ?"
    row = conn.execute(sql, values).fetchone()
    return int(row[0]) if row else 0


def _source(asked: Asked, table: str = "") -> str:
    name = table or asked.table
    return f"FROM {name} AS s JOIN pages AS p ON p.id = s.rowid WHERE {name} MATCH ? AND {asked.where.sql}"


def _both(where: Condition, sql: str, *values: object) -> Condition:
    return Condition(f"({where.sql} AND {sql})", (*where.values, *values))


def _replace(frozen: Frozen, **changes: object) -> Frozen:
    from dataclasses import replace

    return replace(frozen, **changes)  # type: ignore[arg-type]


__all__ = ["Asked", "Frozen", "Place", "ask", "count", "freeze", "phrase", "places", "rest", "texts"]

"""Full-text search: pages by words and filters, best first, in pieces (the language stands in `query`).

1. Pages that hold all words, in any English form, are found; where there is none, and for questions in plain
   words, pages that hold any of them. Without text, pages come by time, newest first: an empty query lists
   what is recent.
2. They are ranked by BM25 over what the reader sees (`rank`), within bounds that keep common words fast
   (`ordering`). Totals are exact, and every page found comes at last.
3. The best are ordered again by what their texts show: the very words, and the passage that holds most.

Cursors freeze what the order hangs on beside the pages themselves (`cursors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pcpd.index import cursors, ordering, rank, snippets
from pcpd.index.matching import Matching, all_hold, loosened, matching
from pcpd.index.ordering import Asked, Frozen, Looked, Place
from pcpd.index.query import Filter, Query, Term, parse
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

MOST = 1_000
"""Results in one piece, at most."""

_LAST_ROW = 2**63 - 1
_FAR = 1e12  # no score is near it; nor are infinities and what is no number
_REST = 2  # the stage after `best` and `ranked`


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that was found. `score` compares within one answer; `updated` is RFC 3339 UTC.

    `origin` and `review` say who wrote the page and whether a person has looked at it (pages.md §3).
    """

    path: str
    title: str
    type: str
    snippet: str
    score: float
    updated: str
    origin: str
    review: str | None
    category: str


@dataclass(frozen=True, slots=True)
class Results:
    """A piece of the answer. `total` counts all pages found, `cursor` is None at the end."""

    results: tuple[Hit, ...]
    total: int
    cursor: str | None


def search(
    conn: Reads, text: str, visible: Visibility, *, limit: int = 20, cursor: str | None = None
) -> Results:
    """Finds pages. Raises `Invalid` (`cursor.invalid`) for a cursor that was not made for this query.

    Proposed and rejected pages are left out unless the query says `is:proposed` and the reader may see them.
    """
    query = parse(text)
    seen = visible if _asks_for_proposals(query) else replace(visible, hidden=False)
    found = matching(conn, query, seen)
    state = None if cursor is None else cursors.decode(text, cursor)
    size = max(1, min(limit, MOST))
    if not found.groups and not found.prefix:
        return _by_time(conn, text, found, size, state)
    sight = rank.sight(conn, found.sight)
    if state is None:
        frozen, total = ordering.freeze(conn, found, sight, is_question=query.is_question)
        asked = ordering.ask(found, sight, frozen.mode, frozen.chosen)
        after = None
    else:
        frozen, after = _thawed(state, found)
        asked = ordering.ask(found, sight, frozen.mode, frozen.chosen)
        total = ordering.count(conn, asked) if asked.expression else 0
    if not total:
        return Results((), 0, None)
    own = frozen.statistics if state is None and sight.classes is None else None
    places, frozen, looked = ordering.places(conn, asked, frozen, own)
    piece = _piece(conn, asked, places, after, size) if len(places) < total else _after(places, after, size)
    more = len(piece) > size
    terms = _terms(query, asked)
    weights = _weights(frozen, len(asked.units), len(terms))
    hits = _hits(conn, piece[:size], terms, weights, looked if len(terms) == len(asked.units) else {})
    following = cursors.encode(text, _state(frozen, piece[size - 1])) if more else None
    return Results(tuple(hits), total, following)


def _asks_for_proposals(query: Query) -> bool:
    return any(
        isinstance(piece, Filter) and piece.key == "is" for clause in query.clauses for piece in clause
    )


def _after(places: list[Place], after: Place | None, size: int) -> list[Place]:
    """Gives the ranked places that follow one, one more than asked for where there are more."""
    return [place for place in places if after is None or place[:3] > after[:3]][: size + 1]


def _piece(conn: Reads, asked: Asked, places: list[Place], after: Place | None, size: int) -> list[Place]:
    """Gives the places that follow one, one more than asked for where there are more."""
    if after is None or after.stage < _REST:
        following = _after(places, after, size)
        if len(following) > size:
            return following
        before = _LAST_ROW
    else:
        following, before = [], after.page
    ranked = {place.page for place in places}
    rest = (
        Place(_REST, 0.0, path, page)
        for page, path in ordering.rest(conn, asked, before)
        if page not in ranked
    )
    return [*following, *islice(rest, size + 1 - len(following))]


def _hits(
    conn: Reads, places: Sequence[Place], terms: Sequence[Term], weights: Sequence[float], looked: Looked
) -> list[Hit]:
    """Gives the hits of places. One text at a time is held: twenty of ten MiB would be felt.

    Texts in `looked` have been read already, and the terms found in them.
    """
    scores = {place.page: round(-place.below, 6) + 0.0 for place in places}
    unread = [page for page in scores if page not in looked]
    marks, few = ", ".join("?" * len(scores)), ", ".join("?" * len(unread))
    rows = conn.execute(
        "SELECT p.id, p.path, p.title, p.type, p.updated, coalesce(p.origin, 'user'), p.review_state,"  # noqa: S608
        f" p.category, CASE WHEN p.id IN ({few}) THEN t.body END FROM pages AS p"
        f" JOIN texts AS t ON t.page = p.id WHERE p.id IN ({marks})",
        [*unread, *scores],
    )
    hits = {}
    for page, path, title, type_, updated, origin, review, category, body in rows:
        seen = looked.get(page)
        snippet = snippets.around(*seen, weights) if seen else snippets.snippet(body, terms, weights)
        hits[page] = Hit(path, title, type_, snippet, scores[page], updated, origin, review, category)
    return [hits[place.page] for place in places]


def _weights(frozen: Frozen, units: int, terms: int) -> list[float]:
    """Gives what snippets prefer: rare words. What is not ranked counts as a word in every second page."""
    ranked = [frozen.statistics.weight(number) + 0.01 for number in range(units)]
    return ranked + [1.0] * (terms - units)


def _terms(query: Query, asked: Asked) -> list[Term]:
    """Gives what snippets look for: what is ranked, then prefixes and literals."""
    others = [
        piece
        for clause in query.clauses
        for piece in clause
        if isinstance(piece, Term) and piece.kind in {"prefix", "literal"}
    ]
    return [unit.term for unit in asked.units] + others


def _by_time(conn: Reads, text: str, found: Matching, size: int, state: dict[str, object] | None) -> Results:
    """Lists the pages of a query without words, newest first."""
    where = found.sight if found.where is None else all_hold([found.sight, found.where])
    counted = f"SELECT count(*) FROM pages AS p WHERE {where.sql}"  # noqa: S608 - made in `matching`
    total = conn.execute(counted, where.values).fetchone()[0]
    following, values = "", where.values
    if state is not None:
        updated, path = _time_place(state)
        following = " AND (p.updated < ? OR (p.updated = ? AND p.path > ?))"
        values = (*values, updated, updated, path)
    rows = conn.execute(
        "SELECT p.id, p.path, p.updated FROM pages AS p"  # noqa: S608
        f" WHERE {where.sql}{following} ORDER BY p.updated DESC, p.path LIMIT ?",
        (*values, size + 1),
    ).fetchall()
    terms = [piece for clause in parse(text).clauses for piece in clause if isinstance(piece, Term)]
    places = [Place(_REST, 0.0, row[1], row[0]) for row in rows[:size]]
    hits = tuple(_hits(conn, places, terms, [1.0] * len(terms), {}))
    last = rows[size - 1] if len(rows) > size else None
    cursor = cursors.encode(text, {"u": last[2], "p": last[1]}) if last else None
    return Results(hits, int(total), cursor)


def _time_place(state: dict[str, object]) -> tuple[str, str]:
    updated, path = state.get("u"), state.get("p")
    if not isinstance(updated, str) or not isinstance(path, str):
        cursors.refuse()
    return updated, path


def _state(frozen: Frozen, last: Place) -> dict[str, object]:
    statistics = frozen.statistics
    return {
        "m": frozen.mode, "c": frozen.chosen, "n": [statistics.pages, statistics.tokens, *statistics.counts],
        "b": [frozen.newest, frozen.newest_exact, frozen.newest_head], "t": frozen.threshold, "l": last,
    }  # fmt: skip


def _thawed(state: dict[str, object], found: Matching) -> tuple[Frozen, Place]:
    """Reads a state back and checks that it fits the query. Forged numbers only disorder the forger's answer."""
    last = _place(state.get("l"))
    chosen, numbers, bounds = (_integers(state.get(key)) for key in "cnb")
    mode = _mode(state.get("m"), found, chosen)
    units = len(found.units) if mode == "all" else len(chosen)
    if len(numbers) != 2 + units or len(bounds) != 3:
        cursors.refuse()
    statistics = rank.Statistics(numbers[0], numbers[1], numbers[2:])
    newest, newest_exact, newest_head = bounds
    threshold = _number(state.get("t"))
    return Frozen(mode, chosen, statistics, newest, newest_exact, newest_head, threshold), last


def _mode(value: object, found: Matching, chosen: Sequence[int]) -> ordering.Mode:
    if value == "prefix" and not found.groups and not chosen:
        return "prefix"
    if value == "all" and found.groups and not chosen:
        return "all"
    if value != "any" or not chosen or len(set(chosen)) < len(chosen):
        cursors.refuse()
    if max(chosen) >= len(loosened(found.groups)):
        cursors.refuse()
    return "any"


def _place(value: object) -> Place:
    if not isinstance(value, list) or len(value) != 4:
        cursors.refuse()
    stage, below, path, page = value
    (stage, page) = _integers([stage, page])
    if stage > _REST or not isinstance(path, str):
        cursors.refuse()
    return Place(stage, _number(below), path, page)


def _integers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(v) is int and 0 <= v <= _LAST_ROW for v in value):
        cursors.refuse()
    return tuple(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_FAR < value < _FAR:
        cursors.refuse()
    return float(value)

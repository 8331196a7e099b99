"""The link graph: outgoing links, backlinks, unresolved targets, orphans, neighbours.

Targets are resolved when asked, among the pages that the reader may see: to them, a link to any other page is
unresolved, exactly as if that page had never been. The rule is in `resolve`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pcpd.index import bookmarks
from pcpd.index.resolve import Candidates, Form, Named, folder_of, form_of, tail_of, tails_naming
from pcpd.index.visible import where
from pcpd.pages.page import Link, LinkKind, Page
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads, Transaction

_LINK = "l.tail, l.kind, l.target, l.rel, l.heading, l.alias, l.line"


@dataclass(frozen=True, slots=True)
class Edge:
    """One link as written, with the path of the page it stands on, and of the page it leads to or None."""

    source: str
    target: str | None
    link: Link


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A page at `distance` links, in either direction, from where the walk began."""

    path: str
    title: str
    distance: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pages around one, nearest first; `complete` unless the limit cut some off."""

    pages: tuple[Neighbour, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class LinksAnswer:
    """All that a page's links say: outgoing in the order of its text, backlinks by path, pages around it."""

    outgoing: tuple[Edge, ...]
    backlinks: tuple[Edge, ...]
    neighbours: Neighbours


def answer(reads: Reads, path: str, visible: Visibility, *, depth: int = 1) -> LinksAnswer:
    """Gives what `outgoing`, `backlinks` and `neighbours` give, in one."""
    return LinksAnswer(
        tuple(outgoing(reads, path, visible)),
        tuple(backlinks(reads, path, visible)),
        neighbours(reads, path, visible, depth=depth),
    )


def put(tx: Transaction, pages: Iterable[tuple[int, Page]]) -> None:
    """Writes the links of new pages, with the numbers of their rows."""
    rows: list[tuple[object, ...]] = []
    for number, page in pages:
        folder = page.path.folder
        for seq, link in enumerate(page.links):
            form = form_of(link.target, folder)
            rows.append(
                (number, seq, link.kind, _shortened(link.target, form.tail), form.tail, form.exact,
                 link.rel, link.heading, link.alias, link.line)
            )  # fmt: skip
    tx.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def outgoing(reads: Reads, path: str, visible: Visibility) -> list[Edge]:
    """Gives a page's links in the order of its text; none where the page is not there for this reader."""
    page = _page(reads, path, visible)
    return [] if page is None else list(_outgoing(_Resolver(reads, visible), page))


def backlinks(reads: Reads, path: str, visible: Visibility, *, limit: int = 1000) -> list[Edge]:
    """Gives the links that lead to a page, by the path of the page they stand on; at most `limit`."""
    page = _page(reads, path, visible)
    if page is None:
        return []
    return list(islice(_incoming(_Resolver(reads, visible), page), limit))


def unresolved(
    reads: Reads, visible: Visibility, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[Edge], str | None]:
    """Gives links that lead to no page, those of one target together, and the cursor to go on with, or None.

    Attachments belong to no partition: only who may see everything learns that a link leads to one.
    Raises `Invalid` (`cursor.invalid`).
    """
    condition, values = where(visible)
    after = bookmarks.read("unresolved", cursor, ("", "", -1))
    rows = reads.execute(
        f"""
        SELECT p.path, l.seq, {_LINK} FROM links AS l JOIN pages AS p ON p.id = l.page
        WHERE {condition} AND l.tail >= ? AND (l.tail, p.path, l.seq) > (?, ?, ?)
          AND NOT EXISTS (SELECT 1 FROM pages AS p WHERE p.tail = l.tail AND {condition})
          AND (l.exact OR NOT EXISTS (
              SELECT 1 FROM pages AS p
              WHERE p.tail > l.tail || '/' AND p.tail < l.tail || '0' AND {condition}))
          AND (l.exact OR l.tail = '' OR NOT EXISTS (
              SELECT 1 FROM aliases AS a JOIN pages AS p ON p.id = a.page
              WHERE a.tail = l.tail AND {condition}))
          AND NOT (? AND EXISTS (SELECT 1 FROM files AS f WHERE f.tail = l.tail))
          AND NOT (? AND NOT l.exact AND EXISTS (
              SELECT 1 FROM files AS f WHERE f.tail > l.tail || '/' AND f.tail < l.tail || '0'))
        ORDER BY l.tail, p.path, l.seq LIMIT ?
        """,  # noqa: S608 - our own column names and conditions
        (*values, after[0], *after, *values, *values, *values, *[visible.everything] * 2, limit + 1),
    ).fetchall()
    edges = [Edge(row[0], None, _link(*row[2:])) for row in rows[:limit]]
    return edges, _after_unresolved(rows[limit - 1]) if len(rows) > limit else None


def orphans(
    reads: Reads, visible: Visibility, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[str], str | None]:
    """Gives pages to which no other page links, by path, and the cursor to go on with, or None.

    Raises `Invalid` (`cursor.invalid`).
    """
    condition, values = where(visible)
    after = bookmarks.read("orphans", cursor, ("", ""))
    resolver = _Resolver(reads, visible)
    found: list[str] = []
    for page in reads.execute(
        f"SELECT p.id, p.path, p.key FROM pages AS p WHERE {condition}"  # noqa: S608
        " AND p.key >= ? AND (p.key, p.path) > (?, ?) ORDER BY p.key, p.path",
        (*values, after[0], *after),
    ):
        named = Named(*page)
        if any(edge.source != named.path for edge in _incoming(resolver, named)):
            continue
        if len(found) == limit:
            return found, bookmarks.write("orphans", (lookup_key(found[-1]), found[-1]))
        found.append(named.path)
    return found, None


def neighbours(
    reads: Reads, path: str, visible: Visibility, *, depth: int = 1, limit: int = 200
) -> Neighbours:
    """Gives the pages within `depth` links of a page, in either direction, without it, nearest first.

    At most `limit` pages, and from each page at most `limit` backlinks are followed.
    """
    start = _page(reads, path, visible)
    if start is None:
        return Neighbours((), complete=True)
    resolver = _Resolver(reads, visible)
    distances = {start.path: 0}
    edge_of_walk = [start.path]
    for distance in range(1, depth + 1):
        reached: list[str] = []
        for source in edge_of_walk:
            for path_beside in _beside(resolver, source, limit):
                if path_beside in distances:
                    continue
                if len(distances) > limit:
                    return _neighbours(reads, distances, complete=False)
                distances[path_beside] = distance
                reached.append(path_beside)
        edge_of_walk = reached
    return _neighbours(reads, distances, complete=True)


class _Resolver:
    """Resolves links for one reader, and remembers the candidates of each form meanwhile."""

    def __init__(self, reads: Reads, visible: Visibility) -> None:
        self.reads = reads
        self.visible = visible
        self.condition, self.values = where(visible)
        self._candidates: dict[Form, Candidates] = {}

    def target(self, form: Form, folder: str) -> Named | None:
        """Gives the page that is meant from `folder`, or None."""
        if not form.tail:
            return None
        if form not in self._candidates:
            named = [] if form.exact else self._named_below(form.tail)
            named += self._pages("pages AS p WHERE p.tail = ?", form.tail)
            aliased = (
                []
                if named or form.exact
                else self._pages("aliases AS a JOIN pages AS p ON p.id = a.page WHERE a.tail = ?", form.tail)
            )
            self._candidates[form] = Candidates(form, named, aliased)
        return self._candidates[form].seen_from(folder)

    def _named_below(self, tail: str) -> list[Named]:
        return self._pages("pages AS p WHERE p.tail > ? AND p.tail < ?", f"{tail}/", f"{tail}0")

    def _pages(self, source: str, *values: str) -> list[Named]:
        rows = self.reads.execute(
            f"SELECT p.id, p.path, p.key FROM {source} AND {self.condition}",  # noqa: S608
            (*values, *self.values),
        )
        return [Named(*row) for row in rows]


def _shortened(target: str, tail: str) -> str | None:
    """Gives what is kept of a target as written: nothing where its tail tells it, as in most."""
    return None if target == tail_of(tail) else target


def _link(tail: str, kind: LinkKind, target: str | None, *rest: Any) -> Link:
    """Gives the link of the columns _LINK."""
    return Link(kind, tail_of(tail) if target is None else target, *rest)


def _after_unresolved(row: Sequence[Any]) -> str:
    path, seq, tail = row[:3]
    return bookmarks.write("unresolved", (tail, path, seq))


def _page(reads: Reads, path: str, visible: Visibility) -> Named | None:
    condition, values = where(visible)
    row = reads.execute(
        f"SELECT p.id, p.path, p.key FROM pages AS p WHERE p.key = ? AND p.path = ? AND {condition}",  # noqa: S608
        (lookup_key(path), path, *values),
    ).fetchone()
    return None if row is None else Named(*row)


def _outgoing(resolver: _Resolver, page: Named) -> Iterator[Edge]:
    rows = resolver.reads.execute(
        f"SELECT l.exact, {_LINK} FROM links AS l WHERE l.page = ? ORDER BY l.seq",  # noqa: S608
        (page.number,),
    )
    for exact, *link in rows.fetchall():
        target = resolver.target(Form(link[0], bool(exact)), folder_of(page.key))
        yield Edge(page.path, None if target is None else target.path, _link(*link))


def _incoming(resolver: _Resolver, page: Named) -> Iterator[Edge]:
    aliases = resolver.reads.execute("SELECT tail FROM aliases WHERE page = ?", (page.number,))
    tails = [*tails_naming(tail_of(page.key)), *(row[0] for row in aliases)]
    rows = resolver.reads.execute(
        f"""
        SELECT p.path, p.key, l.exact, {_LINK} FROM links AS l JOIN pages AS p ON p.id = l.page
        WHERE l.tail IN (SELECT value FROM json_each(?)) AND {resolver.condition}
        ORDER BY p.key, p.path, l.seq
        """,  # noqa: S608
        (json.dumps(tails), *resolver.values),
    )
    for source, key, exact, *link in rows:
        target = resolver.target(Form(link[0], bool(exact)), folder_of(key))
        if target is not None and target.number == page.number:
            yield Edge(source, page.path, _link(*link))


def _beside(resolver: _Resolver, path: str, limit: int) -> Iterator[str]:
    """Gives the pages one link away, with repetitions."""
    page = _page(resolver.reads, path, resolver.visible)
    if page is None:
        return
    for edge in _outgoing(resolver, page):
        if edge.target is not None:
            yield edge.target
    for edge in islice(_incoming(resolver, page), limit):
        yield edge.source


def _neighbours(reads: Reads, distances: Mapping[str, int], *, complete: bool) -> Neighbours:
    pages = []
    for path, distance in distances.items():
        if distance:
            title = reads.execute(
                "SELECT title FROM pages WHERE key = ? AND path = ?", (lookup_key(path), path)
            )
            pages.append(Neighbour(path, title.fetchone()[0], distance))
    pages.sort(key=lambda page: (page.distance, lookup_key(page.path), page.path))
    return Neighbours(tuple(pages), complete)

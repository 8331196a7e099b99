"""Links: those of a page, those that lead to it, and those that lead nowhere. The graph as a whole is `graph`'s.

Targets are resolved when asked, among the pages that the reader may see: to them, a link to any other page is
unresolved, exactly as if that page had never been. The rule is in `resolve`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pcpd.index import bookmarks
from pcpd.index.graph import Neighbours, neighbours
from pcpd.index.lookup import Lookup
from pcpd.index.resolve import Form, Named, folder_of, form_of, tail_of
from pcpd.index.visible import where
from pcpd.pages.page import Link, Page
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads, Transaction

_LINK = (
    "l.tail, l.kind, l.target, l.rel, l.heading, l.alias, l.line,"
    " coalesce(p.origin, 'user'), p.review_state, p.updated"
)
"""What `_edge` takes, of the links `l` and the pages `p` on which they stand."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One link as written, with the path of the page it stands on, and of the page it leads to or None.

    `file`: the attachment that it leads to instead, told only to who may see everything. `origin`, `review` and
    `updated` are those of the page it stands on, as in a search's `Hit`.
    """

    source: str
    target: str | None
    link: Link
    origin: str
    review: str | None
    updated: str
    file: str | None = None


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
    lookup = Lookup(reads, visible)
    page = lookup.page(path)
    if page is None:
        return []
    rows = reads.execute(
        f"SELECT l.exact, {_LINK} FROM links AS l JOIN pages AS p ON p.id = l.page"  # noqa: S608
        " WHERE l.page = ? ORDER BY l.seq",
        (page.number,),
    ).fetchall()
    edges = []
    for exact, *link in rows:
        form = Form(link[0], bool(exact))
        target = lookup.target(form, folder_of(page.key))
        file = _attachment(reads, form) if target is None and visible.everything else None
        edges.append(_edge(page.path, None if target is None else target.path, link, file))
    return edges


def _attachment(reads: Reads, form: Form) -> str | None:
    """Gives the file other than a page that a link leads to: in its very place, else the first of that name."""
    row = reads.execute("SELECT file FROM files WHERE tail = ?", (form.tail,)).fetchone()
    if row is None and not form.exact:
        row = reads.execute(
            "SELECT file FROM files WHERE tail > ? AND tail < ? ORDER BY tail LIMIT 1",
            (f"{form.tail}/", f"{form.tail}0"),
        ).fetchone()
    return None if row is None else str(row[0])


def backlinks(reads: Reads, path: str, visible: Visibility, *, limit: int = 1000) -> list[Edge]:
    """Gives the links that lead to a page, by the path of the page they stand on; at most `limit`."""
    lookup = Lookup(reads, visible)
    page = lookup.page(path)
    return [] if page is None else list(islice(_incoming(lookup, page), limit))


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
    edges = [_edge(row[0], None, row[2:]) for row in rows[:limit]]
    return edges, _after_unresolved(rows[limit - 1]) if len(rows) > limit else None


def _shortened(target: str, tail: str) -> str | None:
    """Gives what is kept of a target as written: nothing where its tail tells it, as in most."""
    return None if target == tail_of(tail) else target


def _edge(source: str, target: str | None, columns: Sequence[Any], file: str | None = None) -> Edge:
    """Gives the edge of the columns _LINK."""
    tail, kind, written, rel, heading, alias, line, origin, review, updated = columns
    link = Link(kind, tail_of(tail) if written is None else written, rel, heading, alias, line)
    return Edge(source, target, link, origin, review, updated, file)


def _after_unresolved(row: Sequence[Any]) -> str:
    path, seq, tail = row[:3]
    return bookmarks.write("unresolved", (tail, path, seq))


def _incoming(lookup: Lookup, page: Named) -> Iterator[Edge]:
    rows = lookup.reads.execute(
        f"""
        SELECT p.path, p.key, l.exact, {_LINK} FROM links AS l JOIN pages AS p ON p.id = l.page
        WHERE l.tail IN (SELECT value FROM json_each(?)) AND {lookup.condition}
        ORDER BY p.key, p.path, l.seq
        """,  # noqa: S608 - our own column names and conditions
        (json.dumps(lookup.tails(page)), *lookup.values),
    )
    for source, key, exact, *link in rows:
        target = lookup.target(Form(link[0], bool(exact)), folder_of(key))
        if target is not None and target.number == page.number:
            yield _edge(source, page.path, link)

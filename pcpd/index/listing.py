"""Finds and lists pages by what they are called and when they changed. Asking their text is `search`'s."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pcpd.index import bookmarks
from pcpd.index.resolve import form_of, is_storable, tail_of
from pcpd.index.rows import PAGE_COLUMNS, PAGE_TABLES, PageRow, page_row
from pcpd.index.visible import where
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

_SELECT = f"SELECT {PAGE_COLUMNS} FROM {PAGE_TABLES}"  # noqa: S608


@dataclass(frozen=True, slots=True)
class PageList:
    """Some pages of a list, how many the whole list has, and the cursor to go on with, or None at its end."""

    pages: tuple[PageRow, ...]
    total: int
    cursor: str | None


def find(reads: Reads, text: str, visible: Visibility) -> list[PageRow]:
    """Gives the pages that may be meant, of those that the reader sees: by path, by its lookup form, by id, by file
    name, by alias.

    The first way that finds some gives all of its own, by path: a clash, or a name in several folders.
    """
    if not is_storable(text):
        return []
    tail, alias = tail_of(_key(text)), form_of(text, "").tail
    return at(reads, text, visible) or _first(
        reads,
        visible,
        ("p.own_id = ?", (text,)),
        ("(p.tail = ? OR (p.tail > ? AND p.tail < ?))", (tail, f"{tail}/", f"{tail}0")),
        ("p.id IN (SELECT page FROM aliases WHERE tail = ?)", (alias,)),
    )


def at(reads: Reads, text: str, visible: Visibility) -> list[PageRow]:
    """Gives the pages at one path, of those that the reader sees: as it is spelled, else by its lookup form."""
    if not is_storable(text):
        return []
    wanted, key = _wanted(text), _key(text)
    return _first(reads, visible, ("p.key = ? AND p.path = ?", (key, wanted)), ("p.key = ?", (key,)))


def _first(reads: Reads, visible: Visibility, *ways: tuple[str, tuple[str, ...]]) -> list[PageRow]:
    """Gives what the first of several conditions finds that finds anything."""
    sight, seen = where(visible)
    for condition, values in ways:
        rows = reads.execute(
            f"{_SELECT} WHERE {condition} AND {sight} ORDER BY p.path", (*values, *seen)
        ).fetchall()
        if rows:
            return [page_row(row) for row in rows]
    return []


def _wanted(text: str) -> str:
    return text.removesuffix(".md").strip("/")


def _key(text: str) -> str:
    return lookup_key(_wanted(text))


def listing(
    reads: Reads, visible: Visibility, *, folder: str = "", limit: int = 100, cursor: str | None = None
) -> PageList:
    """Lists the pages in a folder and below, by path; the same in every order of edits, to the very end.

    Raises `Invalid` (`cursor.invalid`).
    """
    if not is_storable(folder):
        return PageList((), 0, None)
    condition, values = where(visible)
    prefix = lookup_key(folder.strip("/"))
    if prefix:
        condition += " AND p.key > ? AND p.key < ?"
        values = [*values, f"{prefix}/", f"{prefix}0"]
    after = bookmarks.read(f"list {prefix}", cursor, ("", ""))
    rows = reads.execute(
        f"{_SELECT} WHERE {condition} AND p.key >= ? AND (p.key, p.path) > (?, ?)"
        " ORDER BY p.key, p.path LIMIT ?",
        (*values, after[0], *after, limit + 1),
    ).fetchall()
    pages = tuple(page_row(row) for row in rows[:limit])
    total = _count(reads, condition, values) if prefix else _count_all(reads, visible)
    more = len(rows) > limit
    return PageList(
        pages,
        total,
        bookmarks.write(f"list {prefix}", (lookup_key(pages[-1].path), pages[-1].path)) if more else None,
    )


def recent(
    reads: Reads,
    visible: Visibility,
    *,
    since: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
) -> PageList:
    """Lists pages by `updated`, the newest first; with `since` (`…Z`) none that is older than that moment.

    Raises `Invalid` (`cursor.invalid`).
    """
    condition, values = where(visible)
    if since is not None:
        condition, values = f"{condition} AND p.updated >= ?", [*values, since]
    name = f"recent {since}" if since else "recent"
    total = _count(reads, condition, values) if since else _count_all(reads, visible)
    after = bookmarks.read(name, cursor, ("", ""))
    if cursor is not None:
        condition += " AND p.updated <= ? AND (p.updated < ? OR p.path > ?)"
        values = [*values, after[0], *after]
    rows = reads.execute(
        f"{_SELECT} WHERE {condition} ORDER BY p.updated DESC, p.path LIMIT ?", (*values, limit + 1)
    ).fetchall()
    pages = tuple(page_row(row) for row in rows[:limit])
    more = len(rows) > limit
    following = bookmarks.write(name, (pages[-1].updated, pages[-1].path)) if more else None
    return PageList(pages, total, following)


def among(reads: Reads, visible: Visibility, paths: Iterable[str]) -> frozenset[str]:
    """Gives those of the paths, as they are on disk, that are pages and visible."""
    condition, values = where(visible)
    wanted = {path: lookup_key(path) for path in paths if is_storable(path)}
    rows = reads.execute(
        f"SELECT p.path FROM pages AS p WHERE p.key IN (SELECT value FROM json_each(?)) AND {condition}",  # noqa: S608
        (json.dumps(list(wanted.values()), ensure_ascii=False), *values),
    )
    return frozenset(row[0] for row in rows if row[0] in wanted)


def _count(reads: Reads, condition: str, values: list[object]) -> int:
    return int(reads.execute(f"SELECT count(*) FROM pages AS p WHERE {condition}", values).fetchone()[0])  # noqa: S608


def _count_all(reads: Reads, visible: Visibility) -> int:
    """Counts by the full text's classes, which have the same columns: a few rows instead of all pages."""
    condition, values = where(visible)
    row = reads.execute(f"SELECT coalesce(sum(p.pages), 0) FROM classes AS p WHERE {condition}", values)  # noqa: S608
    return int(row.fetchone()[0])

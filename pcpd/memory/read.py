"""The acts that read what is there now: search, read, list, recent, links.

Each asks policy for what the caller may see, answers from a read-only connection, and writes an audit row
before the answer leaves (architecture.md, *The road out*).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcpd.index import graph, suggestions, tables
from pcpd.index import links as link_rows
from pcpd.index import listing as page_rows
from pcpd.index import search as full_text
from pcpd.index.links import Edge, LinksAnswer
from pcpd.index.listing import PageList
from pcpd.index.search import Results
from pcpd.memory.account import Note, audited
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import PageRead, found_page
from pcpd.memory.sealed import seal, unseal
from pcpd.pages.times import normal_time
from pcpd.sqlite import Reads

Fit = Callable[[Sequence[Any]], int]
"""Tells how many of a list's rows a door can give; the list is then asked again, for so many."""


@dataclass(frozen=True, slots=True)
class LooseEnds:
    """What hangs loose in the link graph: links without a page, or pages without a link to them."""

    links: tuple[Edge, ...]
    pages: tuple[str, ...]
    cursor: str | None


def search(
    memory: Memory,
    caller: Caller,
    text: str,
    *,
    limit: int = 20,
    cursor: str | None = None,
    fit: Fit | None = None,
) -> Results:
    """Finds pages by words and filters; the query language stands in `docs/search.md`."""
    with audited(memory, caller, "search_memory") as note, memory.index.reader() as conn:
        visible, after = memory.visible_to(caller), unseal(memory, caller, cursor)
        results = full_text.search(conn, text, visible, limit=limit, cursor=after)
        few = _few(fit, results.results)
        if few is not None:
            results = full_text.search(conn, text, visible, limit=few, cursor=after)
        note.paths = tuple(hit.path for hit in results.results)
        note.categories = frozenset(hit.category for hit in results.results)
        note.counts = {"results": len(results.results), "total": results.total}
    return replace(results, cursor=seal(memory, caller, results.cursor))


def _few(fit: Fit | None, rows: Sequence[object]) -> int | None:
    """Gives how many rows to ask for instead, so that the cursor stands behind the last one that is given."""
    few = len(rows) if fit is None else fit(rows)
    return few if few < len(rows) else None


def read_page(memory: Memory, caller: Caller, path: str) -> PageRead:
    """Gives one page by path, file name or id. Raises `NotFound` (`page.not-found`), also where no grant is."""
    with audited(memory, caller, "read_page") as note:
        read = found_page(memory, caller, path, note)
        note.paths, note.categories = (str(read.path),), frozenset({read.category})
    return read


def list_pages(
    memory: Memory,
    caller: Caller,
    *,
    folder: str = "",
    limit: int = 100,
    cursor: str | None = None,
    fit: Fit | None = None,
) -> PageList:
    """Lists the pages below a folder by path."""
    with audited(memory, caller, "list_pages") as note, memory.index.reader() as conn:
        visible = memory.visible_to(caller)
        listing = page_rows.listing(conn, visible, folder=folder, limit=limit, cursor=cursor)
        few = _few(fit, listing.pages)
        if few is not None:
            listing = page_rows.listing(conn, visible, folder=folder, limit=few, cursor=cursor)
        _note_list(note, listing)
    return listing


def recent(
    memory: Memory,
    caller: Caller,
    *,
    since: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
    fit: Fit | None = None,
) -> PageList:
    """Lists pages by `updated`, the newest first; with `since`, a time, none that is older.

    Raises `Invalid` (`time.invalid`, `cursor.invalid`).
    """
    with audited(memory, caller, "recent_pages") as note, memory.index.reader() as conn:
        visible, start = memory.visible_to(caller), normal_time(since) if since else None
        listing = page_rows.recent(conn, visible, since=start, limit=limit, cursor=cursor)
        few = _few(fit, listing.pages)
        if few is not None:
            listing = page_rows.recent(conn, visible, since=start, limit=few, cursor=cursor)
        _note_list(note, listing)
    return listing


def _note_list(note: Note, listing: PageList) -> None:
    note.paths = tuple(row.path for row in listing.pages)
    note.categories = frozenset(row.category for row in listing.pages)
    note.counts = {"results": len(listing.pages), "total": listing.total}


def links(memory: Memory, caller: Caller, path: str, *, depth: int = 1) -> LinksAnswer:
    """Gives a page's outgoing links, backlinks, unresolved targets and neighbours to a depth."""
    with audited(memory, caller, "page_links") as note:
        page = str(found_page(memory, caller, path, note).path)
        with memory.index.reader() as conn:
            answer = link_rows.answer(conn, page, memory.visible_to(caller), depth=depth)
            beside = [each.path for each in answer.neighbours.pages]
            edges = (*answer.outgoing, *answer.backlinks)
            _note_names(conn, note, [page, *_named_by(edges), *beside])
        note.counts = {
            "outgoing": len(answer.outgoing),
            "backlinks": len(answer.backlinks),
            "neighbours": len(beside),
        }
    return answer


def _named_by(edges: Iterable[Edge]) -> Iterator[str]:
    """Gives the pages at both ends of links."""
    for edge in edges:
        yield edge.source
        if edge.target is not None:
            yield edge.target


def _note_names(reads: Reads, note: Note, paths: Iterable[str]) -> None:
    """Notes the pages that an answer names, and their categories."""
    note.paths = tuple(dict.fromkeys(paths))
    note.categories = tables.categories(reads, note.paths)


def unresolved(
    memory: Memory,
    caller: Caller,
    *,
    limit: int = 100,
    cursor: str | None = None,
    fit: Fit | None = None,
) -> LooseEnds:
    """Lists the links that lead to no page, those of one target together."""
    with audited(memory, caller, "unresolved_links") as note, memory.index.reader() as conn:
        visible = memory.visible_to(caller)
        edges, following = link_rows.unresolved(conn, visible, limit=limit, cursor=cursor)
        few = _few(fit, edges)
        if few is not None:
            edges, following = link_rows.unresolved(conn, visible, limit=few, cursor=cursor)
        _note_names(conn, note, _named_by(edges))
        note.counts = {"results": len(edges)}
    return LooseEnds(tuple(edges), (), following)


def orphans(memory: Memory, caller: Caller, *, limit: int = 100, cursor: str | None = None) -> LooseEnds:
    """Lists the pages to which no other page links."""
    with audited(memory, caller, "orphans") as note, memory.index.reader() as conn:
        found, following = graph.orphans(conn, memory.visible_to(caller), limit=limit, cursor=cursor)
        _note_names(conn, note, found)
        note.counts = {"results": len(found)}
    return LooseEnds((), tuple(found), following)


def suggest(memory: Memory, caller: Caller, prefix: str, *, limit: int = 20) -> list[str]:
    """Gives paths that may be meant by what was typed so far: by path, file name, alias or title, whatever the case."""
    with audited(memory, caller, "suggest_pages") as note, memory.index.reader() as conn:
        found = suggestions.suggest(conn, memory.visible_to(caller), prefix, limit=limit)
        _note_names(conn, note, found)
        note.counts = {"results": len(found)}
    return found

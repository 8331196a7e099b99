"""The acts that read what is there now: search, read, list, recent, links.

Each asks policy for what the caller may see, answers from a read-only connection, and writes an audit row
before the answer leaves (architecture.md, *The road out*).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pcpd.errors import NotFound, PcpError
from pcpd.index import graph, suggestions, tables
from pcpd.index import links as link_rows
from pcpd.index import listing as page_rows
from pcpd.index import search as full_text
from pcpd.index.links import Edge, LinksAnswer
from pcpd.index.listing import PageList
from pcpd.index.rows import Declared, PageRow
from pcpd.index.search import Results
from pcpd.memory import reconcile
from pcpd.memory.account import Note, audited
from pcpd.memory.facts import facts_under
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.sealed import seal, unseal
from pcpd.pages.page import SIZE_LIMIT, Page, parse
from pcpd.pages.paths import PagePath, kind_of
from pcpd.pages.times import from_ns, normal_time
from pcpd.sqlite import Reads

NAMES_SHOWN = 5
"""Pages that are named where a name is that of several."""

Fit = Callable[[Sequence[Any]], int]
"""Tells how many of a list's rows a door can give; the list is then asked again, for so many."""


@dataclass(frozen=True)
class PageRead:
    """One page as it is on disk: its bytes, and the version to name when changing it.

    `known` is what the index has of just these bytes, where it does.
    """

    path: PagePath
    data: bytes
    version: str
    category: str
    changed_ns: int
    known: PageRow | None = None

    @property
    def file(self) -> str:
        """The page's file."""
        return self.path.file

    @cached_property
    def page(self) -> Page:
        """What the bytes say. They are taken apart when that is first asked for."""
        return parse(self.path, self.data)

    @property
    def origin(self) -> str:
        """Where the page comes from: user, agent, import or consolidation."""
        return (self.known.origin if self.known else self.page.origin) or "user"

    @property
    def review(self) -> str | None:
        """How far its review is, if any took place."""
        return self.known.review_state if self.known else self.page.review_state

    @property
    def updated(self) -> str:
        """When the page was changed, RFC 3339 UTC: its own word, else its file's time (`changed_ns`)."""
        return self.page.updated or from_ns(self.changed_ns)


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


def found_page(memory: Memory, caller: Caller, path: str, note: Note | None = None) -> PageRead:
    """Gives the page that `path` names, where the caller may read it; else raises `NotFound` (as `no_page`).

    `note` is told of a page that is there and that the caller may not see.
    """
    named = _named(memory, caller, path)
    page_path = _meant(memory, named, path)
    read = _read(memory, caller, page_path, named) if page_path else None
    if read is None:
        if page_path is not None and note is not None:
            note.refused(page_path)
        raise no_page(memory, caller, path)
    return read


def _read(memory: Memory, caller: Caller, path: PagePath, named: Sequence[PageRow]) -> PageRead | None:
    """Reads a page; None where the caller may not, by what the bytes that were read say themselves.

    Where the index has taken just these bytes apart (the version is their SHA-256), it need not be done again.
    """
    if not is_page(memory, path):
        return None
    try:
        read = memory.files.read(path.file, SIZE_LIMIT + 1)
    except FileNotFoundError:
        return None
    known = next((row for row in named if row.path == path and row.version == read.version), None)
    said = known.said if known else Declared.of(parse(path, read.data))
    facts = facts_under(memory.context, said)
    if not memory.may(caller, "read", facts).allowed:
        return None
    return PageRead(path, read.data, read.version, facts.category, read.stat.mtime_ns, known)


def present_page(memory: Memory, caller: Caller, path: str) -> PagePath | None:
    """Gives the path of the page that `path` names: as a path, with `.md`, by its only file name, by id or alias.

    Only pages that the caller may read count: another one of the same name must not make a name ambiguous.
    """
    return _meant(memory, _named(memory, caller, path), path)


def page_at(memory: Memory, caller: Caller, path: str) -> PagePath | None:
    """Gives the path of the page that is at `path` itself, whatever the case; for acts that may make one there."""
    with memory.index.reader() as conn:
        found = page_rows.at(conn, path, memory.visible_to(caller))
    return _meant(memory, found, path)


def _meant(memory: Memory, named: Sequence[PageRow], path: str) -> PagePath | None:
    """Gives the one of several that `path` means, or the page that is at `path` and not in the index yet."""
    wanted = path.removesuffix(".md")
    paths = [row.path for row in named]
    if wanted in paths or len(paths) == 1:
        return PagePath(wanted if wanted in paths else paths[0])
    try:
        direct = PagePath(wanted)
    except PcpError:
        return None
    is_there = is_page(memory, direct) and memory.files.stat(direct.file) is not None
    return direct if is_there and memory.files.is_spelled(direct.file) else None


def _named(memory: Memory, caller: Caller, path: str) -> list[PageRow]:
    """Gives all pages that `path` may mean and the caller may read."""
    visible = memory.visible_to(caller)
    with memory.index.reader() as conn:
        return page_rows.find(conn, path.removesuffix(".md"), visible) or page_rows.find(conn, path, visible)


def file_named(memory: Memory, caller: Caller, path: str) -> str:
    """Gives the file of a page or attachment, present or past, that `path` names."""
    page = present_page(memory, caller, path)
    if page is not None:
        return page.file
    if memory.files.stat(path) is not None or "." in path.rpartition("/")[2]:
        return path
    return PagePath(path).file


def no_page(memory: Memory, caller: Caller, path: str) -> NotFound:
    """Gives the error for what names no page, or several, as far as the caller may know."""
    named = [row.path for row in _named(memory, caller, path)]
    if len(named) > 1:
        few = ", ".join(named[:NAMES_SHOWN]) + (", …" if len(named) > NAMES_SHOWN else "")
        return NotFound(
            "page.ambiguous", f"{len(named)} pages are named {path!r}", hint=f"name one by its path: {few}"
        )
    return NotFound("page.not-found", f"there is no page {path!r}", hint="search for it, or list its folder")


def is_page(memory: Memory, path: PagePath) -> bool:
    """Tells whether a page can stand at a path: not in `.git`, `.pcp` or another dot folder, nor in an ignored one."""
    return kind_of(path.file) == "page" and reconcile.is_ours(memory, path.file)


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

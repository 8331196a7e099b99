"""Which page a name means for a caller: by path, file name, id or alias, and only among pages that it may read.

No acts of their own: acts that read or change a page begin here, and write their audit rows themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pcpd.errors import NotFound, PcpError
from pcpd.index import listing as page_rows
from pcpd.index.rows import Declared, PageRow
from pcpd.memory import reconcile
from pcpd.memory.account import Note
from pcpd.memory.facts import facts_under
from pcpd.memory.memory import Caller, Memory
from pcpd.pages.page import SIZE_LIMIT, Page, parse
from pcpd.pages.paths import PagePath, kind_of
from pcpd.pages.times import from_ns

NAMES_SHOWN = 5
"""Pages that are named where a name is that of several."""


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
        return self.known.origin if self.known else self.page.origin or "user"

    @property
    def review(self) -> str | None:
        """How far its review is, if any took place."""
        return self.known.review if self.known else self.page.review_state

    @property
    def updated(self) -> str:
        """When the page was changed, RFC 3339 UTC: its own word, else its file's time (`changed_ns`)."""
        return self.page.updated or from_ns(self.changed_ns)


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

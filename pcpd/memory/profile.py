"""The act that reads the profile: the page or folder that context.yaml names for agents to begin with."""

from dataclasses import dataclass

from pcpd.errors import NotFound
from pcpd.index import listing as page_rows
from pcpd.memory.account import audited
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import PageRead, found_page

PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile's pages, as many as were asked for, and how many more there are."""

    pages: tuple[PageRead, ...]
    more: int


def read_profile(memory: Memory, caller: Caller, *, most_pages: int, most_bytes: int) -> Profile:
    """Gives the profile as far as the caller may read it: at least one page, else as many as fit into `most_bytes`.

    Raises `NotFound` (`page.not-found`) alike where context.yaml names none, where none is there, and where the
    caller may not read it.
    """
    with audited(memory, caller, "read_profile") as note:
        paths, total = _paths(memory, caller, most_pages)
        pages: list[PageRead] = []
        size = 0
        for path in paths:
            read = _read(memory, caller, path)
            size += len(read.data) if read else 0
            if pages and size > most_bytes:
                break
            pages += [read] if read else []
        if not pages:
            raise NotFound("page.not-found", "there is no profile", hint="search, or list pages")
        note.paths = tuple(str(read.path) for read in pages)
        note.categories = frozenset(read.category for read in pages)
        note.counts = {"results": len(pages), "total": total}
    return Profile(tuple(pages), max(total - len(pages), 0))


def sees_profile(memory: Memory, caller: Caller) -> bool:
    """Tells whether there is a profile that the caller may read. No act of its own: a part of those that list."""
    return bool(_paths(memory, caller, 1)[0])


def _paths(memory: Memory, caller: Caller, most: int) -> tuple[list[str], int]:
    """Gives the paths of the profile's pages that the caller may see, the page that bears its name first."""
    named = memory.context.profile
    if named is None:
        return [], 0
    visible = memory.visible_to(caller)
    with memory.index.reader() as conn:
        seen = [row.path for row in page_rows.at(conn, named, visible)]
        below = page_rows.listing(conn, visible, folder=named, limit=most)
    return [*seen, *(row.path for row in below.pages)][:most], len(seen) + below.total


def _read(memory: Memory, caller: Caller, path: str) -> PageRead | None:
    """Reads one page, if it is still there, and still of the profile."""
    try:
        read = found_page(memory, caller, path)
    except NotFound:
        return None
    return read if read.category == PROFILE else None

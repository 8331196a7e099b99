"""What a change may be based on: the version of a whole page, or the mark of one that was read in part.

Who has seen a part alone (a section, an outline, the first of several pieces) gets a mark instead of the version.
It is good for edits, moves and removals, which say what they mean, and for no replacement of the whole: a part that
is written back as the page would be the end of the rest.
"""

import hashlib

from pcpd.errors import Conflict, Usage
from pcpd.memory.memory import Caller
from pcpd.pages.paths import PagePath

_PART = "part-"


def part_mark(version: str) -> str:
    """Gives the mark of a page at this version for who has read a part of it. The version cannot be told from it."""
    return _PART + hashlib.sha256(f"part of {version}".encode()).hexdigest()[:32]


def is_part(if_version: str) -> bool:
    """Tells whether a change names the mark of a part."""
    return if_version.startswith(_PART)


def refuse_part(if_version: str | None) -> None:
    """Raises `Usage` (`page.read-in-part`) for the mark of a part, where the whole is to be replaced."""
    if if_version is not None and is_part(if_version):
        raise Usage(
            "page.read-in-part",
            "what was read in part cannot be replaced as a whole: the rest of the page would be lost",
            hint="edit the page instead, or read it whole and send the `version` of that answer",
        )


def require_version(caller: Caller, page: PagePath, if_version: str | None) -> None:
    """Raises `Conflict` (`page.no-version`) where an agent names no version of a page that it would take away.

    What it has not read it cannot mean to lose. The person may do without.
    """
    if if_version is None and not caller.principal.is_controller:
        raise Conflict(
            "page.no-version",
            f"an agent removes or overwrites {page} only as it has read it",
            hint="read the page and send the version of that answer (over HTTP: its ETag as If-Match)",
        )


def require_base(page: PagePath, present: str, if_version: str | None, *, overwrite: bool) -> None:
    """Raises `Conflict` unless a change to a page that is at version `present` names it, or may do without.

    `page.stale` tells the present version, or its mark to who came with one; `page.exists` is for a replacement
    that names nothing.
    """
    if if_version is not None and is_part(if_version):
        present = part_mark(present)
    if if_version is not None and if_version != present:
        raise Conflict(
            "page.stale",
            f"the page {page} has changed since the version that this is based on",
            hint="read it again and repeat the change on the present version",
            details={"version": present},
        )
    if if_version is None and not overwrite:
        raise Conflict(
            "page.exists",
            f"there is a page {page} already",
            hint="read it and send its version, or choose another path",
            details={"version": present},
        )

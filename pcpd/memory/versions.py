"""The acts that read versions: a page's history, one version of it, what changed between two.

For an agent a version exists only where its own facts and today's both allow `read` (pages.md §4): what its bytes
and its path said then, under today's context.yaml and today's grants, and the page as it is now. What is not
allowed leaves no trace: no gap, no time, no words of a commit, and changes are told as if it had never been.
"""

import json
from dataclasses import dataclass
from itertools import islice

from pcpd.errors import Denied, NotFound
from pcpd.history.versions import Version
from pcpd.index import bookmarks, cursors
from pcpd.memory import lineage
from pcpd.memory.account import audited
from pcpd.memory.facts import facts_of
from pcpd.memory.lineage import MOST_VERSIONS, Line, Moment
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import file_named, found_page, no_page
from pcpd.memory.read import Fit
from pcpd.pages.page import Page, parse
from pcpd.pages.paths import PagePath, kind_of

SHORTEST_REV = 7


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One version of a page. `rev` names it in history; None: what is on disk now and in no commit yet.

    `at` is RFC 3339 UTC; `principal` is who acted through pcpd, or empty; `subject` is for the person alone, since
    a commit's words may name anything; `change` is added, modified, renamed or removed; `path` is the page's path
    then.
    """

    rev: str | None
    at: str
    principal: str
    subject: str
    change: str
    path: str


@dataclass(frozen=True, slots=True)
class PageVersions:
    """Versions of one page, whose path now is `path`, the newest first; `cursor` to go on with, or None at the end.

    They say nothing that a change could be based on: for that, a page must have been read.
    """

    path: str
    versions: tuple[PageVersion, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class PastPage:
    """A page as it was at a version: what it said, its bytes, the commit, its time, its category then.

    `rev` is None for what is on disk now; `at` is empty where the person named a commit that did not touch the page.
    """

    page: Page
    data: bytes
    rev: str | None
    at: str
    category: str


def history(
    memory: Memory,
    caller: Caller,
    path: str,
    *,
    limit: int = 20,
    cursor: str | None = None,
    fit: Fit | None = None,
) -> PageVersions:
    """Lists a page's versions, the newest first, across renames, as far as the caller may see each.

    The first one is what is on disk now, whether committed or not. Raises `NotFound`, `Invalid`
    (`cursor.invalid`), `Unavailable` (`history.none`).
    """
    with audited(memory, caller, "page_history") as note:
        line = lineage.line_of(memory, caller, path, note)
        found = _some(memory, caller, line, limit + 1, cursor)
        versions = tuple(_version(each) for each in found[:limit])
        limit = limit if fit is None else min(limit, fit(versions))
        versions = versions[:limit]
        note.paths = tuple(dict.fromkeys((line.path, *(each.path for each in versions))))
        note.categories = frozenset(each.category for each in found[:limit] if each.category)
        note.counts = {"results": len(versions)}
    more = bookmarks.write(_list_name(line), (found[limit - 1].mark,)) if len(found) > limit else None
    return PageVersions(line.path, versions, more)


def _some(memory: Memory, caller: Caller, line: Line, limit: int, cursor: str | None) -> list[Moment]:
    """Gives the first versions of a line, or those behind the one that a cursor names, which must be the caller's."""
    (after,) = bookmarks.read(_list_name(line), cursor, ("",))
    told = lineage.told(memory, caller, line, after)
    if cursor is not None:
        first = next(told, None)
        if first is None or first.mark != after:
            cursors.refuse()
    return list(islice(told, limit))


def _list_name(line: Line) -> str:
    return f"history {line.path}"


def version(memory: Memory, caller: Caller, path: str, rev: str) -> PastPage:
    """Gives a page as it was at a version. Raises `NotFound` (`page.not-found`, `history.no-version`).

    An agent names a version that `history` gave, or its first seven digits or more; the person anything that git
    takes for a commit.
    """
    with audited(memory, caller, "read_version") as note:
        past = _past(memory, caller, lineage.line_of(memory, caller, path, note), rev)
        note.paths, note.categories = (str(past.page.path),), frozenset({past.category})
    return past


def changes(memory: Memory, caller: Caller, path: str, old: str, new: str | None = None) -> str:
    """Gives what changed on a page from version `old` to version `new`, or to what is on disk now, as unified text.

    Both must be versions that the caller may see. Empty where their bytes are equal. Raises as `version` does.
    """
    with audited(memory, caller, "page_changes") as note:
        line = lineage.line_of(memory, caller, path, note)
        before = _past(memory, caller, line, old)
        after = _past(memory, caller, line, new) if new is not None else _now(memory, caller, path)
        note.paths = tuple(dict.fromkeys((str(before.page.path), str(after.page.path))))
        note.categories = frozenset({before.category, after.category})
        kept = lineage.history_for(memory, caller)
        was, became = (kept.store(each.page.path.file, each.data) for each in (before, after))
        hunks = kept.compare(was, became) if was != became else ""
    names = (_quoted(each.page.path.file) for each in (before, after))
    return f"--- a/{next(names)}\n+++ b/{next(names)}\n{hunks}" if hunks else ""


def _past(memory: Memory, caller: Caller, line: Line, rev: str) -> PastPage:
    """Gives one version of a line, if the caller may see it. Raises `NotFound` (`history.no-version`)."""
    if caller.principal.is_controller:
        file, data = past_version(memory, caller, line.path, rev)
        commit = memory.require_history().resolve(rev)
        at = next((each.at for each in line.moments if each.rev == commit), "")
        return _as_page(memory, Moment(commit, at, "", "", "", file), data, rev)
    named = [each for each in line.moments if each.rev and each.rev.startswith(rev.lower())]
    allowed = [each for each in named if lineage.judged(memory, caller, each)]
    if len(rev) < SHORTEST_REV or len(allowed) != 1:
        raise _no_version(line.path, rev)
    return _as_page(memory, allowed[0], lineage.bytes_at(memory, allowed[0]) or b"", rev)


def _as_page(memory: Memory, moment: Moment, data: bytes, rev: str) -> PastPage:
    if kind_of(moment.file) != "page":
        raise _no_version(moment.file, rev)
    page = parse(PagePath.of_file(moment.file), data)
    return PastPage(page, data, moment.rev, moment.at, facts_of(memory.context, page).category)


def _now(memory: Memory, caller: Caller, path: str) -> PastPage:
    found = found_page(memory, caller, path)
    return PastPage(found.page, found.data, None, lineage.changed_at(memory, found.file), found.category)


def _no_version(path: str, rev: str) -> NotFound:
    return NotFound(
        "history.no-version",
        f"{path} is in no version {rev[:80]!r}",
        hint="its history lists its versions (`pcpd log PAGE`)",
    )


def _quoted(file: str) -> str:
    """Gives a file's name on one line, whatever is in it."""
    return file if file.isprintable() else json.dumps(file)


def _version(moment: Moment) -> PageVersion:
    return PageVersion(moment.rev, moment.at, moment.principal, moment.subject, moment.change, moment.path)


def log(
    memory: Memory, caller: Caller, path: str | None, *, limit: int = 50, before: str | None = None
) -> tuple[Version, ...]:
    """Lists versions, the newest first, following renames of the page. For the controller (issue 2)."""
    controller_only(caller)
    file = file_named(memory, caller, path) if path else None
    versions = tuple(memory.require_history().log(file, limit=limit, before=before))
    if path and not versions:
        _refuse_unknown(memory, caller, path)
    return versions


def show(memory: Memory, caller: Caller, path: str, rev: str) -> bytes:
    """Gives the bytes of a page or attachment as they were at a version. Raises `NotFound`."""
    controller_only(caller)
    return past_version(memory, caller, path, rev)[1]


def past_version(memory: Memory, caller: Caller, path: str, rev: str) -> tuple[str, bytes]:
    """Gives the file that `path` named at a version, and its bytes then. Raises `NotFound`.

    A name that is gone now may have been a page's or an attachment's: the version decides. A page that was
    renamed since is found under the name that it had then.
    """
    history = memory.require_history()
    commit = history.resolve(rev)
    now = file_named(memory, caller, path)
    then = (each.file for each in history.log(now, limit=MOST_VERSIONS) if each.rev == commit)
    for file in dict.fromkeys((now, PagePath(path.removesuffix(".md")).file, path, *then)):
        try:
            return file, history.show(file, commit)
        except NotFound:
            continue
    raise NotFound(
        "history.no-version", f"{path!r} is not in version {rev}", hint="`pcpd log` lists versions"
    )


def diff(memory: Memory, caller: Caller, path: str | None, old: str | None, new: str | None) -> str:
    """Gives the changes between two versions, or between the last one and the disk, as git prints them."""
    controller_only(caller)
    found = memory.require_history().diff(file_named(memory, caller, path) if path else None, old, new)
    if path and not found:
        _refuse_unknown(memory, caller, path)
    return found


def _refuse_unknown(memory: Memory, caller: Caller, path: str) -> None:
    """Refuses what names no file, neither now nor in any version: no versions of it would be no answer."""
    file = file_named(memory, caller, path)
    if memory.files.stat(file) is None and not memory.require_history().log(file, limit=1):
        raise no_page(memory, caller, path)


def controller_only(caller: Caller) -> None:
    """Raises `Denied` for an agent: these acts do not judge each version by its own facts, as `history` does."""
    if not caller.principal.is_controller:
        raise Denied(
            "access.denied",
            f"{caller.principal.name} may not do this: it is for the person alone",
            hint="an agent can list and read the versions of one page",
        )

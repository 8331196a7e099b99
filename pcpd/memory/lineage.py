"""Which versions of a page there are for a caller: every one for the person, for an agent what it may read.

An agent's versions are told as if the others had never been (pages.md §4): no gap, no change that points at one,
nothing of a commit's words. Versions are judged one by one as they are asked for, by what their bytes and their
path said then, under today's context.yaml and grants.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pcpd.errors import PcpError, Unavailable
from pcpd.history.repository import Repository
from pcpd.history.versions import Version
from pcpd.memory.account import Note
from pcpd.memory.facts import facts_of
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import file_named, found_page, is_page, no_page
from pcpd.pages.page import SIZE_LIMIT, parse
from pcpd.pages.paths import PagePath, kind_of
from pcpd.pages.times import from_ns, to_z
from pcpd.policy import principals
from pcpd.vault.inode import version_of

MOST_VERSIONS = 10_000
MOST_LEFT_OUT = 500
"""Versions in a row that a caller may not see, after which a history ends for them."""
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Moment:
    """A version that may be told: of a file, in a commit, or on disk now (no `rev`)."""

    rev: str | None
    at: str
    principal: str
    subject: str
    change: str
    file: str
    version: str = ""
    category: str = ""

    @property
    def path(self) -> str:
        """The page's path then; of an attachment, its name."""
        return path_of(self.file)

    @property
    def mark(self) -> str:
        """What names the version in a cursor."""
        return self.rev or "now"


@dataclass(frozen=True, slots=True)
class Line:
    """All versions of one page, allowed or not, the newest first, beginning with what is on disk now."""

    path: str
    moments: tuple[Moment, ...]


def line_of(memory: Memory, caller: Caller, path: str, note: Note) -> Line:
    """Gives the versions of the page that `path` names: for an agent a visible page, for the person any file."""
    if caller.principal.is_controller:
        file = file_named(memory, caller, path)
        now = _on_disk(memory, file)
    else:
        found = found_page(memory, caller, path, note)
        file = found.file
        now = Moment(None, changed_at(memory, file), "", "", "", file, found.version, found.category)
    log = history_for(memory, caller).log(file, limit=MOST_VERSIONS)
    if now is None and not log:
        raise no_page(memory, caller, path)
    present = [now] if now is not None else []
    return Line(path_of(file), (*present, *map(_committed, log)))


def _on_disk(memory: Memory, file: str) -> Moment | None:
    if memory.files.stat(file) is None:
        return None
    return Moment(None, changed_at(memory, file), "", "", "", file, memory.files.read(file, 0).version)


def changed_at(memory: Memory, file: str) -> str:
    """Gives when a file was last changed on disk; now, where it has just gone."""
    stat = memory.files.stat(file)
    return from_ns(stat.mtime_ns) if stat else to_z(memory.clock.now())


def _committed(each: Version) -> Moment:
    return Moment(
        each.rev, to_z(each.at), each.principal or each.author, each.subject, each.change, each.file
    )


def told(memory: Memory, caller: Caller, line: Line, start: str = "") -> Iterator[Moment]:
    """Gives the versions of a line that the caller may know of, the newest first, judged as they are asked for.

    With `start`, the mark of one that was given, it begins with that one; without such a one it gives nothing.
    """
    places = (place for place, each in enumerate(line.moments) if start in {"", each.mark})
    moments = line.moments[next(places, len(line.moments)) :]
    if caller.principal.is_controller:
        return _without_repeated_now(memory, moments)
    return _as_if_alone(_allowed(memory, caller, moments))


def _without_repeated_now(memory: Memory, moments: Sequence[Moment]) -> Iterator[Moment]:
    """Gives every version; what is on disk now only where no commit has it last."""
    now, last = moments[:1], moments[1:2]
    if not now or now[0].rev is not None:
        return iter(moments)
    data = bytes_at(memory, last[0]) if last and last[0].file == now[0].file else None
    if data is not None and version_of(data) == now[0].version:
        return iter(moments[1:])
    return iter([replace(now[0], change="modified" if last else "added"), *moments[1:]])


def _allowed(memory: Memory, caller: Caller, moments: Iterable[Moment]) -> Iterator[Moment]:
    """Leaves out what the caller may not see. A removal goes with the version that it removed.

    Ends where too many in a row are left out: what they cost must be bounded, and no gap may be told.
    """
    removal: Moment | None = None
    left_out = 0
    for each in moments:
        if each.change == REMOVED:
            removal = each
            continue
        seen = judged(memory, caller, each)
        if seen is not None:
            if removal is not None:
                yield _bare(removal)
            yield seen
            left_out = 0
        else:
            left_out += 1
        removal = None
        if left_out > MOST_LEFT_OUT:
            return


def _as_if_alone(moments: Iterator[Moment]) -> Iterator[Moment]:
    """Tells each version's change as if the others were all that there ever was; what changes nothing is left out."""
    newer = next(moments, None)
    for older in moments:
        if newer is not None and _says(newer) != _says(older):
            yield replace(newer, change=_change(newer, older))
        newer = older
    if newer is not None:
        yield replace(newer, change=_change(newer, None))


def _says(moment: Moment) -> tuple[str, str]:
    return moment.file, moment.version


def _change(newer: Moment, older: Moment | None) -> str:
    if newer.change == REMOVED:
        return REMOVED
    if older is None or older.change == REMOVED:
        return "added"
    return "modified" if newer.file == older.file else "renamed"


def judged(memory: Memory, caller: Caller, moment: Moment) -> Moment | None:
    """Gives a version with what its bytes say, if the caller may read it; what is there now was judged before."""
    if moment.rev is None:
        return moment
    if moment.change == REMOVED:
        return None
    page = _page_of(memory, moment.file)
    data = bytes_at(memory, moment) if page is not None else None
    if page is None or data is None:
        return None
    facts = facts_of(memory.context, parse(page, data))
    if not memory.may(caller, "read", facts).allowed:
        return None
    return replace(_bare(moment), version=version_of(data), category=facts.category)


def _bare(moment: Moment) -> Moment:
    """Gives a version without what somebody wrote into its commit: words that may name anything."""
    by = moment.principal if principals.problem_of(moment.principal) is None else ""
    return replace(moment, principal=by, subject="")


def _page_of(memory: Memory, file: str) -> PagePath | None:
    """Gives the page that a file was, where one can stand there under today's rules."""
    if kind_of(file) != "page":
        return None
    page = PagePath.of_file(file)
    return page if is_page(memory, page) else None


def bytes_at(memory: Memory, moment: Moment) -> bytes | None:
    """Gives a version's bytes; None where they cannot be had, as in a partial clone, or are too many for a page:
    then nobody can judge them."""
    try:
        return memory.require_history().show(moment.file, moment.rev or "", limit=SIZE_LIMIT)
    except PcpError:
        return None


def history_for(memory: Memory, caller: Caller) -> Repository:
    """Gives the history; an agent that asks where none is kept learns neither why nor where the vault lies."""
    if memory.history is None and not caller.principal.is_controller:
        raise Unavailable(
            "history.none", "no history is kept here", hint="`pcpd status` tells the person why"
        )
    return memory.require_history()


def path_of(file: str) -> str:
    """Gives a page's path from its file; of an attachment, its name."""
    return file.removesuffix(".md") if kind_of(file) == "page" else file

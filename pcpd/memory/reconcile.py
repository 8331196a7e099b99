"""Brings the index in step with the files: looks at what is on disk now, whatever the event was.

`look` reads and parses on the thread that noticed something; `apply` runs on the keeper, checks that the
file is still what was looked at, and writes one index transaction. There is no second way into the index.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pcpd.errors import Broken
from pcpd.index import events, outbox, pages, proposals
from pcpd.index.pages import Put
from pcpd.index.proposals import ProposalRow
from pcpd.index.rows import Declared, FileRow
from pcpd.memory import by_hand, losses, reclassed
from pcpd.memory.facts import facts_under
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.pages.changes import Stat, same_stat
from pcpd.pages.page import SIZE_LIMIT, Page, Problem, parse
from pcpd.pages.paths import Kind, PagePath, kind_of
from pcpd.pages.times import to_z
from pcpd.policy.decide import Facts
from pcpd.sqlite import Transaction

CHUNK = 128
PAGE_READ_LIMIT = SIZE_LIMIT + 1
TOO_LARGE = "too-large"
CONTEXT_FILE = ".pcp/context.yaml"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a file says: its row of the index and, for a page, the page; what it proposes, if it does."""

    row: FileRow
    page: Page | None = None
    proposal: ProposalRow | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that the index knows and the disk does not have."""

    file: str


Finding = Draft | Gone


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How many files were written to the index, found removed, and kept back as a mass loss."""

    put: int = 0
    removed: int = 0
    held: int = 0

    def __add__(self, other: "Reconciled") -> "Reconciled":
        return Reconciled(self.put + other.put, self.removed + other.removed, self.held + other.held)


def look(memory: Memory, file: str) -> Finding:
    """Reads one file as it is now. A file that is gone, ignored or no regular file is `Gone`."""
    if not is_ours(memory, file):
        return Gone(file)
    kind = kind_of(file)
    if kind != "page":
        stat = memory.files.stat(file)
        if stat is not None and stat.size > versioned_limit(memory, file):
            return Draft(FileRow(file, kind, stat, memory.clock.now_ns(), "", TOO_LARGE))
    try:
        read = memory.files.read(file, PAGE_READ_LIMIT)
    except FileNotFoundError:
        return Gone(file)
    except Broken as error:
        return _unreadable(memory, file, kind, error)
    note = TOO_LARGE if read.stat.size > versioned_limit(memory, file) else ""
    row = FileRow(file, kind, read.stat, memory.clock.now_ns(), read.version, note)
    if kind != "page":
        return Draft(row, proposal=proposals.of_file(file, read.data))
    page = parse(PagePath.of_file(file), read.data)
    return Draft(row, page, proposals.of_page(page, read.data))


def versioned_limit(memory: Memory, file: str) -> int:
    """Gives the bytes up to which a file's versions are kept: a page's as long as it is one, whatever is set.

    A proposal may hold a whole page, and has the same limit.
    """
    if kind_of(file) == "attachment":
        return memory.attachment_limit
    return max(memory.attachment_limit, SIZE_LIMIT)


def _unreadable(memory: Memory, file: str, kind: Kind, error: Broken) -> Finding:
    """A file that the system does not let us read is listed with its problem, and keeps no other from the index."""
    stat = memory.files.stat(file)
    if error.code not in {"vault.unreadable", "vault.io"} or stat is None:
        raise error
    # As if read at the beginning of time: every scan tries again.
    row = FileRow(file, kind, stat, 0, "", "unreadable")
    if kind != "page":
        return Draft(row)
    path = PagePath.of_file(file)
    # Nobody knows what it declares: it is shown as the most guarded page would be.
    problems = (Problem("page.unreadable", error.message),)
    return Draft(row, Page(path, path.name, sensitivity="sensitive", problems=problems))


def is_ours(memory: Memory, file: str) -> bool:
    """Tells whether a vault-relative file is one that pcpd reads: not ignored, in no ignored folder."""
    folder, _, _ = file.rpartition("/")
    return not (folder and memory.ignore.folder(folder)) and not memory.ignore.file(file)


def reconcile(
    memory: Memory, files: Collection[str], urgency: Urgency, *, gone: Collection[str] | None = None
) -> Reconciled:
    """Brings the named files into step, in chunks of one transaction each. Waits for the keeper.

    `gone` names the files that may have gone for good; another one that is not there is in the middle of a
    save, and will be told again. None: all may have.
    """
    done = Reconciled()
    if gone is not None and len(gone) > CHUNK:
        done = remove(memory, sorted(gone), urgency)
        files = set(files) - set(gone)
    for chunk in chunks(sorted(files)):
        findings = [look(memory, file) for file in chunk]
        done += apply_on_keeper(memory, findings, urgency, gone=gone)
    return done


def apply_on_keeper(
    memory: Memory, findings: Sequence[Finding], urgency: Urgency, *, gone: Collection[str] | None = None
) -> Reconciled:
    """Applies findings on the keeper, from whichever thread this is called.

    What a scan brings in stays in one open transaction, for speed, until anything else comes to be written or
    `memory.index.release` ends it.
    """

    def job() -> Reconciled:
        if urgency is Urgency.SCAN:
            memory.index.hold()
        return apply(memory, findings, gone=gone, hold=urgency is Urgency.SCAN)

    return job() if memory.keeper.is_here() else memory.keeper.run(urgency, job).result()


def remove(memory: Memory, files: Sequence[str], urgency: Urgency) -> Reconciled:
    """Takes files that are gone out of the index, in slices. Waits for the keeper.

    Whether that is a mass loss is judged over all of them at once.
    """

    def judge() -> frozenset[str]:
        with memory.transaction() as tx:
            present, known = memory.files.stats(files), pages.versions(tx, files)
            return losses.held_back(
                memory, tx, [file for file in files if file in known and file not in present]
            )

    held = memory.keeper.run(urgency, judge).result() if files else frozenset()
    done = Reconciled(held=len(held))
    for chunk in chunks([file for file in files if file not in held]):
        findings = [Gone(file) for file in chunk]
        done += memory.keeper.run(urgency, partial(apply, memory, findings, are_judged=True)).result()
    return done


def apply(
    memory: Memory,
    findings: Sequence[Finding],
    *,
    gone: Collection[str] | None = None,
    hold: bool = False,
    are_judged: bool = False,
    is_act: bool = False,
) -> Reconciled:
    """Writes findings to the index in one transaction, each checked once more against the disk. Keeper only.

    Unless `hold`, what a scan held open is committed first, so that readers see this at once. `are_judged`: the
    removals are no mass loss, or one that is meant. `is_act`: what changed was asked of pcpd, so it is meant, and came
    neither by git nor from an editor.
    """
    checked = _checked(memory, findings)
    if not hold:
        memory.index.release()
    drafts = [finding for finding in checked if isinstance(finding, Draft)]
    files = [_file_of(finding) for finding in checked]
    with memory.index.transaction() as tx, _noting(memory, tx, files, is_act=is_act):
        known = pages.versions(tx, files)
        lost = [each.file for each in checked if isinstance(each, Gone) and each.file in known]
        lost = [file for file in lost if gone is None or file in gone or not is_ours(memory, file)]
        held = frozenset() if are_judged or is_act else losses.held_back(memory, tx, lost)
        removed = [file for file in lost if file not in held]
        waited = {} if is_act else proposals.of_files(tx, files)
        put = _write(memory, tx, drafts, known)
        forget(tx, removed)
        is_reviewed = bool(waited) and by_hand.note(memory, tx, waited, _pages(drafts))
        _mark(memory, tx, {*put, *removed}, drafts)
        if CONTEXT_FILE in put or CONTEXT_FILE in removed:
            memory.reload_context(tx)
    losses.let_go(memory, [draft.row.file for draft in drafts])
    if is_reviewed and memory.history is None:
        _tell_of_reviews(memory, files)
    if put or removed:
        memory.applied += 1
        memory.versions_waiting.set()
        _notice_rules(memory, {*put, *removed})
        memory.listeners.tell()
    return Reconciled(len(put), len(removed), len(held))


def _pages(drafts: Sequence[Draft]) -> dict[str, tuple[Page, str]]:
    return {draft.row.file: (draft.page, draft.row.version) for draft in drafts if draft.page is not None}


def _tell_of_reviews(memory: Memory, files: Sequence[str]) -> None:
    """Where no commit follows, reviews in an editor are told at once."""
    by_hand.tell(memory, files)
    with memory.transaction() as tx:
        by_hand.settle(tx, files)


@contextmanager
def _noting(memory: Memory, tx: Transaction, files: Sequence[str], *, is_act: bool) -> Iterator[None]:
    """Notes what the body changes of the pages in these files, and of all pages where the context is among them."""
    if not events.epoch(tx):
        yield
        return
    affected = None if CONTEXT_FILE in files else files
    before = events.states(tx, affected)
    yield
    after = events.states(tx, affected)
    events.write(tx, before, after, to_z(memory.clock.now()))
    if not is_act:
        reclassed.note(memory, tx, before, after)


def _mark(memory: Memory, tx: Transaction, files: Collection[str], drafts: Sequence[Draft]) -> None:
    """Notes what waits for a commit. Conversations, which grow line by line, wait longer than pages."""
    talks = {draft.row.file for draft in drafts if draft.page and draft.page.is_conversation}
    now_ns = memory.clock.now_ns()
    outbox.mark_all(tx, sorted(file for file in files if file not in talks), now_ns)
    outbox.mark_all(tx, sorted(file for file in files if file in talks), now_ns, pace="conversation")


def _write(
    memory: Memory, tx: Transaction, drafts: Sequence[Draft], known: Mapping[str, tuple[str, str]]
) -> set[str]:
    """Puts the drafts whose bytes are new, and notes of the others that they were looked at; gives the new ones."""
    fresh = [draft for draft in drafts if not _is_known(draft.row, known.get(draft.row.file))]
    changed = {draft.row.file for draft in fresh}
    for draft in drafts:
        if draft.row.file not in changed:
            pages.touch(tx, draft.row.file, draft.row.stat, draft.row.read_at_ns)
    # The facts come from the context as it is now: it may have changed since the file was looked at.
    put_drafts(memory, tx, fresh)
    return changed


def put_drafts(memory: Memory, tx: Transaction, drafts: Sequence[Draft]) -> None:
    """Puts all that these files say, in place of whatever was known of them; a rebuild goes the same way."""
    pages.put_all(tx, [_put_of(memory, draft) for draft in drafts])
    said = {draft.row.file: draft.proposal for draft in drafts}
    proposals.put(tx, said, [row for row in said.values() if row is not None])


def forget(tx: Transaction, files: Sequence[str]) -> None:
    """Takes all that these files said out of the index."""
    pages.remove(tx, *files)
    proposals.put(tx, files, [])


def _put_of(memory: Memory, draft: Draft) -> Put:
    """Gives what the index takes of a draft."""
    return draft.row, draft.page, _facts(memory, draft)


def _facts(memory: Memory, draft: Draft) -> Facts | None:
    return facts_under(memory.context, Declared.of(draft.page)) if draft.page else None


def _is_known(row: FileRow, before: tuple[str, str] | None) -> bool:
    return before == (row.version, row.note)


def _checked(memory: Memory, findings: Sequence[Finding]) -> list[Finding]:
    """Gives the findings as they hold now: what is on disk otherwise than it was looked at is looked at again."""
    stats = memory.files.stats(file for file in map(_file_of, findings) if is_ours(memory, file))
    return [
        finding if _still_holds(finding, stats.get(_file_of(finding))) else look(memory, _file_of(finding))
        for finding in findings
    ]


def _still_holds(finding: Finding, stat: Stat | None) -> bool:
    if isinstance(finding, Gone):
        return stat is None
    return stat is not None and same_stat(stat, finding.row.stat)


def _file_of(finding: Finding) -> str:
    return finding.row.file if isinstance(finding, Draft) else finding.file


def _notice_rules(memory: Memory, touched: Collection[str]) -> None:
    """A changed context or ignore file changes what other files mean, and that is seen at once."""
    if CONTEXT_FILE in touched:
        memory.index.release()
    if any(file.rpartition("/")[2] in {".gitignore", ".pcpignore"} for file in touched):
        memory.reload_rules()


def chunks(files: Sequence[str]) -> Iterable[Sequence[str]]:
    """Cuts what is to be done into slices, between which the keeper does what is more urgent."""
    for start in range(0, len(files), CHUNK):
        yield files[start : start + CHUNK]

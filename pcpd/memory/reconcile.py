"""Brings the index in step with the files: looks at what is on disk now, whatever the event was.

`look` reads and parses on the thread that noticed something; `apply` runs on the keeper, checks that the
file is still what was looked at, and writes one index transaction. There is no second way into the index.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcpd.errors import Invalid
from pcpd.index import outbox, pages
from pcpd.index.pages import FileRow
from pcpd.memory import losses
from pcpd.memory.keeper import Urgency
from pcpd.pages.changes import Known, Stat, same_stat
from pcpd.pages.page import Page, parse
from pcpd.pages.paths import PagePath, kind_of
from pcpd.policy.decide import Facts, category_of

if TYPE_CHECKING:
    from pcpd.memory.memory import Memory

CHUNK = 128
PAGE_READ_LIMIT = 10 * 1024 * 1024 + 1
ATTACHMENT_LIMIT = 10 * 1024 * 1024
HIDDEN_STATES = frozenset({"proposed", "rejected"})
CONTEXT_FILE = ".pcp/context.yaml"


@dataclass(frozen=True, slots=True)
class Draft:
    """What a file says: its row of the index and, for a page, the page."""

    row: FileRow
    page: Page | None = None


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


def facts_of(memory: "Memory", page: Page) -> Facts:
    """Gives the facts that decide who may see a page: its own keys and what context.yaml adds."""
    context = memory.context
    return Facts(
        path=str(page.path),
        partition=page.partition or context.default_partition,
        category=category_of(page.is_conversation, page.type, str(page.path), context.profile),
        sensitivity=page.sensitivity,
        hidden=page.review_state in HIDDEN_STATES,
    )


def look(memory: "Memory", file: str) -> Finding:
    """Reads one file as it is now. A file that is gone, ignored or no regular file is `Gone`."""
    stat = memory.files.stat(file) if is_ours(memory, file) else None
    if stat is None:
        return Gone(file)
    kind = kind_of(file)
    if kind != "page" and stat.size > ATTACHMENT_LIMIT:
        return Draft(FileRow(file, kind, stat, memory.clock.now_ns(), "", "too-large"))
    try:
        read = memory.files.read(file, PAGE_READ_LIMIT)
    except FileNotFoundError:
        return Gone(file)
    row = FileRow(file, kind, read.stat, memory.clock.now_ns(), read.version)
    if kind != "page":
        return Draft(row)
    return Draft(row, parse(PagePath.of_file(file), read.data))


def is_ours(memory: "Memory", file: str) -> bool:
    """Tells whether a vault-relative file is one that pcpd reads: not ignored, in no ignored folder."""
    folder, _, _ = file.rpartition("/")
    return not (folder and memory.ignore.folder(folder)) and not memory.ignore.file(file)


def reconcile(memory: "Memory", files: Collection[str], urgency: Urgency) -> Reconciled:
    """Brings the named files into step, in chunks of one transaction each. Waits for the keeper."""
    done = Reconciled()
    for chunk in _chunks(sorted(files)):
        findings = [look(memory, file) for file in chunk]
        done += apply_on_keeper(memory, findings, urgency)
    return done


def apply_on_keeper(memory: "Memory", findings: Sequence[Finding], urgency: Urgency) -> Reconciled:
    """Applies findings on the keeper, from whichever thread this is called."""
    if memory.keeper.is_here():
        return apply(memory, findings)
    return memory.keeper.run(urgency, lambda: apply(memory, findings)).result()


def apply(memory: "Memory", findings: Sequence[Finding]) -> Reconciled:
    """Writes findings to the index in one transaction, each checked once more against the disk. Keeper only."""
    checked = [_check_again(memory, finding) for finding in findings]
    gone = [finding.file for finding in checked if isinstance(finding, Gone)]
    with memory.index.reader() as conn:
        known = pages.known_of(conn, [_file_of(finding) for finding in checked])
    held = losses.held_back(memory, [file for file in gone if file in known])
    drafts = [finding for finding in checked if isinstance(finding, Draft)]
    removed = [file for file in gone if file in known and file not in held]
    _write(memory, drafts, removed, known)
    _notice_rules(memory, drafts, removed)
    return Reconciled(len(drafts), len(removed), len(held))


def _write(
    memory: "Memory", drafts: Sequence[Draft], removed: Sequence[str], known: dict[str, pages.Version]
) -> None:
    now_ns = memory.clock.now_ns()
    with memory.index.transaction() as tx:
        fresh = [draft for draft in drafts if not _same_content(draft, known.get(draft.row.file))]
        changed = {draft.row.file for draft in fresh}
        pages.touch(tx, [draft.row for draft in drafts if draft.row.file not in changed])
        pages.put_files(tx, [draft.row for draft in fresh if draft.page is None])
        # The facts come from the context as it is now: it may have changed since the file was looked at.
        pages.put_pages(tx, [(draft.row, draft.page, facts_of(memory, draft.page)) for draft in fresh if draft.page])
        pages.remove(tx, removed)
        outbox.mark(tx, [*sorted(changed), *removed], now_ns)
    if changed or removed:
        memory.versions_waiting.set()


def _same_content(draft: Draft, before: "pages.Version | None") -> bool:
    return before is not None and before.version == draft.row.version and before.note == draft.row.note


def _check_again(memory: "Memory", finding: Finding) -> Finding:
    file = _file_of(finding)
    stat = memory.files.stat(file) if is_ours(memory, file) else None
    if isinstance(finding, Gone):
        return finding if stat is None else look(memory, file)
    return finding if stat is not None and same_stat(stat, finding.row.stat) else look(memory, file)


def _file_of(finding: Finding) -> str:
    return finding.row.file if isinstance(finding, Draft) else finding.file


def _notice_rules(memory: "Memory", drafts: Iterable[Draft], removed: Iterable[str]) -> None:
    """A changed context or ignore file changes what other files mean: that is done anew for all of them."""
    touched = {draft.row.file for draft in drafts} | set(removed)
    if CONTEXT_FILE in touched:
        memory.reload_context()
    if any(file.rpartition("/")[2] in {".gitignore", ".pcpignore"} for file in touched):
        memory.reload_rules()


def _chunks(files: Sequence[str]) -> Iterable[Sequence[str]]:
    for start in range(0, len(files), CHUNK):
        yield files[start : start + CHUNK]


__all__ = ["Draft", "Gone", "Invalid", "Known", "Reconciled", "Stat", "apply", "look", "reconcile"]

"""What keeps index and vault in step over a long run: full scans, the rebuild, and what a person accepts."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pcpd import heap
from pcpd.errors import Conflict, PcpError
from pcpd.index import outbox, pages
from pcpd.index.store import Index
from pcpd.memory import losses, reconcile, subscribe
from pcpd.memory.identity import adopt_original, original_of
from pcpd.memory.keeper import Urgency
from pcpd.memory.lock import VaultLock
from pcpd.memory.memory import Memory
from pcpd.memory.reconcile import Draft, Gone, Reconciled
from pcpd.pages.changes import Known, changes
from pcpd.vault.scan import NOT_UTF8, Listing, scan

COMPARED = "compared with HEAD"
HELD_FILES = 16 * reconcile.CHUNK
MANY = 1000
WAL_BYTES = 16 * 1024 * 1024


def full_scan(memory: Memory, *, clean: bool = False) -> Reconciled:
    """Lists the vault, compares it with the index and brings every difference into step.

    `clean` also removes temporary files that a killed owner left: for the start, before the first act.

    Raises `Unavailable` (`vault.vanished`) when the root is not the vault that it was; nothing is changed then.
    """
    listing = scan(memory.place.root, memory.ignore, identity=memory.files.identity, mounts=memory.mounts)
    # A mount that is gone stays expected: else the next scan would take its folder for empty.
    memory.mounts |= frozenset(listing.mounts)
    if clean and listing.leftovers:
        memory.files.clean_leftovers(listing.leftovers)
    with memory.index.reader() as conn:
        removed, todo = _compared(pages.each_known(conn), listing)
    listing.files.clear()  # as large as the vault, and of no use while that is brought in
    done = reconcile.remove(memory, removed, Urgency.SCAN) + _bring_in(memory, todo)
    if len(removed) + len(todo) > MANY:
        let_go(memory)
    subscribe.begin(memory)
    memory.health.notice("unreadable", _told(listing))
    memory.health.notice("names", _told_of_names(listing))
    memory.health.notice("repositories", _told_of_nested(listing))
    memory.health.proved_at = memory.clock.now()
    memory.health.in_step = not listing.unreadable and not memory.losses.held
    return done


def folder_scan(memory: Memory, folder: str) -> Reconciled:
    """Lists one folder that came or went, with all that is below, and brings it into step."""
    listing = scan(
        memory.place.root, memory.ignore, identity=memory.files.identity, folder=folder, mounts=memory.mounts
    )
    with memory.index.reader() as conn:
        removed, todo = _compared(pages.known_below(conn, folder).items(), listing)
    return reconcile.remove(memory, removed, Urgency.EVENT) + reconcile.reconcile(memory, todo, Urgency.EVENT)


def _compared(known: Iterable[tuple[str, Known]], listing: Listing) -> tuple[list[str], list[str]]:
    """Gives what is gone for sure, and what must be read."""
    plan = changes(known, listing.files)
    removed = [file for file in plan.removed if not _is_unreadable(file, listing)]
    return removed, [*plan.added, *plan.changed, *plan.suspects]


def _bring_in(memory: Memory, files: Sequence[str]) -> Reconciled:
    done = Reconciled()
    for start in range(0, len(files), reconcile.CHUNK):
        memory.show_work("indexing", start, len(files))
        done += reconcile.reconcile(memory, files[start : start + reconcile.CHUNK], Urgency.SCAN)
        if start % HELD_FILES == HELD_FILES - reconcile.CHUNK:
            _let_readers_see(memory)
    if files:
        _let_readers_see(memory)
        memory.show_work("indexing", 0, 0)
    return done


def _let_readers_see(memory: Memory) -> None:
    """Commits what the scan holds, and keeps the log of the database from growing with the vault."""
    memory.keeper.run(Urgency.SCAN, memory.index.release).result()
    memory.versions_waiting.set()  # whoever looked before saw nothing of what was held
    memory.listeners.tell()
    if memory.index.wal_bytes() > WAL_BYTES:
        memory.index.checkpoint()


def let_go(memory: Memory) -> None:
    """Gives back the memory that bulk work took. Not on the keeper."""
    memory.keeper.run(Urgency.SCAN, memory.index.shrink).result()
    heap.give_back()


def _is_unreadable(file: str, listing: Listing) -> bool:
    return any(not place or file == place or file.startswith(f"{place}/") for place in listing.unreadable)


def _told(listing: Listing) -> str | None:
    if not listing.unreadable:
        return None
    names = ", ".join(listing.unreadable[:3]) or "the vault's root"
    return f"{len(listing.unreadable)} folders cannot be listed ({names}); what is known of them is kept"


def _told_of_names(listing: Listing) -> str | None:
    """Files that pcpd can neither show nor keep are named: everything else of theirs would be silence."""
    odd = [each.file for each in listing.skipped if each.reason == NOT_UTF8]
    names = ", ".join(sorted(odd)[:3])
    return (
        f"the names of {len(odd)} files or folders are not UTF-8 ({names}), so they are neither found nor "
        "versioned: rename them"
        if odd
        else None
    )


def _told_of_nested(listing: Listing) -> str | None:
    if not listing.nested:
        return None
    names = ", ".join(sorted(listing.nested)[:3])
    return (
        f"{len(listing.nested)} folders have a repository of their own ({names}): their pages are found, "
        "their versions are not kept here"
    )


def accept(memory: Memory) -> dict[str, object]:
    """Takes the mass loss that was kept back as meant: the pages leave the index, the commit follows."""
    held = sorted(memory.losses.held)
    removed = 0
    for chunk in reconcile.chunks(held):
        removed += memory.keeper.run(Urgency.ACT, partial(_accept, memory, chunk)).result()
    full_scan(memory)
    return {"accepted": len(held), "removed": removed}


def _accept(memory: Memory, files: Sequence[str]) -> int:
    done = reconcile.apply(memory, [Gone(file) for file in files], are_judged=True)
    mark_all(memory, files)
    losses.let_go(memory, files)
    return done.removed


def accept_copy(memory: Memory) -> dict[str, Any]:
    """Gives this copy the state of the vault that it replaces; the owner must start anew after that.

    Raises `Conflict` (`vault.not-a-copy`, or `vault.original-owned` while an owner runs for the original).
    """
    states = memory.place.states
    original = original_of(memory.place.root, memory.context.id, states)
    lock = VaultLock()
    try:
        lock.take(states / memory.context.id)
    except PcpError as error:
        raise Conflict(
            "vault.original-owned",
            f"the vault at {original}, which this copy would replace, is owned by a running process",
            hint="end that owner first: `pcpd status` there tells which process it is",
            details={"original": original},
        ) from error
    try:
        return {"state": adopt_original(memory.place.root, memory.context.id, states)}
    finally:
        lock.release()


def fill(memory: Memory, index: Index, what: str) -> list[str]:
    """Fills an empty index that nobody else has from the files as they are; gives their names."""
    files = sorted(scan(memory.place.root, memory.ignore, identity=memory.files.identity).files)
    index.hold()
    for start in range(0, len(files), reconcile.CHUNK):
        memory.show_work(what, start, len(files))
        chunk = files[start : start + reconcile.CHUNK]
        drafts = [
            each for each in (reconcile.look(memory, file) for file in chunk) if isinstance(each, Draft)
        ]
        with index.transaction() as tx:
            reconcile.put_drafts(memory, tx, drafts)
        if index.wal_bytes() > WAL_BYTES:
            index.release()
            index.checkpoint()
            index.hold()
    index.release()
    index.shrink()
    memory.show_work(what, 0, 0)
    return files


def rebuild(memory: Memory) -> dict[str, Any]:
    """Makes the index anew beside the old one, swaps it, and brings in what changed meanwhile."""
    let_go(memory)
    new = memory.index.begin_rebuild()
    try:
        files = fill(memory, new, "rebuilding")
        with new.transaction() as tx:
            subscribe.begin_in(memory, tx)
    except BaseException:
        new.discard()
        raise
    carried = memory.keeper.run(Urgency.ACT, lambda: memory.index.swap(new)).result()
    memory.listeners.tell()
    full_scan(memory)
    let_go(memory)
    if not carried:
        # What waited for a commit is not known any more: every file is looked at once.
        memory.keeper.run(Urgency.SCAN, lambda: mark_all(memory, files)).result()
    compare_with_head(memory)
    return {"files": len(files)}


def compare_with_head(memory: Memory) -> None:
    """Marks what HEAD has and the disk has not, for an index that knows nothing of the time before it.

    Files that are there were marked when they came into the index. So many missing ones that it looks like a
    loss are kept back. Done once for each index; a note in it says so.
    """
    with memory.index.reader() as conn:
        if memory.history is None or pages.meta(conn, COMPARED):
            return
        here = {file for file, _ in pages.each_known(conn)}
    head = memory.history.head_files().keys()
    missing = sorted(file for file in head - here if memory.files.stat(file) is None)

    def job() -> None:
        if losses.is_mass(len(missing), len(head)):
            losses.hold(memory, missing)
        else:
            mark_all(memory, missing)
        with memory.transaction() as tx:
            pages.set_meta(tx, COMPARED, "yes")

    memory.keeper.run(Urgency.SCAN, job).result()


def mark_all(memory: Memory, files: Sequence[str]) -> None:
    """Asks for a comparison of these files with HEAD, and a commit of those that differ. Keeper only."""
    with memory.transaction() as tx:
        outbox.mark_all(tx, files, memory.clock.now_ns())
    memory.versions_waiting.set()

"""What keeps index and vault in step over a long run: full scans, the rebuild, and what a person accepts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pcpd.index import outbox, pages
from pcpd.memory import reconcile
from pcpd.memory.keeper import Urgency
from pcpd.memory.reconcile import Gone, Reconciled
from pcpd.pages.changes import changes
from pcpd.vault.scan import Listing, scan

if TYPE_CHECKING:
    from pcpd.memory.memory import Memory


def full_scan(memory: "Memory") -> Reconciled:
    """Lists the vault, compares it with the index and brings every difference into step.

    Raises `Unavailable` (`vault.vanished`) when the root is not the vault that it was; nothing is changed then.
    """
    listing = scan(memory.place.root, memory.ignore)
    with memory.index.reader() as conn:
        known = pages.known(conn)
    plan = changes(known, listing.files)
    removed = [file for file in plan.removed if not _is_unreadable(file, listing)]
    todo = [*plan.added, *plan.changed, *plan.suspects]
    done = _remove(memory, removed) + _bring_in(memory, todo)
    memory.health.notice("unreadable", _told(listing))
    memory.health.proved_at = memory.clock.now()
    memory.health.in_step = not listing.unreadable and not memory.losses.held
    return done


def _bring_in(memory: "Memory", files: Sequence[str]) -> Reconciled:
    done = Reconciled()
    for start in range(0, len(files), reconcile.CHUNK):
        memory.show_work("indexing", start, len(files))
        done += reconcile.reconcile(memory, files[start : start + reconcile.CHUNK], Urgency.SCAN)
    memory.show_work("indexing", 0, 0)
    return done


def _remove(memory: "Memory", files: Sequence[str]) -> Reconciled:
    if not files:
        return Reconciled()
    return reconcile.apply_on_keeper(memory, [Gone(file) for file in files], Urgency.SCAN)


def _is_unreadable(file: str, listing: Listing) -> bool:
    return any(not folder or file.startswith(f"{folder}/") for folder in listing.unreadable)


def _told(listing: Listing) -> str | None:
    if not listing.unreadable:
        return None
    names = ", ".join(listing.unreadable[:3]) or "the vault's root"
    return f"{len(listing.unreadable)} folders cannot be listed ({names}); what is known of them is kept"


def accept(memory: "Memory") -> dict[str, object]:
    """Takes the mass loss that was kept back as meant: the pages leave the index, the commit follows."""
    held = sorted(memory.losses.held)

    def job() -> Reconciled:
        memory.losses.accepted = True
        try:
            return reconcile.apply(memory, [Gone(file) for file in held])
        finally:
            memory.losses.accepted = False
            memory.losses.held = frozenset()
            memory.health.notice("loss", None)

    done = memory.keeper.run(Urgency.ACT, job).result()
    return {"accepted": done.removed}


def mark_all(memory: "Memory", files: Sequence[str]) -> None:
    """Asks for a comparison of these files with HEAD, and a commit of those that differ. Keeper only."""
    with memory.index.transaction() as tx:
        outbox.mark(tx, files, memory.clock.now_ns())
    memory.versions_waiting.set()

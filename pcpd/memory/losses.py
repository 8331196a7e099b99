"""Keeps a sudden mass loss back until a person has said that it is meant, or HEAD shares it.

A vault on a disk that was unplugged, a sync client that ran wild, an empty clone: all look like deletions.
Ordinary deletions pass; many at once are held: index and history keep the pages (field-hazards.md, vault/).
"""

from collections.abc import Sequence

from pcpd.index import tables
from pcpd.memory.memory import Memory
from pcpd.sqlite import Reads

LEAST = 10
TOPIC = "loss"


def is_mass(lost: int, known: int) -> bool:
    """Tells whether losing `lost` of `known` files is more than a person deletes by hand in ten seconds."""
    return lost >= 2 and (lost >= known or (lost >= LEAST and 2 * lost >= known))


def held_back(memory: Memory, reads: Reads, gone: Sequence[str]) -> frozenset[str]:
    """Gives those of the vanished files that are kept back; keeper only."""
    losses = memory.losses
    if not gone:
        return frozenset()
    now = memory.clock.monotonic()
    recent = losses.in_window(now)
    counts = tables.counts(reads)
    known = counts.pages + counts.attachments
    lost = len(gone) + recent + len(losses.held - set(gone))
    held = frozenset(gone) if is_mass(lost, known + recent) else frozenset()
    if held and memory.history is not None:
        held &= memory.history.head_files().keys()
    losses.held = (losses.held - frozenset(gone)) | held
    losses.recent.append((now, len(gone) - len(held)))
    _tell(memory)
    return held


def hold(memory: Memory, files: Sequence[str]) -> None:
    """Keeps files back that HEAD has and the disk has not; keeper only."""
    memory.losses.held |= frozenset(files)
    _tell(memory)


def let_go(memory: Memory, files: Sequence[str]) -> None:
    """Takes files that are there again, or whose loss is meant, off the list of the lost; keeper only."""
    if memory.losses.held and not memory.losses.held.isdisjoint(files):
        memory.losses.held -= frozenset(files)
        _tell(memory)


def _tell(memory: Memory) -> None:
    count = len(memory.losses.held)
    memory.health.notice(
        TOPIC,
        f"{count} files vanished at once and are kept in index and history; "
        "`pcpd accept` if you removed them, otherwise bring them back"
        if count
        else None,
    )

"""Compares two listings of a vault: what the index knew and what a scan found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

SETTLE_NS = 2_000_000_000


class Stat(NamedTuple):
    """What a file system says of a file, without reading it. Times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int = 0o644


class Known(NamedTuple):
    """What the index noted when it last read a file. `read_at_ns` is wall-clock time."""

    stat: Stat
    read_at_ns: int

    def is_settled(self) -> bool:
        """Tells whether the file was at rest for 2 s when read: younger bytes may change in the same tick."""
        return self.stat.mtime_ns + SETTLE_NS <= self.read_at_ns


@dataclass(frozen=True, slots=True)
class Changes:
    """Vault-relative file names, sorted. `suspects` look unchanged but must be read again."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    suspects: tuple[str, ...]


def same_stat(a: Stat, b: Stat) -> bool:
    """Tells whether size, times and inode agree; the mode is no content."""
    return a[:4] == b[:4]


def changes(known: Iterable[tuple[str, Known]], found: Mapping[str, Stat]) -> Changes:
    """Gives what to add, read again and remove so that `known` becomes `found`.

    `known` is asked once, one file at a time and each once: it may be larger than what should be in memory.
    """
    added = set(found)
    removed, changed, suspects = [], [], []
    for file, before in known:
        present = found.get(file)
        if present is None:
            removed.append(file)
            continue
        added.discard(file)
        if before.stat[:4] != present[:4]:
            changed.append(file)
        elif not before.is_settled():
            suspects.append(file)
    return Changes(*(tuple(sorted(files)) for files in (added, changed, removed, suspects)))

"""When not to commit: git or a person is at work in the repository.

Nothing is committed within 2 s of a change to `index`, `HEAD` or `index.lock` that is not ours, nor while a
living process holds the lock: during a checkout the work tree is the new branch's before HEAD is
(engineering-facts, *Git*). A lock that nobody living holds is left where it is, and shown; history goes on.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pcpd.history.layout import Layout
from pcpd.history.versions import Busy

QUIET_S = 2.0
STALE_S = 10.0
STALE_UNSEEN_S = 60.0  # where the system does not tell who holds a file
LONGEST_WAIT_MS = 10_000
_PROC = Path("/proc")

Signature = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class _Seen:
    signature: Signature
    changed_at: float


class Gate:
    """Remembers how git's files looked. `clock` gives wall-clock seconds, as file times are.

    `is_new` says that we made the repository just now.
    """

    def __init__(self, layout: Layout, clock: Callable[[], float], *, is_new: bool) -> None:
        self._lock = layout.gitdir / "index.lock"
        self._watched = (layout.index, layout.gitdir / "HEAD", self._lock)
        self._clock = clock
        self._waits = 0
        now = clock()
        self._seen = {
            path: _Seen(_signature(path), 0.0 if is_new else _changed_at(path, now)) for path in self._watched
        }

    def check(self) -> None:
        """Raises Busy while git must be left alone."""
        now = self._clock()
        quiet = min(self._quiet_for(path, now) for path in self._watched)
        if quiet < QUIET_S:
            raise Busy("git was used a moment ago", max(50, int((QUIET_S - quiet) * 1000)))
        if _is_alive(self._lock, now):
            raise self.held(self._lock)
        self._waits = 0

    def held(self, lock: Path) -> Busy:
        """Gives what to raise for a lock that is in the way: each time it waits longer."""
        self._waits += 1
        wait = min(LONGEST_WAIT_MS, 125 * 2 ** min(self._waits, 10))
        return Busy(_told(lock, self._clock()) or f"{lock} was held by another program", wait)

    def settled(self) -> None:
        """Takes the index as it is now for our own writing. Called while we hold its lock, which goes unnoticed."""
        path = self._watched[0]
        self._seen[path] = _Seen(_signature(path), 0.0)

    def locked(self) -> str | None:
        """Says which lock is held, for how long, and what to do about an old one; or None."""
        return _told(self._lock, self._clock())

    def _quiet_for(self, path: Path, now: float) -> float:
        signature = _signature(path)
        if signature != self._seen[path].signature:
            changed_at = now if signature is None else _changed_at(path, now)
            self._seen[path] = _Seen(signature, changed_at)
        quiet = now - min(self._seen[path].changed_at, now)
        if quiet >= QUIET_S:  # once at rest, at rest until it changes, whatever the clock does
            self._seen[path] = _Seen(signature, 0.0)
        return quiet


def _told(lock: Path, now: float) -> str | None:
    age = _age(lock, now)
    if age is None:
        return None
    text = f"{lock} is held for {age:.0f} s"
    return (
        text
        if _is_alive(lock, now)
        else f"{text}; no program seems to use it: when no git is running, remove it"
    )


def _age(lock: Path, now: float) -> float | None:
    try:
        return max(0.0, now - lock.lstat().st_mtime)
    except OSError:
        return None


def _is_alive(lock: Path, now: float) -> bool:
    age = _age(lock, now)
    if age is None:
        return False
    if not _PROC.is_dir():
        return age < STALE_UNSEEN_S
    return age < STALE_S or _is_open(lock)


def _signature(path: Path) -> Signature:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _changed_at(path: Path, now: float) -> float:
    """Gives when a file changed; a time in the future, as after a clock jump, counts as now."""
    try:
        return min(path.lstat().st_ctime, now)
    except OSError:
        return 0.0


def _is_open(path: Path) -> bool:
    """Tells whether a process of ours or of the same person has `path` open (Linux)."""
    wanted = str(path)
    for process in _PROC.iterdir():
        if not process.name.isdigit():
            continue
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue  # another person's, or gone
        for descriptor in descriptors:
            try:
                if os.readlink(descriptor) == wanted:  # noqa: PTH115
                    return True
            except OSError:
                continue
    return False

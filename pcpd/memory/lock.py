"""The vault's lock: `flock` on its root folder, then on its state folder. The kernel ends it with the process.

No pid file, nothing to clean up after a kill (architecture.md, *The owner*).
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pcpd.errors import Unavailable


class VaultLock:
    """Holds both locks until `release`, or until the process ends."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def take(self, folder: Path) -> None:
        """Locks one more folder. Raises `Unavailable` (`vault.owned`) when another process holds it."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Unavailable(
                "vault.owned", f"another process owns the vault {folder}", hint="`pcpd status` tells which"
            ) from None
        self._descriptors.append(descriptor)

    def is_of(self, place: Path) -> bool:
        """Tells whether the folder at `place` is the one that was locked first. Raises OSError."""
        return os.path.samestat(place.stat(), os.fstat(self._descriptors[0]))

    def is_elsewhere(self, place: Path) -> bool:
        """Tells whether the folder that was locked first stood at `place`, and has another name by now.

        On another device than what is around `place`, it was unmounted; without any name, it was removed.
        """
        try:
            around = place.parent.stat()
        except OSError:
            return False
        held = os.fstat(self._descriptors[0])
        return held.st_nlink > 0 and held.st_dev == around.st_dev

    def release(self) -> None:
        """Gives both locks back."""
        while self._descriptors:
            with suppress(OSError):
                os.close(self._descriptors.pop())


def is_locked(folder: Path) -> bool:
    """Tells whether some process holds the lock on a folder now."""
    lock = VaultLock()
    try:
        lock.take(folder)
    except Unavailable:
        return True
    lock.release()
    return False

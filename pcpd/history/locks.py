"""Takes git's lock files so that a killed owner leaves none behind for good.

A lock is made as a second name (hard link) of a file in our own folder. After a kill, a lock that is the same
file as one in our folder is provably ours, and goes; any other lock is somebody's, and is never removed.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from pcpd.history.versions import Locked


class Locks:
    """The locks of one owner in one repository. `folder` is ours alone, inside the git folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def hold(self, lock: Path, content: bytes) -> Iterator[None]:
        """Holds `lock` with `content`, durable. The body may rename it away: that is how git replaces a file.

        Raises Locked when somebody has it.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        ours = self._folder / self._name(lock)
        with open(ours, "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            _link(ours, lock, content)
        except FileExistsError:
            ours.unlink(missing_ok=True)
            raise Locked(str(lock)) from None
        identity = _identity(lock)
        try:
            yield
        finally:
            if _identity(lock) == identity:
                lock.unlink(missing_ok=True)
            ours.unlink(missing_ok=True)

    def _name(self, lock: Path) -> str:
        """Gives a file name that leads back to the lock; a very long branch's does not, and is not cleared."""
        name = quote(os.path.relpath(lock, self._folder), safe="")
        return name if len(name) < 240 else hashlib.sha256(name.encode()).hexdigest()

    def clear(self) -> None:
        """Removes what a killed owner left behind. Only for the one process that owns the vault."""
        for ours in self._folder.glob("*") if self._folder.is_dir() else ():
            lock = self._folder / unquote(ours.name)
            if _identity(lock) == _identity(ours):
                lock.unlink(missing_ok=True)
            ours.unlink(missing_ok=True)


def _link(ours: Path, lock: Path, content: bytes) -> None:
    try:
        os.link(ours, lock)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: a lock left by a kill is then shown, not removed
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Somebody who only follows what a watcher tells: what they know must become what is on the disk."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from pcpd.errors import Unavailable
from pcpd.vault.ignore import Ignore
from pcpd.vault.scan import scan
from pcpd.vault.watch import Dirty, Watch

PATIENCE_S = 60.0


class Follower:
    """Reads each file that is told dirty, and scans each folder; remembers what was lost on the way."""

    def __init__(self, root: Path) -> None:
        """Begins with what is there."""
        self.root = root
        self.known: dict[str, bytes] = {}
        self.told: list[Dirty] = []
        self.lost: set[str] = set()
        self._news = threading.Condition()
        self._scan("")

    def __call__(self, dirty: Dirty) -> None:
        """Hears of changes, as a watcher's callback."""
        with self._news:
            self.told.append(dirty)
            for file in dirty.files:
                self._read(file, is_gone=file in dirty.gone)
            for folder in {""} if dirty.everything else dirty.folders:
                self._scan(folder)
            self._news.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, which only news can change."""
        with self._news:
            if not self._news.wait_for(holds, PATIENCE_S):
                raise AssertionError(f"never came to hold; {self.differences()}; told {self.told[-5:]}")

    def until_in_step(self) -> None:
        """Waits until what is known is what is on the disk."""
        self.until(lambda: not self.differences())

    def differences(self) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Gives what is known otherwise than it is: (known, on disk)."""
        present = {}
        for file in scan(self.root, Ignore.load(self.root)).files:
            with contextlib.suppress(OSError):
                present[file] = (self.root / file).read_bytes()
        names = self.known.keys() | present.keys()
        return {
            name: (self.known.get(name), present.get(name))
            for name in names
            if self.known.get(name) != present.get(name)
        }

    @property
    def names(self) -> set[str]:
        """Every file that was ever told dirty."""
        return {file for dirty in self.told for file in dirty.files}

    def _read(self, file: str, *, is_gone: bool = True) -> None:
        path = self.root / file
        if path.is_symlink() or path.is_dir():
            is_gone = True
        if path.is_file() and not path.is_symlink() and not Ignore.load(self.root).file(file):
            with contextlib.suppress(FileNotFoundError):
                self.known[file] = path.read_bytes()
                return
        if is_gone and self.known.pop(file, None) is not None:
            self.lost.add(file)

    def _scan(self, folder: str) -> None:
        try:
            found = scan(self.root, Ignore.load(self.root), folder=folder)
        except Unavailable:
            return  # a vault that vanished tells nothing
        prefix = f"{folder}/" if folder else ""
        for file in {*found.files, *(name for name in self.known if name.startswith(prefix))}:
            self._read(file)


def stopped(watch: Watch) -> None:
    """Ends a watcher; none of its threads is left."""
    watch.stop()
    left = [thread.name for thread in threading.enumerate() if "vault" in thread.name]
    assert left == []

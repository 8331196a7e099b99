"""What happened in the vault and was not delivered yet: names in sets, noted fast, taken by one thread.

A file that goes away or was only just created is held back for a moment: editors save by renaming or
deleting the old file and making a new one, and what comes next tells what it was. So a save never looks like
a deletion.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

MOST_FILES = 20_000
"""More files than this in one batch are not named: a scan is cheaper, and memory stays flat."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be looked at.

    `files` have news; `rested` went away or were created, and nothing came after it; `tree` are folders in the
    order of events: (path, whether it appeared).
    """

    files: frozenset[str]
    rested: frozenset[str]
    folders_gone: frozenset[str]
    tree: tuple[tuple[str, bool], ...]
    reasons: tuple[str, ...]


class Pending:
    """Gathers names from the threads that notice things, for the one thread that delivers them."""

    def __init__(self, monotonic: Callable[[], float], grace_s: float) -> None:
        """`grace_s` is how long a file may be away, or open after its creation, before that is told."""
        self._monotonic = monotonic
        self._grace_s = grace_s
        self._news = threading.Condition()
        self._files: set[str] = set()
        # Both in the order of their time, since every wait is equally long.
        self._held: dict[str, float] = {}
        self._held_folders: dict[str, float] = {}
        self._tree: list[tuple[str, bool]] = []
        self._reasons: dict[str, None] = {}
        self._closed = False

    def changed(self, file: str) -> None:
        """A file has new content, or came by a rename."""
        with self._news:
            self._held.pop(file, None)
            self._files.add(file)
            if len(self._files) > MOST_FILES:
                self._files.clear()
                self._reasons["many files changed at once"] = None
            self._news.notify()

    def unsure(self, file: str) -> None:
        """A file went away, or was created and may still be open: what follows tells more."""
        with self._news:
            self._files.discard(file)
            self._held.pop(file, None)
            self._held[file] = self._monotonic() + self._grace_s
            if len(self._held) == 1:
                self._news.notify()

    def folder(self, path: str, *, appeared: bool) -> None:
        """A folder appeared, by creation or by a rename, or went away."""
        with self._news:
            self._held_folders.pop(path, None)
            if not appeared:
                self._held_folders[path] = self._monotonic() + self._grace_s
            self._tree.append((path, appeared))
            self._news.notify()

    def everything(self, reason: str) -> None:
        """Something was missed, or everything may mean something else now; `reason` is a clause."""
        with self._news:
            self._reasons[reason] = None
            self._news.notify()

    def close(self) -> None:
        """Nothing more is taken: `take` gives None from now on."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def take(self) -> Batch | None:
        """Waits until there is something to deliver, and gives all of it; None when closed."""
        with self._news:
            while not self._closed:
                now = self._monotonic()
                # What is due soon goes along, so that a deleted folder is not told file by file.
                soon = now + self._grace_s / 2
                files, folders = _due(self._held, now, soon), _due(self._held_folders, now, soon)
                if files or folders or self._files or self._tree or self._reasons:
                    return self._batch(files, folders)
                first = [next(iter(held.values())) for held in (self._held, self._held_folders) if held]
                self._news.wait(min(first) - now if first else None)
            return None

    def _batch(self, files: set[str], folders: set[str]) -> Batch:
        batch = Batch(
            frozenset(self._files),
            frozenset(files),
            frozenset(folders),
            tuple(self._tree),
            tuple(self._reasons),
        )
        self._files, self._tree, self._reasons = set(), [], {}
        return batch


def _due(held: dict[str, float], now: float, soon: float) -> set[str]:
    """Takes out of `held` what is due by `soon`, once something is due now."""
    found: set[str] = set()
    for name, until in held.items():
        if until > (soon if found else now):
            break
        found.add(name)
    for name in found:
        del held[name]
    return found

"""Watching without events: lists the vault now and then, and notes what differs from the last time.

For network mounts, whose events of other machines never arrive, and where the system's limit on watches is
reached.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from pcpd.errors import Unavailable
from pcpd.pages.changes import SETTLE_NS, Stat, same_stat
from pcpd.vault.ignore import Ignore
from pcpd.vault.pending import Pending
from pcpd.vault.root import RootIdentity
from pcpd.vault.scan import Listing, scan

MOST_BUSY = 20
"""Between two scans lies at least this many times what a scan takes, so that polling takes 5 % of a core at most."""


class PollingSource:
    """Compares one listing with the next, on a thread of its own."""

    def __init__(
        self, root: Path, ignore: Ignore, pending: Pending, *, every_s: float, monotonic: Callable[[], float]
    ) -> None:
        """Does nothing yet. `every_s` is the least time between two scans."""
        self._root = root
        self._ignore = ignore
        self._pending = pending
        self._every_s = every_s
        self._monotonic = monotonic
        self._identity: RootIdentity | None = None
        self._files: dict[str, Stat] = {}
        self._mounts: frozenset[str] = frozenset()
        self._restless: dict[str, float] = {}
        self._trouble = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Takes the first listing and starts the thread. Raises `Unavailable` (`vault.vanished`)."""
        self._identity = RootIdentity.of(self._root)
        began = self._monotonic()
        self._take(self._listing())
        self._thread = threading.Thread(
            target=self._run, args=(self._monotonic() - began,), name="vault polling", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after the scan that it is at."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def trouble(self) -> str:
        """Says why the last scan was the last."""
        if not self._trouble and (self._thread is None or not self._thread.is_alive()):
            return "the thread that polls has ended"
        return self._trouble

    def watch_all(self, ignore: Ignore) -> None:
        """Takes other rules; the next scan follows them."""
        self._ignore = ignore

    def watch_below(self, folder: str) -> None:
        """Nothing to do: scans see every folder."""

    def unwatch(self, folder: str) -> None:
        """Nothing to do: scans see that it is gone."""

    def _run(self, cost_s: float) -> None:
        while not self._stop.wait(max(self._every_s, MOST_BUSY * cost_s)):
            began = self._monotonic()
            try:
                self._compare(self._listing())
            except Unavailable as error:
                self._trouble = error.message
                self._pending.everything("the vault vanished")
                return
            cost_s = self._monotonic() - began

    def _listing(self) -> Listing:
        return scan(self._root, self._ignore, identity=self._identity, mounts=self._mounts)

    def _compare(self, found: Listing) -> None:
        now = self._monotonic()
        for file, stat in found.files.items():
            before = self._files.get(file)
            if before is None or not same_stat(before, stat):
                self._pending.changed(file)
                self._restless[file] = now + SETTLE_NS / 1e9
        for file in _lost(self._files, found):
            self._pending.unsure(file)
        # A file changed twice within one tick of the clock looks unchanged: it is told once more when it rests.
        for file in [file for file, until in self._restless.items() if until <= now]:
            del self._restless[file]
            if file in found.files:
                self._pending.changed(file)
        self._take(found)

    def _take(self, found: Listing) -> None:
        kept = {file: self._files[file] for file in self._files.keys() - found.files.keys()}
        lost = set(_lost(self._files, found))
        self._files = found.files | {file: stat for file, stat in kept.items() if file not in lost}
        self._mounts |= frozenset(found.mounts)


def _lost(before: Mapping[str, Stat], found: Listing) -> list[str]:
    """Lists what is gone for sure: not what lies in folders that could not be looked into."""
    unknown = tuple(f"{folder}/" for folder in found.unreadable)
    missing = before.keys() - found.files.keys()
    return [file for file in missing if file not in found.unreadable and not file.startswith(unknown)]

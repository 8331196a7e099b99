"""Watches a vault: system events, or polling, become names of files to look at, or the word "everything".

Threads that notice things only put names in sets; one thread delivers them at once, several together when
there are several. What was delivered is a hint: what a file is now only the disk tells. Source:
field-hazards.md, vault/, and performance.md, section 4.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pcpd.durable import network_filesystem
from pcpd.errors import Unavailable
from pcpd.vault.ignore import Ignore
from pcpd.vault.pending import Batch, Pending
from pcpd.vault.polling import PollingSource
from pcpd.vault.root import RootIdentity, is_unicode, vanished
from pcpd.vault.source import Source, WatchFailed

GRACE_S = 0.3
POLL_S = 2.0

Mode = Literal["events", "polling"]


@dataclass(frozen=True, slots=True)
class Dirty:
    """What may have changed, all names vault-relative.

    `files` have come, changed or gone. Those among them that went away and stayed away are `gone`: if
    another one is not there when it is read, it is in the middle of a save, and will be told again.
    `folders` have come or gone, with all that is below; `everything` means that events were lost or the
    rules changed, and only a scan tells. `reason` says why a scan is due.
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    everything: bool = False
    reason: str = ""
    gone: frozenset[str] = frozenset()


class Watch:
    """Watches one vault, by events where it can and by polling where it must, and can be started anew.

    `on_dirty` is called on the watcher's own thread, never twice at a time; what happens meanwhile is
    gathered.
    """

    def __init__(
        self,
        root: Path,
        ignore: Ignore,
        on_dirty: Callable[[Dirty], None],
        *,
        poll: bool = False,
        poll_s: float = POLL_S,
        grace_s: float = GRACE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Does nothing yet.

        `poll` asks for polling, every `poll_s` seconds at most. A file that goes away is told after `grace_s`
        seconds, unless it is back by then.
        """
        self._root = Path(os.path.realpath(root))
        self._ignore = ignore
        self._on_dirty = on_dirty
        self._poll = poll
        self._poll_s = poll_s
        self._grace_s = grace_s
        self._monotonic = monotonic
        self._guard = threading.RLock()
        self._pending = Pending(monotonic, grace_s)
        self._source: Source | None = None
        self._identity: RootIdentity | None = None
        self._thread: threading.Thread | None = None
        self.mode: Mode = "events"
        self.notice: str | None = None

    def start(self) -> None:
        """Begins to watch: what changes after it returned is told. Raises `Unavailable` (`vault.vanished`)."""
        with self._guard:
            self._identity = RootIdentity.of(self._root)
            self._pending = Pending(self._monotonic, self._grace_s)
            self._source = self._started()
            self._thread = threading.Thread(
                target=self._deliver, args=(self._pending,), name="vault watcher", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends every thread; what was not delivered yet is dropped."""
        with self._guard:
            self._pending.close()
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join()
            if self._source is not None:
                self._source.stop()

    def use(self, ignore: Ignore) -> None:
        """Takes other ignore rules: folders that they let in are watched from now on, others no longer."""
        # Without the guard: whoever heals holds it, and may wait for the thread that waits for our caller.
        self._ignore = ignore
        self._pending.everything("ignore rules changed")

    def alive(self) -> bool:
        """Tells whether changes are still noticed: threads run, and the root is the folder that is watched."""
        return not self.trouble()

    def trouble(self) -> str:
        """Says why changes are not noticed any more, as a clause; empty while they are."""
        if self._source is None or self._thread is None:
            return "the watcher was not started"
        if not self._thread.is_alive():
            return "the watcher's thread has ended"
        try:
            present = RootIdentity.of(self._root)
        except Unavailable as error:
            return error.message
        if present != self._identity:
            return vanished(self._root, "is another folder than before").message
        return self._source.trouble()

    def heal(self) -> bool:
        """Starts anew on whatever folder is at the root's path now, and tells everything dirty.

        Gives False, with a notice, while there is none. The caller judges whether it is the same vault.
        """
        with self._guard:
            reason = self.trouble() or "the watcher was started anew"
            self.stop()
            try:
                self.start()
            except Unavailable as error:
                self._source, self.notice = None, f"changes are not noticed: {error.message}"
                return False
            self._pending.everything(reason)
            return True

    def _started(self) -> Source:
        """Starts the best source that works here, and sets mode and notice accordingly."""
        kind = network_filesystem(self._root)
        if self._poll:
            return self._polling(None)
        if kind is not None:
            return self._polling(
                f"the vault lies on a network file system ({kind}), where events of others never arrive"
            )
        try:
            source = _events(self._root, self._ignore, self._pending)
            source.start()
        except WatchFailed as error:
            return self._polling(str(error))
        except OSError as error:
            raise vanished(self._root, f"cannot be watched: {error.strerror}") from error
        self.mode, self.notice = "events", None
        return source

    def _polling(self, why: str | None) -> Source:
        source = PollingSource(
            self._root, self._ignore, self._pending, every_s=self._poll_s, monotonic=self._monotonic
        )
        source.start()
        self.mode = "polling"
        self.notice = None if why is None else f"changes are looked for every {self._poll_s:g} s: {why}"
        return source

    def _deliver(self, pending: Pending) -> None:
        while (batch := pending.take()) is not None:
            dirty = self._settled(batch)
            if dirty is not None:
                self._on_dirty(dirty)

    def _settled(self, batch: Batch) -> Dirty | None:
        """Brings the watches in step with the batch, and gives what of it concerns the vault."""
        reasons = list(batch.reasons)
        news = {file for file in batch.files if self._concerns(file)}
        rested = {file for file in batch.rested if self._concerns(file)}
        gone = frozenset(file for file in rested if not os.path.lexists(self._root / file))
        files = frozenset(news | rested)
        if any(Ignore.is_source(file) for file in files):
            self._ignore.refresh()
            reasons.append("ignore rules changed")
        folders = {path for path in batch.folders_gone if not self._ignore.folder(path)}
        folders |= self._follow(batch.tree, again=bool(reasons))
        if not (files or folders or reasons):
            return None
        reason = "; ".join(reasons) or ("folders came or went" if folders else "")
        return Dirty(files, frozenset(folders), bool(reasons), reason, gone)

    def _follow(self, tree: tuple[tuple[str, bool], ...], *, again: bool) -> set[str]:
        """Watches and forgets folders as they came and went; gives those that came."""
        appeared = set()
        try:
            for path, is_there in tree:
                if self._ignore.folder(path) or not is_unicode(path):
                    continue
                if is_there:
                    self._require().watch_below(path)
                    appeared.add(path)
                else:
                    self._require().unwatch(path)
            if again:
                self._require().watch_all(self._ignore)
        except WatchFailed as error:
            self._fall_back(str(error))
        return appeared

    def _fall_back(self, why: str) -> None:
        """Goes on by polling, in the middle of watching; what was missed in between is everything."""
        self._require().stop()
        with contextlib.suppress(Unavailable):
            self._source = self._polling(why)
        self._pending.everything(why)

    def _require(self) -> Source:
        if self._source is None:
            raise WatchFailed("the watcher was stopped")
        return self._source

    def _concerns(self, file: str) -> bool:
        return Ignore.is_source(file) or (is_unicode(file) and not self._ignore.file(file))


def _events(root: Path, ignore: Ignore, pending: Pending) -> Source:
    if sys.platform.startswith("linux"):
        from pcpd.vault.inotify import InotifySource

        return InotifySource(root, ignore, pending)
    from pcpd.vault.observed import ObservedSource

    return ObservedSource(root, pending)

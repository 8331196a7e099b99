"""Events of systems other than Linux, through watchdog's observer: one watch on the whole tree.

FSEvents costs nothing for ignored folders, and their events are dropped before they are delivered. It has no
event for a closed file; the periodic proof of the index covers what it loses, since it does not tell of
losses either.
"""

import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from pcpd.vault.ignore import Ignore
from pcpd.vault.pending import Pending
from pcpd.vault.source import WatchFailed

EVENT_FILTER: list[type[FileSystemEvent]] = [
    FileClosedEvent, FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileDeletedEvent,
    DirCreatedEvent, DirMovedEvent, DirDeletedEvent,
]  # fmt: skip


class _Handler(FileSystemEventHandler):
    """Only notes names: the thread that calls it must be back before the system's queue is full."""

    def __init__(self, root: str, pending: Pending) -> None:
        self._prefix = root + "/"
        self._pending = pending
        self.gone = ""

    def dispatch(self, event: FileSystemEvent) -> None:
        """Notes one event, whatever its kind."""
        source, target = self._relative(event.src_path), self._relative(event.dest_path)
        if event.is_directory:
            self._note_folder(event, source, target)
        elif isinstance(event, FileMovedEvent):
            self._note(self._pending.unsure, source)
            self._note(self._pending.changed, target)
        elif isinstance(event, FileDeletedEvent):
            self._note(self._pending.unsure, source)
        else:
            self._note(self._pending.changed, source)

    def _note_folder(self, event: FileSystemEvent, source: str, target: str) -> None:
        if not source and isinstance(event, DirDeletedEvent):
            self.gone = "the vault's folder was moved, removed or unmounted"
            self._pending.everything("a watched folder went away")
        if source and isinstance(event, (DirDeletedEvent, DirMovedEvent)):
            self._pending.folder(source, appeared=False)
        appeared = target if isinstance(event, DirMovedEvent) else source
        if appeared and isinstance(event, (DirCreatedEvent, DirMovedEvent)):
            self._pending.folder(appeared, appeared=True)

    def _relative(self, path: bytes | str) -> str:
        """Gives the vault-relative name; empty for the root itself and for what lies outside."""
        name = os.fsdecode(path)
        return name[len(self._prefix) :] if name.startswith(self._prefix) else ""

    @staticmethod
    def _note(note: Callable[[str], None], file: str) -> None:
        if file:
            note(file)


class ObservedSource:
    """Watches a vault through watchdog's observer of the system."""

    def __init__(self, root: Path, pending: Pending) -> None:
        """Does nothing yet. `root` is a resolved path, as the system writes it in events."""
        self._root = os.fspath(root)
        self._handler = _Handler(self._root, pending)
        self._observer = Observer()

    def start(self) -> None:
        """Starts the observer. Raises `WatchFailed` where the system refuses."""
        try:
            self._observer.schedule(self._handler, self._root, recursive=True, event_filter=EVENT_FILTER)
            self._observer.start()
        except (OSError, RuntimeError) as error:
            raise WatchFailed(f"the system gives no events ({error})") from error

    def stop(self) -> None:
        """Ends the observer's threads."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def trouble(self) -> str:
        """Says what is wrong with the observer or one of its emitters."""
        if not self._observer.is_alive() or not all(
            emitter.is_alive() for emitter in self._observer.emitters
        ):
            return self._handler.gone or "a thread that reads events has ended"
        return self._handler.gone

    def watch_all(self, ignore: Ignore) -> None:
        """Nothing to do: the whole tree is watched, and what is ignored is dropped when it is delivered."""

    def watch_below(self, folder: str) -> None:
        """Nothing to do, as the whole tree is watched."""

    def unwatch(self, folder: str) -> None:
        """Nothing to do, as the whole tree is watched."""

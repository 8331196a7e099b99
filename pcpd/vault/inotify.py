"""Events of Linux: one inotify instance, read by one thread of watchdog, and one watch for each folder that counts.

watchdog's emitters either start a thread for each folder, or watch a whole tree with all that is ignored in
it, and tell no handler of an overflow. Its `InotifyFD`, on which they stand, does neither: it reads one
instance, takes a callback for each folder, and tells each of an overflow. The mask is the one that
`event_filter` makes of closed, moved, deleted and directory-created: with opens and modifications, a burst
overflows the kernel's queue.
"""

import errno
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from pcpd.vault.ignore import EXCLUDE, Ignore
from pcpd.vault.pending import Pending
from pcpd.vault.source import WatchFailed

_MASK = Mask(
    InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_MOVE | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE | InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR | InotifyConstants.IN_DONT_FOLLOW | InotifyConstants.IN_EXCL_UNLINK
)  # fmt: skip
_CLOSED_OR_ARRIVED = InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_MOVED_TO
_ARRIVED = InotifyConstants.IN_CREATE | InotifyConstants.IN_MOVED_TO
_SELF_GONE = InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF | InotifyConstants.IN_UNMOUNT
_EXCLUDE_FOLDER = EXCLUDE.rpartition("/")[0]
_IS_FOLDER = InotifyConstants.IN_ISDIR

_LIMITS = {
    errno.ENOSPC: ("fs.inotify.max_user_watches", "the number of watched folders"),
    errno.EMFILE: ("fs.inotify.max_user_instances", "the number of watching programs"),
}


class _Folder:
    """One watched folder: the callback that watchdog's reader calls. Its path never changes; a moved one is new."""

    def __init__(self, path: str, pending: Pending, number: int) -> None:
        self.path = path
        self.prefix = f"{path}/" if path else ""
        self.id = CallbackId(number)
        self.wd = WatchDescriptor(-1)
        self.gone = ""
        self._pending = pending

    def on_event(self, event: InotifyEvent) -> None:
        mask = event.mask
        if not event.name:
            self._on_own_event(mask)
            return
        name = self.prefix + os.fsdecode(event.name)
        if mask & _IS_FOLDER:
            self._pending.folder(name, appeared=bool(mask & _ARRIVED))
        elif mask & _CLOSED_OR_ARRIVED:
            self._pending.changed(name)
        else:
            self._pending.unsure(name)

    def _on_own_event(self, mask: int) -> None:
        if not mask & _SELF_GONE:
            return
        # Of other folders their parents tell; of the root, and of what was mounted, nobody else does.
        if not self.path:
            self.gone = "the vault's folder was moved, removed or unmounted"
        if not self.path or mask & InotifyConstants.IN_UNMOUNT:
            self._pending.everything("a watched folder went away")

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:  # noqa: ARG002 - watchdog names it
        if not self.path and not self.gone:
            self.gone = "the system ended the watch on the vault's folder"

    def on_queue_overflow(self) -> None:
        # Every watched folder is told; one of them is enough.
        if not self.path:
            self._pending.everything("the system's queue of events overflowed")


class InotifySource:
    """Watches the folders of a vault that are not ignored."""

    def __init__(self, root: Path, ignore: Ignore, pending: Pending) -> None:
        """Does nothing yet."""
        self._root = os.fsencode(root)
        self._ignore = ignore
        self._pending = pending
        self._numbers = itertools.count(1)
        # Changed by the delivering thread only, after `start`.
        self._folders: dict[str, _Folder] = {}
        self._reader: InotifyFD | None = None
        self._stopping = threading.Lock()

    def start(self) -> None:
        """Watches the root and all below. Raises `WatchFailed` at a limit of the system, OSError without a root."""
        try:
            self._reader = InotifyFD()
        except OSError as error:
            raise _failed(error) from error
        self._reader.start()
        try:
            self.watch_all(self._ignore)
            if "" not in self._folders:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._root)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the reader."""
        with self._stopping:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.stop()
            reader.join()

    def trouble(self) -> str:
        """Says what is wrong with the root's watch or the reader."""
        if self._reader is None or not self._reader.is_alive():
            return "the thread that reads events has ended"
        root = self._folders.get("")
        return root.gone if root is not None else "the vault's folder is not watched"

    def watch_all(self, ignore: Ignore) -> None:
        """Watches every folder that is there now, and forgets the others."""
        self._ignore = ignore
        seen = set(self._watch_tree(""))
        if self._watch(_EXCLUDE_FOLDER):
            seen.add(_EXCLUDE_FOLDER)
        for folder in self._folders.keys() - seen:
            self._forget(folder)

    def watch_below(self, folder: str) -> None:
        """Watches a folder that appeared. Its content must be looked at afterwards: it came before the watch."""
        for _ in self._watch_tree(folder):
            pass

    def unwatch(self, folder: str) -> None:
        """Forgets a folder and all below, before the same folders may appear elsewhere."""
        for path in [path for path in self._folders if path == folder or path.startswith(f"{folder}/")]:
            self._forget(path)

    def _watch_tree(self, top: str) -> Iterator[str]:
        """Watches `top` and what is below; each folder first and then listed, so that nothing appears unseen."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            rules = self._ignore.rules(folder)
            if rules is None or not self._watch(folder):
                continue
            yield folder
            prefix = f"{folder}/" if folder else ""
            try:
                with os.scandir(self._full(folder)) as entries:
                    names = [
                        os.fsdecode(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)
                    ]
            except OSError:
                continue
            waiting.extend(prefix + name for name in names if not rules.ignores_folder(name))

    def _watch(self, path: str) -> bool:
        if self._reader is None:
            return False
        folder = _Folder(path, self._pending, next(self._numbers))
        try:
            folder.wd = self._reader.add_callback(self._full(path), _MASK, folder, folder.id)
        except OSError as error:
            if error.errno in _LIMITS:
                raise _failed(error) from error
            return False  # gone again, or its path is too long
        if folder.wd == -1:
            # Not ours to read, which watchdog passes over in silence; the scan says so.
            self._reader.remove_callbacks([(folder.wd, folder.id)])
            return False
        if path in self._folders:
            self._forget(path)
        self._folders[path] = folder
        return True

    def _full(self, path: str) -> bytes:
        return self._root + b"/" + os.fsencode(path) if path else self._root

    def _forget(self, path: str) -> None:
        folder = self._folders.pop(path)
        if self._reader is not None:
            self._reader.remove_callbacks([(folder.wd, folder.id)])


def _failed(error: OSError) -> WatchFailed:
    setting, what = _LIMITS.get(error.errno or 0, ("", ""))
    if not setting:
        return WatchFailed(f"the system gives no events ({error.strerror})")
    return WatchFailed(
        f"the system's limit on {what} is reached; raise {setting} to have changes at once again"
    )

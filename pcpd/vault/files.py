"""Reads and changes single files of a vault, so that no edit of anybody is lost and nothing leaves the vault.

Every change names the version that it is based on. A file is replaced by an exchange with a complete new
one, and what comes out is looked at: if an editor saved in the last moment, its version is kept as a
conflict copy. A crash at any step leaves the old file or the new one. Source: architecture.md, *The road
in*.
"""

import contextlib
import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pcpd import durable
from pcpd.pages.changes import Stat, same_stat
from pcpd.pages.paths import check_segments
from pcpd.vault.inode import has_writer, opened, read_all, stat_of, version_of, version_of_open
from pcpd.vault.refusals import NOT_THERE, refusal, stale, telling
from pcpd.vault.renames import exchange, move_name
from pcpd.vault.root import FOLDER_FLAGS, RootIdentity, open_folder, open_root
from pcpd.vault.temporary import NO_VERSION, Beside, clean_leftover, keep_as_conflict, write_beside

READ_TRIES = 3
WRITER_WAITS = 25
WRITER_WAIT_S = 0.001


@dataclass(frozen=True, slots=True)
class FileBytes:
    """What a file held when it was read. `data` is cut at the limit; `version` is that of the whole file.

    `stat` was taken before the bytes, so that what changed meanwhile looks changed to the next scan.
    """

    data: bytes
    stat: Stat
    version: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file as an act left it. `conflict_copy` keeps what an editor saved meanwhile, if it did."""

    stat: Stat
    version: str
    conflict_copy: str | None = None


class Files:
    """The files of one vault. All names are vault-relative and cannot lead out of it, not through links.

    Every method raises `Unavailable` (`vault.vanished`) when the root is not the folder that it was,
    `Invalid` (`vault.link`, `path.invalid`, `path.too-long`), and `Broken` (`vault.full`,
    `vault.read-only`, `vault.io`) with the system's reason; after any of these the file is as it was.
    """

    def __init__(self, root: Path, now: Callable[[], datetime]) -> None:
        """Remembers which folder `root` is. `now` dates conflict copies."""
        self._root = root
        self._now = now
        self.identity = RootIdentity.of(root)

    def stat(self, file: str) -> Stat | None:
        """Gives the stat of a regular file; None where there is none, or where a link stands in the way."""
        return self.stats([file]).get(file)

    def stats(self, files: Iterable[str]) -> dict[str, Stat]:
        """Gives what `stat` gives of many files; those that are not there are left out.

        Files that lie in one folder and stand side by side share the way to it.
        """
        found = {}
        for _, together in itertools.groupby(files, key=_folder_of):
            names = list(together)
            try:
                with self._parent(names[0]) as (handle, _):
                    for file in names:
                        check_segments(file)
                        seen = _stat_in(handle, file)
                        if seen is not None:
                            found[file] = seen
            except OSError as error:
                if error.errno not in NOT_THERE:
                    raise refusal("look at", names[0], error) from error
        return found

    def is_spelled(self, file: str) -> bool:
        """Tells whether `file` is written as it is on disk, with every folder above it.

        Where neither case nor form of letters matters, a file is found by other names too, and what is decided by
        a name must not be decided by those.
        """
        segments = file.split("/")
        try:
            for number in range(len(segments)):
                with self._parent("/".join(segments[: number + 1])) as (folder, name):
                    if name not in os.listdir(folder):  # noqa: PTH208 (an open folder)
                        return False
        except OSError as error:
            if error.errno not in NOT_THERE:
                raise refusal("look at", file, error) from error
            return False
        return True

    def read(self, file: str, limit: int) -> FileBytes:
        """Reads at most `limit` bytes of a file, and its version.

        A file that is written meanwhile is read again, three times at most. Raises FileNotFoundError where
        there is no regular file by that name: gone before it was read is normal, and the caller's to judge.
        """
        try:
            with self._parent(file) as (folder, name):
                for _ in range(READ_TRIES):
                    read, after = _read_once(folder, name, limit)
                    if same_stat(read.stat, after):
                        break
        except OSError as error:
            if error.errno in NOT_THERE:
                raise FileNotFoundError(
                    errno.ENOENT, "there is no regular file of that name", file
                ) from error
            raise refusal("read", file, error) from error
        return read

    def create(self, file: str, data: bytes) -> Written:
        """Writes a new file, and the folders above it. Raises `Conflict` (`page.exists`) where one stands."""
        version = version_of(data)
        with telling("create", file), self._parent(file, make=True) as (folder, name):
            beside = Beside(version, NO_VERSION, name)
            handle = write_beside(folder, beside, data, None)
            with _closing(handle), _removing(folder, beside.unfinished):
                durable.rename_new(beside.unfinished, name, a_fd=folder, b_fd=folder)
                durable.sync_folder(folder)
                return Written(stat_of(os.fstat(handle)), version)

    def replace(self, file: str, data: bytes, *, base: str) -> Written:
        """Puts `data` in the place of version `base`, keeping mode, owner and extended attributes.

        Raises `Conflict` (`page.stale`, `details.version` is the present one) when the file is another
        version before anything was written, `NotFound` (`page.gone`) when it is not there. What an editor
        saves after that check is kept as a conflict copy.
        """
        version = version_of(data)
        with telling("replace", file), self._parent(file) as (folder, name):
            with opened(folder, name) as before:
                _check_base(file, before, base)
                beside = Beside(version, base, name)
                handle = write_beside(folder, beside, data, before)
            with _closing(handle):
                self._swap(folder, beside, name)
                copy = self._judge(folder, beside, file, base)
                durable.sync_folder(folder)
                return Written(stat_of(os.fstat(handle)), version, copy)

    def remove(self, file: str, *, base: str) -> None:
        """Removes version `base` of a file. Raises as `replace` does; then the file is where it was.

        The file is first moved aside and looked at there, so that a save in the last moment is seen.
        """
        with telling("remove", file), self._parent(file) as (folder, name):
            with opened(folder, name) as before:
                _check_base(file, before, base)
            aside = Beside(NO_VERSION, base, name).complete
            durable.rename_new(name, aside, a_fd=folder, b_fd=folder)
            late = _late_version(folder, aside)
            if late != base:
                self._put_back(folder, aside, name)
                raise stale(file, late)
            os.unlink(aside, dir_fd=folder)
            durable.sync_folder(folder)

    def move(self, file: str, to: str, *, base: str) -> Written:
        """Renames version `base` of a file, making the folders above; it stays the same file.

        Raises as `replace` does, and `Conflict` (`page.exists`) where something stands at `to`. Changing only
        case or Unicode form works on file systems that do not tell these apart.
        """
        with telling("move", file), self._parent(file) as (source, name), opened(source, name) as handle:
            _check_base(file, handle, base)
            with telling("move to", to), self._parent(to, make=True) as (target, new):
                move_name(source, name, target, new)
                durable.sync_folder(target)
                durable.sync_folder(source)
            return Written(stat_of(os.fstat(handle)), base)

    def require_root(self) -> None:
        """Raises `Unavailable` (`vault.vanished`) unless the root is still the folder that it was."""
        os.close(open_root(self._root, self.identity))

    def adopt_root(self) -> None:
        """Takes the folder that is at the root's path now for the vault, after the caller has judged it."""
        self.identity = RootIdentity.of(self._root)

    def clean_leftovers(self, leftovers: Iterable[str]) -> tuple[str, ...]:
        """Removes temporary files that a crash left (`Listing.leftovers`); gives the conflict copies made.

        Only for the owner, before its first act.
        """
        copies = []
        for file in leftovers:
            with telling("clean up", file), self._parent(file) as (folder, name):
                copy = clean_leftover(folder, name, self._now())
            if copy is not None:
                copies.append(file.removesuffix(name) + copy)
        return tuple(copies)

    @contextlib.contextmanager
    def _parent(self, file: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Opens the folder that `file` lies in, and gives it with the file's own name."""
        check_segments(file)
        folder, _, name = file.rpartition("/")
        handle = self._made(folder) if make else open_folder(self._root, self.identity, folder)
        try:
            yield handle, name
        finally:
            os.close(handle)

    def _made(self, folder: str) -> int:
        handle = open_root(self._root, self.identity)
        for segment in folder.split("/") if folder else ():
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(segment, dir_fd=handle)
                    durable.sync_folder(handle)
                below = os.open(segment, FOLDER_FLAGS, dir_fd=handle)
            finally:
                os.close(handle)
            handle = below
        return handle

    def _swap(self, folder: int, beside: Beside, name: str) -> None:
        """Puts the new file at `name`, and what was there at `beside.complete`."""
        with _removing(folder, beside.unfinished):
            os.rename(beside.unfinished, beside.complete, src_dir_fd=folder, dst_dir_fd=folder)
        with _removing(folder, beside.complete):
            exchange(folder, beside.complete, name, spare=beside.unfinished)

    def _judge(self, folder: int, beside: Beside, file: str, base: str) -> str | None:
        """Looks at what came out of the exchange: drops it when it is the base, else keeps it as a copy."""
        out = beside.complete
        try:
            with opened(folder, out) as handle:
                is_written = _wait_for_writers(handle)
                if version_of_open(handle) == base and not is_written:
                    os.unlink(out, dir_fd=folder)
                    return None
        except FileNotFoundError:
            return None  # a file system without links, where nothing comes out
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            durable.exchange(out, beside.name, a_fd=folder, b_fd=folder)
            os.unlink(out, dir_fd=folder)
            raise
        copy = keep_as_conflict(folder, out, beside.name, self._now())
        return file.removesuffix(beside.name) + copy

    def _put_back(self, folder: int, aside: str, name: str) -> None:
        try:
            durable.rename_new(aside, name, a_fd=folder, b_fd=folder)
        except FileExistsError:
            keep_as_conflict(folder, aside, name, self._now())
        durable.sync_folder(folder)


@contextlib.contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _removing(folder: int, name: str) -> Iterator[None]:
    """Removes a temporary file when what was to be done with it fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0]


def _stat_in(folder: int, file: str) -> Stat | None:
    try:
        seen = os.stat(file.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise refusal("look at", file, error) from error
    return stat_of(seen) if stat.S_ISREG(seen.st_mode) else None


def _read_once(folder: int, name: str, limit: int) -> tuple[FileBytes, Stat]:
    """Reads a file; gives it with the stat from after the bytes."""
    with opened(folder, name) as handle:
        before = stat_of(os.fstat(handle))
        data = read_all(handle, limit, expected=before.size)
        after = stat_of(os.fstat(handle))
        version = version_of(data) if len(data) == after.size else version_of_open(handle)
        return FileBytes(data, before, version), after


def _check_base(file: str, handle: int, base: str) -> None:
    present = version_of_open(handle)
    if present != base:
        raise stale(file, present)


def _late_version(folder: int, aside: str) -> str:
    """Gives the version of what was moved aside; an empty text where it is not at rest, or no regular file."""
    try:
        with opened(folder, aside) as out:
            return "" if _wait_for_writers(out) else version_of_open(out)
    except OSError:
        return ""


def _wait_for_writers(handle: int) -> bool:
    """Gives an editor that is just saving a moment to finish; tells whether it is still at it."""
    for _ in range(WRITER_WAITS):
        if not has_writer(handle):
            return False
        time.sleep(WRITER_WAIT_S)
    return True

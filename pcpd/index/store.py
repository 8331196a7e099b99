"""The index's database files: numbered, behind a pointer, one writer, a few readers, rebuilt beside.

`index` is a text file that holds a number; `index-<number>.sqlite` is the database. A new database never
takes an old one's name: beside a `-wal` that was left, SQLite would serve the old data. All that is here can
be made again from the vault; a file that is damaged or of another schema is thrown away, not repaired.
"""

import re
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Self

from pcpd import durable, sqlite
from pcpd.errors import Broken
from pcpd.index import fulltext, outbox
from pcpd.index.readers import Readers
from pcpd.index.writer import Writer
from pcpd.sqlite import Transaction

_STORE = "index"
_POINTER = "index"
_OURS = re.compile(r"index-(\d{1,9})\.sqlite(-wal|-shm|-journal)?")
_WAL_KEPT_BYTES = 1024 * 1024
_UNUSABLE = frozenset({"index.corrupt", "index.schema"})


class Index:
    """One vault's index, open. One thread at a time writes; any thread reads.

    `was_reset`: what stood there was damaged or of another schema, so that this one began empty. What it owed
    (versions to commit, effects to do) is lost with it.
    """

    def __init__(self, folder: Path, number: int, *, was_reset: bool = False) -> None:
        """Opens or makes the database of that number; `Index.open` knows which."""
        self.folder = folder
        self.number = number
        self.was_reset = was_reset
        self.writer = Writer(self.path)
        self.readers = Readers(self.path)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Opens the index of a state folder, empty where there is none that can be used.

        The owner's lock keeps every other process away from the folder meanwhile. Raises `Broken`:
        `index.network` (SQLite must not lie on a network file system), `index.locked`, `index.full`,
        `index.read-only`, `index.unreadable`, `index.failed`.
        """
        _refuse_network(folder)
        number = _pointed_at(folder)
        index, was_reset = None, False
        if number is not None and _path(folder, number).exists():
            index = cls._open_usable(folder, number)
            was_reset = index is None
        if index is None:
            index = cls(folder, _next_number(folder), was_reset=was_reset)
            _point(folder, index.number)
        _remove_others(folder, index.number)
        return index

    @property
    def path(self) -> Path:
        """The database file that is in force."""
        return _path(self.folder, self.number)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Gives the writer's transaction: all of the body or nothing. One thread at a time; never nested.

        While held (`hold`), leaving the scope does not commit, and the next scope goes on in the same
        transaction; a body that fails takes all that is held with it, and ends the hold.
        """
        return self.writer.transaction()

    def hold(self) -> None:
        """Keeps the transaction open over the scopes that follow, until `release`: for long scans in slices.

        Readers see nothing of it before; a kill loses all of it. An act that must be seen at once releases
        first; the scan holds again at its next slice.
        """
        self.writer.hold()

    def release(self) -> None:
        """Commits what is held; scopes commit on their own again. Does nothing where nothing is held."""
        self.writer.release()

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """Gives a read-only connection at one point in time: what commits meanwhile is not seen.

        Raises `Unavailable`: `index.busy` when all stay in use for 10 s, `index.closed` after `close`.
        """
        return self.readers.reader()

    def begin_rebuild(self) -> "Index":
        """Makes an empty index beside this one, to be filled and handed to `swap`, or to `discard`."""
        return Index(self.folder, _next_number(self.folder))

    def swap(self, new: "Index") -> bool:
        """Puts a rebuilt index in force, with what this one still owes (outbox, waiting commits).

        New readers see the new one; those at work finish on the old one, whose files go with the last one.
        `new` becomes this index and is not to be used any more. Gives False where the old one was too damaged
        to tell what it owed: every file must be compared with HEAD then.
        """
        new.release()
        carried = self._carry_over(new)
        _point(self.folder, new.number)
        old_path, old_writer = self.path, self.writer
        self.number, self.writer = new.number, new.writer
        new.readers.close()
        self.readers.move(self.path, lambda: _remove(old_path))
        old_writer.close()
        return carried

    def close(self) -> None:
        """Commits what is held, and ends all connections; readers at work finish."""
        self.release()
        self.readers.close()
        self.writer.close()

    def discard(self) -> None:
        """Closes a rebuild that is not wanted, and removes its files."""
        self.writer.roll_back()
        self.close()
        _remove(self.path)

    def checkpoint(self) -> bool:
        """Moves what was committed from the `-wal` into the database, as far as readers allow, and shortens it.

        Any thread may call it; it blocks neither readers nor the writer. Tells whether all was moved.
        """
        path = self.path
        try:
            return _checkpoint(path)
        except Broken:
            if path != self.path:  # a swap has just taken the file away
                return False
            raise

    def optimize(self) -> bool:
        """Merges a small part of the full text's segments, on the writer; tells whether there may be more."""
        with self.transaction() as tx:
            return fulltext.merge_step(tx)

    def shrink(self) -> None:
        """Lets go of memory that bulk work took, on the thread that writes; readers keep theirs."""
        self.writer.shrink()

    def wal_bytes(self) -> int:
        """The size of the `-wal`: much of it makes readers slower, so it is time for `checkpoint`."""
        return _size(_wal(self.path))

    def size_bytes(self) -> int:
        """What the index takes on the disk."""
        return _size(self.path) + self.wal_bytes()

    @classmethod
    def _open_usable(cls, folder: Path, number: int) -> Self | None:
        """Opens a database, or gives None where it is damaged or of another schema."""
        try:
            return cls(folder, number)
        except Broken as error:
            if error.code not in _UNUSABLE:
                raise
            return None

    def _carry_over(self, new: "Index") -> bool:
        try:
            self.release()
            with self.transaction() as tx, new.transaction() as new_tx:
                outbox.carry_over(tx, new_tx)
        except Broken as error:
            if error.code not in _UNUSABLE:
                raise
            return False
        return True


def _refuse_network(folder: Path) -> None:
    kind = durable.network_filesystem(folder)
    if kind is not None:
        raise Broken(
            "index.network",
            f"the state folder {folder} lies on a network file system ({kind}), where SQLite loses data",
            hint="choose a state folder on a local disk",
        )


def _point(folder: Path, number: int) -> None:
    try:
        durable.write(folder / _POINTER, f"{number}\n".encode())
    except OSError as error:
        raise Broken(
            "index.read-only",
            f"cannot write {folder / _POINTER}: {error.strerror}",
            hint="make the state folder writable, and look whether its disk is full",
        ) from error


def _pointed_at(folder: Path) -> int | None:
    try:
        with (folder / _POINTER).open("rb") as pointer:
            text = pointer.read(12).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and len(text) < 10 else None


def _next_number(folder: Path) -> int:
    numbers = [int(match[1]) for match in map(_OURS.fullmatch, _names(folder)) if match]
    return max([*numbers, _pointed_at(folder) or 0]) + 1


def _remove_others(folder: Path, number: int) -> None:
    """Removes databases that a rebuild or a kill left."""
    for name in _names(folder):
        match = _OURS.fullmatch(name)
        if match and int(match[1]) != number:
            (folder / name).unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError as error:
        raise Broken(
            "index.unreadable",
            f"cannot look into the state folder {folder}: {error.strerror}",
            hint="look whether it exists and belongs to the user that runs pcpd",
        ) from error


def _path(folder: Path, number: int) -> Path:
    return folder / f"index-{number}.sqlite"


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _checkpoint(path: Path) -> bool:
    with sqlite.guarded(_STORE, path), closing(sqlite.connect(path, store=_STORE)) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        busy, in_wal, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        is_done = not busy and in_wal == moved
        if is_done and _size(_wal(path)) > _WAL_KEPT_BYTES:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return is_done


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

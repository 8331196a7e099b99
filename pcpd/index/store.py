"""The index's database files: numbered, behind a pointer, one writer, a few readers, rebuilt beside.

`index` is a text file that holds a number; `index-<number>.sqlite` is the database. A new database never takes
an old one's name: beside a `-wal` that was left, SQLite would serve the old data. All that is here can be made
again from the vault; a file that is damaged or of another schema is thrown away, not repaired.
"""

import re
import sqlite3
import threading
import zlib
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from pcpd import durable, sqlite
from pcpd.errors import Broken
from pcpd.index import fulltext, outbox
from pcpd.index.readers import Readers
from pcpd.sqlite import Transaction

FORMAT = 1
"""Raised when the same vault gives other rows under the same schema: every index is then made anew."""

_STORE = "index"
_SCHEMA = "pcpd.index.schema"
_POINTER = "index"
_OURS = re.compile(r"index-(\d{1,9})\.sqlite(-wal|-shm|-journal)?")
_CACHE_KIB = 16 * 1024
_WAL_KEPT_BYTES = 8 * 1024 * 1024


class Index:
    """One vault's index, open. One thread at a time writes; any thread reads.

    `was_reset`: what stood there was damaged or of another schema, so that this one began empty.
    """

    def __init__(self, folder: Path, number: int, *, was_reset: bool = False) -> None:
        """Opens or makes the database of that number; `Index.open` knows which."""
        self.folder = folder
        self.was_reset = was_reset
        self._number = number
        self._writing = threading.Lock()
        self._is_held = False
        self._writer = _open_writer(self.path)
        self._readers = Readers(self.path)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Opens the index of a state folder, empty where there is none that can be used.

        Raises `Broken`: `index.network` (SQLite must not lie on a network file system), `index.locked`,
        `index.full`, `index.read_only`, `index.unreadable`.
        """
        kind = durable.network_filesystem(folder)
        if kind is not None:
            raise Broken(
                "index.network",
                f"the state folder {folder} lies on a network file system ({kind}), where SQLite loses data",
                hint="choose a state folder on a local disk",
            )
        number = _pointed_at(folder)
        index, was_reset = None, False
        if number is not None and _path(folder, number).exists():
            index = cls._open_usable(folder, number)
            was_reset = index is None
        if index is None:
            index = cls(folder, _next_number(folder), was_reset=was_reset)
            index._point()
        _remove_others(folder, index._number)
        return index

    @property
    def path(self) -> Path:
        """The database file that is in force."""
        return _path(self.folder, self._number)

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Gives the writer's transaction: all of the body or nothing. One thread at a time; never nested.

        While held (`hold`), leaving the scope does not commit, and the next scope goes on in the same
        transaction; a body that fails takes all that is held with it, and ends the hold.
        """
        if not self._writing.acquire(blocking=False):
            raise RuntimeError("the index is being written; its writer serves one scope at a time")
        try:
            with sqlite.guarded(_STORE, self.path):
                if not self._writer.in_transaction:
                    self._writer.execute("BEGIN IMMEDIATE")
                yield Transaction(self._writer)
                if not self._writer.in_transaction:
                    raise RuntimeError("the body of a transaction ended it")
                if not self._is_held:
                    self._writer.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._writing.release()

    def hold(self) -> None:
        """Keeps the transaction open over the scopes that follow, until `release`: for long scans in slices.

        Readers see nothing of it before; a kill loses all of it.
        """
        self._is_held = True

    def release(self) -> None:
        """Commits what is held; scopes commit on their own again. Does nothing where nothing is held."""
        self._is_held = False
        if self._writer.in_transaction:
            with self.transaction():
                pass

    @contextmanager
    def reader(self) -> Generator[sqlite3.Connection]:
        """Gives a read-only connection at one point in time: what commits meanwhile is not seen.

        Raises `Unavailable` (`index.busy`) when all readers stay in use for 10 s, (`index.closed`) after `close`.
        """
        with self._readers.reader() as connection:
            yield connection

    def begin_rebuild(self) -> "Index":
        """Makes an empty index beside this one, to be filled and handed to `swap`, or discarded by `close`."""
        return Index(self.folder, _next_number(self.folder))

    def swap(self, new: "Index") -> None:
        """Puts a rebuilt index in force, with what this one still owes (outbox, waiting commits).

        New readers see the new one; those at work finish on the old one, whose files go with the last of them.
        `new` becomes this index and is not to be used any more.
        """
        self.release()
        new.release()
        with self.transaction() as tx, new.transaction() as new_tx:
            outbox.carry_over(tx, new_tx)
        old_path, old_writer = self.path, self._writer
        new._point()
        self._number, self._writer = new._number, new._writer
        new._readers.close()
        old_writer.close()
        self._readers.move(self.path, lambda: _remove(old_path))

    def close(self) -> None:
        """Ends all connections once their readers are done; commits what is held."""
        self.release()
        self._readers.close()
        self._writer.close()

    def discard(self) -> None:
        """Closes a rebuild that is not wanted, and removes its files."""
        self._is_held = False
        self._roll_back()
        self.close()
        _remove(self.path)

    def checkpoint(self) -> bool:
        """Moves what was committed from the `-wal` into the database, as far as readers allow.

        Any thread may call it; it blocks neither readers nor the writer. Tells whether all was moved.
        """
        with (
            sqlite.guarded(_STORE, self.path),
            closing(sqlite.connect(self.path, store=_STORE)) as connection,
        ):
            busy, in_wal, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return not busy and in_wal == moved

    def optimize(self) -> bool:
        """Merges a small part of the full text's segments, on the writer; tells whether there is more to do."""
        with self.transaction() as tx:
            return fulltext.merge_step(tx)

    def wal_bytes(self) -> int:
        """The size of the `-wal`: much of it makes readers slower, so it is time for `checkpoint`."""
        return _size(self.path.with_name(f"{self.path.name}-wal"))

    def size_bytes(self) -> int:
        """What the index takes on the disk."""
        return _size(self.path) + self.wal_bytes()

    @classmethod
    def _open_usable(cls, folder: Path, number: int) -> Self | None:
        """Opens a database, or gives None where it is damaged or of another schema."""
        try:
            return cls(folder, number)
        except Broken as error:
            if error.code not in {"index.corrupt", "index.schema"}:
                raise
            return None

    def _point(self) -> None:
        try:
            durable.write(self.folder / _POINTER, f"{self._number}\n".encode())
        except OSError as error:
            raise Broken(
                "index.read_only",
                f"cannot write {self.folder / _POINTER}: {error.strerror}",
                hint="make the state folder writable, and look whether its disk is full",
            ) from error

    def _roll_back(self) -> None:
        self._is_held = False
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")


def schema_version() -> int:
    """Gives the number that `user_version` holds in every database of this schema and format."""
    text = f"{FORMAT} {fulltext.VERSION}" + "".join(script for _, _, script in sqlite.scripts(_SCHEMA))
    return zlib.crc32(text.encode()) & 0x7FFFFFFF or 1


def _open_writer(path: Path) -> sqlite3.Connection:
    connection = sqlite.connect(path, create=not path.exists(), store=_STORE)
    try:
        with sqlite.guarded(_STORE, path):
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            # Checkpoints are made when idle: in the way of a save they would cost it 10 ms.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
            _lay_out(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _lay_out(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the tables in an empty database. Raises `Broken` (`index.schema`) where other tables are."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == schema_version():
        return
    with sqlite.transaction(connection, store=_STORE) as tx:
        if tx.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            raise Broken("index.schema", f"{path} was made by another version of pcpd")
        for _, _, script in sqlite.scripts(_SCHEMA):
            for statement in sqlite.statements(script):
                tx.execute(statement)
        tx.execute(f"PRAGMA user_version = {schema_version():d}")


def _pointed_at(folder: Path) -> int | None:
    try:
        text = (folder / _POINTER).read_bytes()[:20].strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and len(text) <= 9 else None


def _next_number(folder: Path) -> int:
    numbers = [int(match[1]) for match in map(_OURS.fullmatch, _names(folder)) if match]
    return max([*numbers, _pointed_at(folder) or 0]) + 1


def _remove_others(folder: Path, number: int) -> None:
    """Removes databases that a rebuild or a kill left. The owner's lock keeps everybody else out."""
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


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

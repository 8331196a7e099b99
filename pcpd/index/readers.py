"""A few read-only connections to one database, lent out one scope at a time."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from weakref import WeakSet

from pcpd import sqlite
from pcpd.errors import Unavailable

READERS = 4
WAIT_SECONDS = 10.0
_CACHE_KIB = 2 * 1024


class _Reader(sqlite3.Connection):
    """A connection that knows its cursors.

    One that is left half read keeps its point in time alive, even over a rollback: whoever got the connection
    next would read old rows.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Takes what `sqlite3.connect` passes on."""
        super().__init__(*arguments, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        """Runs one statement."""
        cursor = self.cursor()
        self._cursors.add(cursor)
        return cursor.execute(sql, values)

    def finish(self) -> bool:
        """Ends all reading, so that what is half read cannot be read on; tells whether it may be lent again."""
        try:
            for cursor in list(self._cursors):
                cursor.close()
            self.rollback()
        except sqlite3.Error:
            return False
        return True


class Readers:
    """Lends at most READERS connections; keeps idle ones; moves to another file while old readers finish."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet: a connection is made when one is asked for."""
        self._path = path
        self._changed = threading.Condition()
        self._idle: list[_Reader] = []
        self._lent: dict[_Reader, Path] = {}
        self._leaving: list[tuple[Path, Callable[[], None]]] = []
        self._slots = READERS
        self._is_closed = False

    @contextmanager
    def reader(self) -> Generator[sqlite3.Connection]:
        """Gives a connection in a read transaction. Raises `Unavailable` (`index.busy`, `index.closed`)."""
        connection = self._lend()
        try:
            with sqlite.guarded("index", self._path):
                connection.execute("BEGIN")
                yield connection
        finally:
            self._take_back(connection)

    def move(self, path: Path, when_left: Callable[[], None]) -> None:
        """Lends connections to `path` from now on; calls `when_left` once nobody reads the old file."""
        with self._changed:
            old, self._path = self._path, path
            _close_all(self._idle)
            self._leaving.append((old, when_left))
            self._leave()

    def close(self) -> None:
        """Lends no more; those at work finish."""
        with self._changed:
            self._is_closed = True
            _close_all(self._idle)
            self._changed.notify_all()

    def _lend(self) -> _Reader:
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_closed or self._slots > 0, WAIT_SECONDS):
                raise Unavailable(
                    "index.busy", "every reader of the index is busy", hint="try again in a moment"
                )
            if self._is_closed:
                raise Unavailable("index.closed", "the index is closed", hint="start the owner again")
            connection = self._idle.pop() if self._idle else _open(self._path)
            self._slots -= 1
            self._lent[connection] = self._path
            return connection

    def _take_back(self, connection: _Reader) -> None:
        is_usable = connection.finish()
        with self._changed:
            self._slots += 1
            is_usable &= self._lent.pop(connection) == self._path
            if is_usable and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()
                self._leave()
            self._changed.notify()

    def _leave(self) -> None:
        in_use = set(self._lent.values())
        for path, when_left in [left for left in self._leaving if left[0] not in in_use]:
            when_left()
            self._leaving.remove((path, when_left))


def _close_all(connections: list[_Reader]) -> None:
    while connections:
        connections.pop().close()


def _open(path: Path) -> _Reader:
    connection = cast("_Reader", sqlite.connect(path, read_only=True, store="index", factory=_Reader))
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection

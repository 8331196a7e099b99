"""A few read-only connections to one database, lent out one scope at a time."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from pcpd import sqlite
from pcpd.errors import Unavailable

READERS = 4
WAIT_SECONDS = 10.0
_CACHE_KIB = 2 * 1024


class Readers:
    """Lends at most READERS connections; keeps idle ones; moves to another file while old readers finish."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet: a connection is made when one is asked for."""
        self._path = path
        self._changed = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._lent: dict[sqlite3.Connection, Path] = {}
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

    def _lend(self) -> sqlite3.Connection:
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

    def _take_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._changed:
            self._slots += 1
            if self._lent.pop(connection) == self._path and not self._is_closed:
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


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite.connect(path, read_only=True, store="index")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection

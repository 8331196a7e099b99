"""The one connection that writes an index: its transaction scope, also held open over slices of work."""

import sqlite3
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pcpd import sqlite
from pcpd.errors import Broken
from pcpd.index import fulltext
from pcpd.sqlite import Transaction

FORMAT = 1
"""Raised when the same vault gives other rows under the same schema: every index is then made anew."""

SCHEMA = "pcpd.index.schema"

_STORE = "index"
_CACHE_KIB = 8 * 1024


class Writer:
    """Writes one database. One thread at a time, one scope at a time."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the database. Raises `Broken`; `index.schema` where it has other tables."""
        self.path = path
        self._busy = threading.Lock()
        self._is_held = False
        self._connection = _open(path)

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Gives the scope that `Index.transaction` describes."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("the index is being written; its writer serves one scope at a time")
        try:
            with sqlite.guarded(_STORE, self.path):
                if not self._connection.in_transaction:
                    self._connection.execute("BEGIN IMMEDIATE")
                yield Transaction(self._connection)
                if not self._connection.in_transaction:
                    raise RuntimeError("the body of a transaction ended it")
                if not self._is_held:
                    self._connection.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        finally:
            self._busy.release()

    def hold(self) -> None:
        """Leaves the transaction open at the end of each scope."""
        self._is_held = True

    def release(self) -> None:
        """Commits what is held, and ends the hold."""
        self._is_held = False
        if self._connection.in_transaction:
            with self.transaction():
                pass

    def shrink(self) -> None:
        """Lets go of the pages that the connection keeps in memory. One thread at a time, like a scope."""
        self._connection.execute("PRAGMA shrink_memory")

    def roll_back(self) -> None:
        """Undoes what is not committed, and ends the hold."""
        self._is_held = False
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Ends the connection; what is not committed is undone."""
        self._connection.close()


def schema_version() -> int:
    """Gives the number that `user_version` holds in every database of this schema and format."""
    text = f"{FORMAT} {fulltext.VERSION}" + "".join(script for _, _, script in sqlite.scripts(SCHEMA))
    return zlib.crc32(text.encode()) & 0x7FFFFFFF or 1


def _open(path: Path) -> sqlite3.Connection:
    is_new = not path.exists()
    connection = sqlite.connect(path, create=is_new, store=_STORE)
    try:
        with sqlite.guarded(_STORE, path):
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            # Checkpoints are made when idle: in the way of a save they would cost it 10 ms.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            if is_new:
                _lay_out(connection)
            elif _version(connection) != schema_version():
                raise Broken("index.schema", f"{path} was made by another version of pcpd")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _lay_out(connection: sqlite3.Connection) -> None:
    with sqlite.transaction(connection, store=_STORE) as tx:
        for _, _, script in sqlite.scripts(SCHEMA):
            for statement in sqlite.statements(script):
                tx.execute(statement)
        tx.execute(f"PRAGMA user_version = {schema_version():d}")

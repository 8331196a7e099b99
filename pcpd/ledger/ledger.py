"""The ledger of one vault on this device: what the vault cannot tell, in one SQLite file.

Opens it, sets a damaged one aside, and gives the modules beside it (`tokens`, `audit`, `idempotency`, `keys`)
their one connection. Source: pages.md §1.
"""

import secrets
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

from pcpd import durable, sqlite
from pcpd.errors import Broken
from pcpd.ledger.aside import fault_of, set_aside
from pcpd.ledger.issued import Verified
from pcpd.pages.times import to_z
from pcpd.sqlite import Transaction

NAME = "ledger.sqlite"
STORE = "ledger"
SCHEMA = "pcpd.ledger.schema"
TABLES = (
    "keys",
    "tokens",
    "audit",
    "trail",
    "objects",
    "idempotency",
    "begun",
    "paused",
    "granted",
    "pruned",
)
LOG_PAGES = 4_000
"""Pages of 4 KiB in the write-ahead log before they are moved to the file, which takes milliseconds: 1,300 rows."""


class Ledger:
    """An open ledger. Any thread may use it; `lock` is held while its connection works.

    `notice` says what a person must know, such as that a damaged ledger was set aside; None when all is well.
    `verified` remembers the tokens that were checked (`ledger.tokens`), `known_keys` keys (`ledger.keys`).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        path: Path,
        now: Callable[[], datetime],
        entropy: Callable[[int], bytes],
        notice: str | None,
    ) -> None:
        """Takes an open, migrated connection; see `open`."""
        self.path = path
        self.notice = notice
        self.now = now
        self.entropy = entropy
        self.lock = threading.RLock()
        self.verified = Verified()
        self.known_keys: dict[str, bytes] = {}
        self._level = ""
        self._connection = connection

    @classmethod
    def open(
        cls,
        folder: Path,
        now: Callable[[], datetime],
        *,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Self:
        """Opens the ledger in the vault's state folder, or begins a new one; `now` is aware UTC.

        One that is damaged is set aside under a dated name, and `notice` says so. Raises `Broken`: the folder
        lies on a network file system, a newer pcpd made the ledger, it is locked, the disk is full or cannot
        be written. The file is then as it was.
        """
        path = folder / NAME
        _refuse_network(folder)
        notice = None
        unusable = fault_of(path)
        if unusable:
            notice = _lost(set_aside(path, now()), unusable)
        try:
            connection = _connect(path)
        except Broken as error:
            if error.code != "ledger.corrupt":
                raise
            notice = _lost(set_aside(path, now()), error.message)
            connection = _connect(path)
        return cls(connection, path=path, now=now, entropy=entropy, notice=notice)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Generator[Transaction]:
        """Gives a transaction: all of the body or nothing.

        What a `durable` one wrote survives a power cut; else it survives the end of the process, and a power
        cut may take the last moments. Raises `Broken` (`ledger.full`, `.read-only`, `.locked`, `.corrupt`).
        """
        level = "FULL" if durable else "NORMAL"
        with self.lock, _advised():
            if level != self._level:
                with sqlite.guarded(STORE, self.path):
                    self._connection.execute(f"PRAGMA synchronous = {level}")
                self._level = level
            with sqlite.transaction(self._connection, store=STORE) as transaction:
                yield transaction

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Gives the connection for short reads. Raises `Broken`."""
        with self.lock, _advised(), sqlite.guarded(STORE, self.path):
            yield self._connection

    @contextmanager
    def beside(self) -> Generator[sqlite3.Connection]:
        """Gives a read-only connection of its own, for long reads of one moment: nobody who writes waits for them.

        Raises `Broken`.
        """
        with _advised(), sqlite.guarded(STORE, self.path):
            connection = sqlite.connect(self.path, read_only=True, store=STORE)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    def stamp(self, offset: timedelta = timedelta()) -> str:
        """Gives the present instant plus `offset` as RFC 3339 UTC, in whole seconds, so that texts sort."""
        return to_z(self.now() + offset)

    def checkpoint(self) -> None:
        """Moves the write-ahead log into the main file and empties it, so that erased rows are in neither."""
        with self.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Closes the file; safe to repeat."""
        with self.lock, suppress(sqlite3.ProgrammingError):
            self._connection.close()


@contextmanager
def _advised() -> Generator[None]:
    """Says what helps when the ledger turns out to be damaged while it is open."""
    try:
        yield
    except Broken as error:
        if error.code == "ledger.corrupt":
            error.hint = "stop pcpd and start it again: a damaged ledger is set aside, and a new one begins"
        raise


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite.connect(path, create=True, durable=True, store=STORE)
    try:
        _migrate(connection, path)
        _check(connection, path)
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    try:
        sqlite.migrate(connection, SCHEMA, store=STORE)
    except sqlite3.Error as error:
        # Not called damage: a fault of a migration must not cost anybody their trail.
        raise Broken(
            "ledger.migration",
            f"the ledger {path} could not be brought to this version ({error}); it was left as it was",
            hint="go back to the version of pcpd that you had, and report this",
        ) from error


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises `Broken` (`ledger.corrupt`) unless every table is there and the pages hang together."""
    with sqlite.guarded(STORE, path):
        there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        missing = [table for table in TABLES if table not in there]
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if missing:
        found = f"it has no table {missing[0]}"
    if found != "ok":
        raise Broken("ledger.corrupt", f"the ledger {path} is damaged ({found})")


def _refuse_network(folder: Path) -> None:
    kind = durable.network_filesystem(folder)
    if kind:
        raise Broken(
            "ledger.network",
            f"the state folder {folder} lies on a network file system ({kind}), where SQLite loses data",
            hint="put the state folder on a local disk",
        )


def _lost(aside: Path, why: str) -> str:
    return (
        f"The ledger could not be used ({why}). It was set aside as {aside}; a new audit trail begins, and "
        "every token must be made again with `pcpd token create`."
    )

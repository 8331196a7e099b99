"""SQLite as this house uses it: opening, pragmas, numbered migrations, the one transaction scope.

Knows no table. `store` is the room whose database it is (`index`, `ledger`); failures come as `Broken` with a
code of that room: `<store>.locked`, `.full`, `.read-only`, `.corrupt`, `.unreadable`, `.newer`, `.closed`, `.failed`.
"""

import os
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from pcpd.errors import Broken

BUSY_MS = 2_000
"""How long a statement waits for somebody else's lock before it is an error."""

Values = Sequence[Any] | Mapping[str, Any]

_PLAIN_CODE = 0xFF  # SQLite's extended codes carry the plain one in the low byte.
_LOCKED = (
    "locked",
    "is locked by another program",
    "close the program that has it open, such as a database browser; nothing was written",
)
_CLOSED = ("closed", "is closed, its owner is ending", "try again")
_FAILURES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: (
        "full",
        "cannot grow, the disk is full",
        "free some space; no page in the vault is at risk",
    ),
    sqlite3.SQLITE_READONLY: (
        "read-only",
        "cannot be written",
        "make its folder and files writable for the user that runs pcpd",
    ),
    sqlite3.SQLITE_CORRUPT: ("corrupt", "is damaged", ""),
    sqlite3.SQLITE_NOTADB: ("corrupt", "is no database", ""),
    sqlite3.SQLITE_CANTOPEN: (
        "unreadable",
        "cannot be opened",
        "look whether its folder exists and belongs to the user that runs pcpd",
    ),
    sqlite3.SQLITE_IOERR: ("failed", "met an input or output error", "look at the disk's health and space"),
}


class Transaction:
    """The open transaction of a connection: reads and writes, but neither commits nor nests.

    The scope that gave it commits when it is left normally and rolls back when an exception leaves it.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Wraps a connection on which the scope has begun."""
        self._connection = connection

    def execute(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Runs one statement."""
        return self._connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Values]) -> sqlite3.Cursor:
        """Runs one statement for each row."""
        return self._connection.executemany(sql, rows)


Reads = sqlite3.Connection | Transaction
"""Where rows can be read from: a reader's connection, or the transaction that is being made."""


def connect(
    path: Path,
    *,
    read_only: bool = False,
    create: bool = False,
    durable: bool = False,
    store: str = "store",
    factory: type[sqlite3.Connection] = sqlite3.Connection,
) -> sqlite3.Connection:
    """Opens a database that any one thread at a time may use.

    `durable`: a commit survives a power cut, not only the end of the process. Raises `Broken`: there is none
    (unless `create`), it is damaged, locked, or its folder cannot be written. The caller has looked at the
    file system (`durable.network_filesystem`) before.
    """
    mode = "ro" if read_only else "rw"
    with guarded(store, path):
        if create and not read_only:
            _touch(path)
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            factory=factory,
        )
        try:
            _set_up(connection, read_only=read_only, durable=durable)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, *, store: str = "store") -> Generator[Transaction]:
    """Gives the one transaction scope: all of the body or nothing. Nested use is a fault of the program.

    Raises `Broken` where the store fails; the exception of the body otherwise.
    """
    if connection.in_transaction:
        raise RuntimeError("a transaction is open already; pass it on instead of opening another")
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield Transaction(connection)
            if not connection.in_transaction:
                raise RuntimeError("the body of a transaction ended it")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        _raise_broken(error, store, _file_of(connection))


@contextmanager
def guarded(store: str, where: Path | sqlite3.Connection) -> Generator[None]:
    """Turns SQLite's errors of the body into `Broken` with a code of `store`."""
    try:
        yield
    except sqlite3.Error as error:
        _raise_broken(error, store, where if isinstance(where, Path) else _file_of(where))


def migrate(connection: sqlite3.Connection, package: str, *, store: str = "store") -> None:
    """Brings a database to the newest of the package's `NNN_name.sql`, all of them or none.

    `user_version` is the number of the last one applied, so a current database costs one read;
    sqlite-utils keeps the list of those applied, with times. Raises `Broken` (`<store>.newer`), with
    nothing changed, where a later pcpd has been at it.
    """
    steps = scripts(package)
    newest = max(steps)[0]
    with guarded(store, connection):
        if _version(connection) == newest:
            return
        with transaction(connection, store=store):
            version = _version(connection)
            if version > newest:
                raise Broken(
                    f"{store}.newer",
                    f"{_file_of(connection)} was made by a newer pcpd (version {version}, not {newest})",
                    hint="install the newer pcpd again; the file was left as it is",
                )
            _apply(connection, package, steps)
            connection.execute(f"PRAGMA user_version = {newest:d}")


@cache
def scripts(package: str) -> tuple[tuple[int, str, str], ...]:
    """Gives the package's numbered SQL files in order: number, name without suffix, text."""
    files = [entry for entry in resources.files(package).iterdir() if entry.name.endswith(".sql")]
    return tuple(
        (int(entry.name[:3]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in sorted(files, key=lambda entry: entry.name)
    )


def statements(script: str) -> Generator[str]:
    """Splits a script into statements, so that all run in the transaction that is open.

    (`executescript` would commit it first.)
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _touch(path: Path) -> None:
    """Makes the file for its owner's eyes alone; SQLite gives `-wal` and `-shm` the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        refusal = sqlite3.OperationalError(f"unable to open database file: {error.strerror}")
        refusal.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise refusal from error


def _set_up(connection: sqlite3.Connection, *, read_only: bool, durable: bool) -> None:
    connection.row_factory = sqlite3.Row
    # Sorted rows hold page text: never in files outside the state folder.
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA foreign_keys = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    if durable:
        connection.execute("PRAGMA fullfsync = ON")  # macOS: an fsync that reaches the platter
    connection.execute("PRAGMA journal_mode = WAL")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _apply(connection: sqlite3.Connection, package: str, steps: Sequence[tuple[int, str, str]]) -> None:
    # sqlite-utils takes 70 ms to import: only where there is something to migrate.
    import sqlite_utils

    migrations = sqlite_utils.Migrations(package)
    for _, name, script in steps:

        def step(db: sqlite_utils.Database, script: str = script) -> None:
            for statement in statements(script):
                db.conn.execute(statement)

        migrations(name=name)(step)
    migrations.apply(sqlite_utils.Database(connection, recursive_triggers=False, execute_plugins=False))


def _file_of(connection: sqlite3.Connection) -> Path:
    try:
        return Path(connection.execute("PRAGMA database_list").fetchone()[2])
    except sqlite3.Error:  # closed, or too damaged for its own name
        return Path("database")


def _raise_broken(error: sqlite3.Error, store: str, path: Path) -> NoReturn:
    number = getattr(error, "sqlite_errorcode", None)  # Python's own refusals have none
    if number is not None:
        failure = _FAILURES.get(number & _PLAIN_CODE)
    else:
        failure = _CLOSED if "closed database" in str(error) else None
    if failure is None:
        raise error
    what, why, hint = failure
    raise Broken(f"{store}.{what}", f"the {store} {path} {why} ({error})", hint=hint) from error

"""Databases open as the house wants them, transactions are whole, and migrations are all or nothing."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pcpd import sqlite
from pcpd.errors import Broken

Package = Callable[..., str]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database with one table, `notes (text)`."""
    with closing(sqlite.connect(tmp_path / "notes.sqlite", create=True)) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        yield connection


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Package:
    """Makes importable packages of numbered SQL files."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(*scripts: str) -> str:
        name = f"steps_{abs(hash((request.node.name, scripts)))}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        for number, script in enumerate(scripts, 1):
            (tmp_path / name / f"{number:03}_step_{number}.sql").write_text(script, encoding="utf-8")
        return name

    return make


def texts(connection: sqlite3.Connection) -> list[str]:
    """Gives what `notes` holds."""
    return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY text")]


class TestOpening:
    """`connect` gives every connection the same habits, and says plainly what is in the way."""

    def test_a_new_database_and_its_companions_are_for_their_owner_alone(self, tmp_path: Path) -> None:
        """Also under a permissive umask."""
        before = os.umask(0)
        try:
            with closing(sqlite.connect(tmp_path / "a.sqlite", create=True)) as connection:
                connection.execute("CREATE TABLE t (x)")
                modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        finally:
            os.umask(before)
        assert modes == {"a.sqlite": 0o600, "a.sqlite-wal": 0o600, "a.sqlite-shm": 0o600}

    def test_names_that_mean_something_in_an_address_are_only_names(self, tmp_path: Path) -> None:
        """SQLite takes addresses here, in which `?`, `#` and `%` would have a meaning."""
        path = tmp_path / "what? 100% #1 ü.sqlite"
        sqlite.connect(path, create=True).close()
        assert path.exists()
        sqlite.connect(path, read_only=True).close()

    def test_pragmas_hold_for_writers(self, database: sqlite3.Connection) -> None:
        """WAL, wiped free pages, foreign keys, sorting in memory."""
        names = ("journal_mode", "secure_delete", "foreign_keys", "temp_store", "synchronous")
        found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        assert found == ["wal", 1, 1, 2, 1]

    def test_a_durable_database_syncs_at_every_commit(self, tmp_path: Path) -> None:
        """`synchronous` is FULL for what cannot be made again."""
        with closing(sqlite.connect(tmp_path / "a.sqlite", create=True, durable=True)) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2

    def test_a_read_only_connection_writes_nothing(
        self, tmp_path: Path, database: sqlite3.Connection
    ) -> None:
        """And says that it cannot, in the words of its store."""
        with closing(sqlite.connect(tmp_path / "notes.sqlite", read_only=True)) as reader:
            with pytest.raises(Broken) as caught, sqlite.guarded("index", reader):
                reader.execute("INSERT INTO notes VALUES ('x')")
            assert texts(reader) == []
        assert caught.value.code == "index.read-only"
        assert caught.value.hint

    def test_a_missing_database_is_not_made_unless_asked(self, tmp_path: Path) -> None:
        """Otherwise a wrong folder would look like an empty store."""
        for read_only in (True, False):
            with pytest.raises(Broken) as caught:
                sqlite.connect(tmp_path / "none.sqlite", read_only=read_only, store="ledger")
            assert caught.value.code == "ledger.unreadable"
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        """The error names the path that was tried."""
        with pytest.raises(Broken, match="nowhere") as caught:
            sqlite.connect(tmp_path / "nowhere" / "a.sqlite", create=True, store="index")
        assert caught.value.code == "index.unreadable"

    @pytest.mark.parametrize(
        "data", [b"Dear diary, this is no database. " * 200, b"SQLite format 3\0" + b"\xff" * 8000]
    )
    def test_a_damaged_file_is_told_from_a_locked_one(self, tmp_path: Path, data: bytes) -> None:
        """Callers react to `.corrupt` by rebuilding."""
        (tmp_path / "a.sqlite").write_bytes(data)
        with pytest.raises(Broken) as caught:
            sqlite.connect(tmp_path / "a.sqlite", store="index")
        assert caught.value.code == "index.corrupt"

    def test_a_folder_that_may_not_be_written_is_said(self, unprivileged: Path) -> None:
        """For a user without rights on it."""
        unprivileged.chmod(0o500)
        with pytest.raises(Broken) as caught:
            sqlite.connect(unprivileged / "a.sqlite", create=True, store="index")
        assert caught.value.code == "index.unreadable"
        unprivileged.chmod(0o700)

    def test_what_was_deleted_is_wiped_from_the_file(
        self, tmp_path: Path, database: sqlite3.Connection
    ) -> None:
        """Free pages hold zeros, not old text (promise 7)."""
        with sqlite.transaction(database) as tx:
            tx.executemany("INSERT INTO notes VALUES (?)", [(f"zyxquartz {n}" * 50,) for n in range(100)])
        with sqlite.transaction(database) as tx:
            tx.execute("DELETE FROM notes")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert b"zyxquartz" not in (tmp_path / "notes.sqlite").read_bytes()


class TestTransactions:
    """The one scope in which something is written."""

    def test_the_body_happens_as_a_whole(self, database: sqlite3.Connection) -> None:
        """Left normally, it is committed."""
        with sqlite.transaction(database) as tx:
            tx.execute("INSERT INTO notes VALUES (?)", ("a",))
            tx.executemany("INSERT INTO notes VALUES (:text)", [{"text": "b"}, {"text": "c"}])
        assert texts(database) == ["a", "b", "c"]
        assert not database.in_transaction

    def test_an_exception_undoes_the_body_and_comes_out(self, database: sqlite3.Connection) -> None:
        """Nothing of the body stays, and the exception is not dressed up."""

        def body() -> None:
            with sqlite.transaction(database) as tx:
                tx.execute("INSERT INTO notes VALUES ('a')")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            body()
        assert texts(database) == []
        assert not database.in_transaction

    def test_nesting_is_a_fault_of_the_program(self, database: sqlite3.Connection) -> None:
        """The inner scope would commit what the outer one may still undo."""
        with (
            pytest.raises(RuntimeError, match="open already"),
            sqlite.transaction(database),
            sqlite.transaction(database),
        ):
            pytest.fail("the inner body must not run")
        assert not database.in_transaction

    def test_a_body_that_commits_by_itself_is_found_out(self, database: sqlite3.Connection) -> None:
        """The scope gives no way to commit; going around it is an error."""
        with pytest.raises(RuntimeError, match="ended it"), sqlite.transaction(database) as tx:
            tx.execute("COMMIT")

    def test_another_programs_lock_is_waited_for_and_then_said(
        self, tmp_path: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A database browser with an open transaction is not our fault, and not ours to break."""
        monkeypatch.setattr(sqlite, "BUSY_MS", 20)
        with (
            closing(sqlite3.connect(tmp_path / "notes.sqlite", isolation_level=None)) as browser,
            closing(sqlite.connect(tmp_path / "notes.sqlite")) as ours,
        ):
            browser.execute("BEGIN IMMEDIATE")
            with pytest.raises(Broken) as caught, sqlite.transaction(ours, store="index"):
                pytest.fail("the body must not run")
            assert caught.value.code == "index.locked"
            assert "notes.sqlite" in caught.value.message
            browser.execute("ROLLBACK")
            with sqlite.transaction(ours, store="index") as tx:
                tx.execute("INSERT INTO notes VALUES ('later')")
        assert texts(database) == ["later"]

    def test_a_full_disk_undoes_the_body_and_says_so(self, database: sqlite3.Connection) -> None:
        """Where the file cannot grow, all is as it was before."""
        database.execute("PRAGMA max_page_count = 8")
        with pytest.raises(Broken) as caught, sqlite.transaction(database, store="index") as tx:
            tx.executemany("INSERT INTO notes VALUES (?)", [("x" * 4000,)] * 100)
        assert caught.value.code == "index.full"
        assert texts(database) == []

    def test_a_fault_in_the_sql_is_not_blamed_on_the_store(self, database: sqlite3.Connection) -> None:
        """It is ours, and comes out as it is."""
        with pytest.raises(sqlite3.OperationalError, match="syntax"), sqlite.transaction(database) as tx:
            tx.execute("SELEKT")
        with pytest.raises(sqlite3.ProgrammingError), sqlite.guarded("index", database):
            database.execute("SELECT ?", (1, 2))

    def test_a_late_statement_is_told_that_the_store_is_closed(self, database: sqlite3.Connection) -> None:
        """An act that comes while the owner ends is no crash."""
        database.close()
        with pytest.raises(Broken) as caught, sqlite.guarded("ledger", database):
            database.execute("SELECT 1")
        assert caught.value.code == "ledger.closed"


class TestMigrations:
    """Numbered scripts bring a database from any version to the newest, or leave it as it was."""

    def test_all_steps_are_applied_once(self, database: sqlite3.Connection, package: Package) -> None:
        """A second run changes nothing."""
        steps = package("CREATE TABLE a (x);\nINSERT INTO a VALUES (1);", "ALTER TABLE a ADD COLUMN y;")
        sqlite.migrate(database, steps)
        sqlite.migrate(database, steps)
        assert [tuple(row) for row in database.execute("SELECT x, y FROM a")] == [(1, None)]
        assert database.execute("PRAGMA user_version").fetchone()[0] == 2

    @pytest.mark.parametrize("version", [1, 2])
    def test_a_database_of_any_older_version_gets_the_missing_steps(
        self, database: sqlite3.Connection, package: Package, version: int
    ) -> None:
        """And keeps its rows."""
        steps = (
            "CREATE TABLE a (x);\nINSERT INTO a VALUES (1);",
            "ALTER TABLE a ADD COLUMN y;",
            "CREATE TABLE b (z);",
        )
        name = package(*steps)
        folder = Path(sys.modules["importlib"].import_module(name).__path__[0])
        for number in range(version + 1, 4):
            (folder / f"{number:03}_step_{number}.sql").rename(folder / f"{number}.later")
        sqlite.migrate(database, name)
        for number in range(version + 1, 4):
            (folder / f"{number}.later").rename(folder / f"{number:03}_step_{number}.sql")
        sqlite.scripts.cache_clear()
        sqlite.migrate(database, name)
        assert [tuple(row) for row in database.execute("SELECT x, y FROM a")] == [(1, None)]
        assert database.execute("SELECT count(*) FROM b").fetchone()[0] == 0
        assert [row[0] for row in database.execute("SELECT name FROM _sqlite_migrations ORDER BY id")] == [
            "001_step_1",
            "002_step_2",
            "003_step_3",
        ]

    def test_a_step_that_fails_leaves_nothing_of_any_step(
        self, database: sqlite3.Connection, package: Package
    ) -> None:
        """All or none: a half-migrated store does not exist."""
        before = list(map(tuple, database.execute("SELECT * FROM sqlite_schema")))
        steps = package("CREATE TABLE a (x);", "CREATE TABLE b (x);\nINSERT INTO missing VALUES (1);")
        with pytest.raises(sqlite3.OperationalError, match="missing"):
            sqlite.migrate(database, steps, store="ledger")
        assert list(map(tuple, database.execute("SELECT * FROM sqlite_schema"))) == before
        assert database.execute("PRAGMA user_version").fetchone()[0] == 0

    def test_a_newer_database_is_refused_unchanged(
        self, tmp_path: Path, database: sqlite3.Connection, package: Package
    ) -> None:
        """In a sentence that says what to do."""
        database.execute("PRAGMA user_version = 7")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = (tmp_path / "notes.sqlite").read_bytes()
        with pytest.raises(Broken, match="newer pcpd") as caught:
            sqlite.migrate(database, package("CREATE TABLE a (x);"), store="ledger")
        assert caught.value.code == "ledger.newer"
        assert caught.value.hint
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (tmp_path / "notes.sqlite").read_bytes() == before

    def test_a_current_database_needs_no_migration_library(
        self, tmp_path: Path, database: sqlite3.Connection, package: Package
    ) -> None:
        """Importing it would cost every start 70 ms."""
        name = package("CREATE TABLE a (x);")
        sqlite.migrate(database, name)
        program = (
            "import sys; from pathlib import Path; from pcpd import sqlite;"
            f"sqlite.migrate(sqlite.connect(Path({str(tmp_path / 'notes.sqlite')!r})), {name!r});"
            "print('sqlite_utils' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(sqlite.__file__).parent.parent}"},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stdout == "False\n"

    def test_statements_are_cut_where_sqlite_says(self) -> None:
        """Semicolons in triggers, strings and comments end nothing."""
        script = (
            "-- a; b\nCREATE TABLE a (x DEFAULT 'one; two');\n"
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\n  DELETE FROM a;\nEND;\n\n"
        )
        found = list(sqlite.statements(script))
        assert len(found) == 2
        assert found[1].strip().endswith("END;")

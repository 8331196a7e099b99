"""The ledger's file: made, opened again, set aside when damaged, refused when newer or out of place."""

import shutil
import sqlite3
import threading
from importlib import resources
from pathlib import Path

import pytest

from pcpd import durable, sqlite
from pcpd.errors import Broken
from pcpd.ledger import audit, keys, tokens
from pcpd.ledger.ledger import SCHEMA, TABLES, Ledger
from tests.ledger.conftest import Clock

STORE_FILES = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm")


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Gives every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def damage(path: Path) -> None:
    """Overwrites all pages of a database but the first."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


def test_a_new_ledger_is_for_its_owner_alone(ledger: Ledger, tmp_path: Path) -> None:
    """The file and its log hold token hashes and keys."""
    keys.get_or_create(ledger, "x")
    assert ledger.notice is None
    assert {name: (tmp_path / name).stat().st_mode & 0o777 for name in STORE_FILES} == dict.fromkeys(
        STORE_FILES, 0o600
    )


def test_what_was_written_is_there_after_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    """Keys, tokens and trail survive; nothing is set aside."""
    key = keys.get_or_create(ledger, "x")
    made = tokens.create(ledger, "agent:a")
    ledger.close()
    again = Ledger.open(tmp_path, clock)
    assert again.notice is None
    assert keys.get_or_create(again, "x") == key
    assert tokens.verify(again, made.token) == "agent:a"
    again.close()


def test_every_table_is_strict_and_described() -> None:
    """Each has a paragraph above it that says what a row is and what must hold."""
    described = []
    for entry in sorted(resources.files(SCHEMA).iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".sql"):
            continue
        for paragraph in entry.read_text(encoding="utf-8").split("\n\n"):
            if "CREATE TABLE" in paragraph:
                comment, _, rest = paragraph.partition("CREATE TABLE ")
                assert comment.startswith("-- ")
                assert comment.count("\n") >= 3
                assert "STRICT" in rest
                described.append(rest.split()[0])
    assert sorted(described) == sorted(TABLES)


@pytest.mark.parametrize("how", ["damaged", "no database", "another database"])
def test_a_damaged_ledger_is_set_aside_and_said_loudly(
    ledger: Ledger, tmp_path: Path, clock: Clock, how: str
) -> None:
    """Nothing of it is thrown away; a new trail begins, and the vault can be used."""
    audit.object_numbers(ledger, [f"page-{number}" for number in range(2000)])
    tokens.create(ledger, "agent:a")
    ledger.checkpoint()
    ledger.close()
    path = tmp_path / "ledger.sqlite"
    if how == "damaged":
        damage(path)
    elif how == "no database":
        path.write_bytes(b"this is no database, but long enough to look like one" * 100)
    else:
        other = sqlite3.connect(path)
        other.execute("DROP TABLE tokens")
        other.close()
    before = path.read_bytes()
    again = Ledger.open(tmp_path, clock)
    aside = tmp_path / "ledger-corrupt-2026-11-30.sqlite"
    assert aside.read_bytes() == before
    assert again.notice is not None
    assert str(aside) in again.notice
    assert "pcpd token create" in again.notice
    assert tokens.listing(again) == []
    tokens.create(again, "agent:b")
    again.close()
    reopened = Ledger.open(tmp_path, clock)
    assert reopened.notice is None
    assert len(tokens.listing(reopened)) == 1
    reopened.close()


def test_several_damaged_ledgers_of_one_day_are_all_kept(tmp_path: Path, clock: Clock) -> None:
    """Under numbers; the log of a damaged one goes along, so that it is never replayed into the new one."""
    for n in range(3):
        (tmp_path / "ledger.sqlite").write_bytes(b"damaged %d " % n * 1000)
        (tmp_path / "ledger.sqlite-wal").write_bytes(b"log %d" % n)
        Ledger.open(tmp_path, clock).close()
    for n, name in enumerate(["", "-2", "-3"]):
        aside = tmp_path / f"ledger-corrupt-2026-11-30{name}.sqlite"
        assert aside.read_bytes() == b"damaged %d " % n * 1000
        assert aside.with_name(aside.name + "-wal").read_bytes() == b"log %d" % n


def test_a_log_without_its_ledger_is_set_aside(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    """As after a move that was cut off: replayed into a new file it would bring half of the old one back."""
    tokens.create(ledger, "agent:a")
    log = tmp_path / "ledger.sqlite-wal"
    kept = log.read_bytes()
    ledger.close()
    (tmp_path / "ledger.sqlite").unlink()
    log.write_bytes(kept)
    again = Ledger.open(tmp_path, clock)
    assert again.notice is not None
    assert tokens.listing(again) == []
    assert (tmp_path / "ledger-corrupt-2026-11-30.sqlite-wal").read_bytes() == kept
    again.close()


def test_a_ledger_that_cannot_be_set_aside_stops_the_start(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than losing it."""
    (tmp_path / "ledger.sqlite").write_bytes(b"damaged" * 1000)

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(Broken) as caught:
        Ledger.open(tmp_path, clock)
    assert caught.value.code == "ledger.aside"
    assert (tmp_path / "ledger.sqlite").read_bytes() == b"damaged" * 1000


def test_a_newer_ledger_is_refused_unchanged_in_a_clear_sentence(
    ledger: Ledger, tmp_path: Path, clock: Clock
) -> None:
    """An older pcpd must neither damage it nor call it damaged."""
    tokens.create(ledger, "agent:a")
    ledger.close()
    path = tmp_path / "ledger.sqlite"
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 999")
    later.close()
    before = bytes_of(tmp_path)
    with pytest.raises(Broken) as caught:
        Ledger.open(tmp_path, clock)
    assert caught.value.code == "ledger.newer"
    assert "was made by a newer pcpd (version 999" in caught.value.message
    assert bytes_of(tmp_path) == before


def test_migrations_are_all_or_nothing_and_from_every_version(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger of each earlier number comes up to date with its rows; one whose migration fails stays as it was."""
    steps = sqlite.scripts(SCHEMA)
    for version in range(1, len(steps)):
        folder = tmp_path / str(version)
        folder.mkdir()
        monkeypatch.setattr(sqlite, "scripts", lambda _, upto=version: steps[:upto])
        old = sqlite.connect(folder / "ledger.sqlite", create=True, store="ledger")
        sqlite.migrate(old, SCHEMA, store="ledger")
        old.execute("INSERT INTO keys VALUES ('x', x'01', '2026-01-01T00:00:00Z')")
        old.close()
        before = (folder / "ledger.sqlite").read_bytes()
        bad = (*steps[:-1], (steps[-1][0], "bad", "CREATE TABLE half (a);\nCREATE TABEL broken (a);\n"))
        monkeypatch.setattr(sqlite, "scripts", lambda _, bad=bad: bad)
        with pytest.raises(Broken) as caught:
            Ledger.open(folder, clock)
        assert caught.value.code == "ledger.migration"
        assert (folder / "ledger.sqlite").read_bytes() == before
        monkeypatch.setattr(sqlite, "scripts", lambda _: steps)
        opened = Ledger.open(folder, clock)
        assert opened.notice is None
        assert keys.get_or_create(opened, "x") == b"\x01"
        opened.close()


def test_a_ledger_on_a_network_file_system_is_refused(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system is looked at before anything is opened or made."""
    monkeypatch.setattr(durable, "network_filesystem", lambda path: "nfs4")
    with pytest.raises(Broken) as caught:
        Ledger.open(tmp_path, clock)
    assert caught.value.code == "ledger.network"
    assert "nfs4" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_with_its_reason_and_nothing_is_half_written(ledger: Ledger) -> None:
    """The limit on pages stands for a disk that is full; afterwards the ledger works on."""
    tokens.create(ledger, "agent:a")
    with ledger.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    rows = [f"{'x' * 200}-{number}" for number in range(2000)]
    with pytest.raises(Broken) as caught:
        audit.object_numbers(ledger, rows)
    assert caught.value.code == "ledger.full"
    with ledger.reading() as connection:
        assert connection.execute("SELECT count(*) FROM objects").fetchone()[0] == 0
        connection.execute("PRAGMA max_page_count = 100000")
    assert audit.object_numbers(ledger, rows[:2]) == [1, 2]


def test_a_folder_that_cannot_be_written_is_an_error_with_its_reason(
    unprivileged: Path, clock: Clock
) -> None:
    """Never a silent read-only mode."""
    folder = unprivileged / "state"
    folder.mkdir()
    Ledger.open(folder, clock).close()
    (folder / "ledger.sqlite").chmod(0o400)
    folder.chmod(0o500)
    try:
        with pytest.raises(Broken) as caught:
            Ledger.open(folder, clock)
    finally:
        folder.chmod(0o700)
    assert caught.value.code in {"ledger.read-only", "ledger.unreadable"}
    assert str(folder) in caught.value.message


def test_damage_that_shows_while_it_is_open_says_what_helps(ledger: Ledger, tmp_path: Path) -> None:
    """The owner does not go on without a trail; the next start sets the ledger aside."""
    audit.object_numbers(ledger, [f"page-{number}" for number in range(5000)])
    ledger.checkpoint()
    with ledger.reading() as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA shrink_memory")
    damage(tmp_path / "ledger.sqlite")
    with pytest.raises(Broken) as caught:
        audit.object_paths(ledger, range(5001))
    assert caught.value.code == "ledger.corrupt"
    assert "set aside" in caught.value.hint


def test_a_transaction_that_fails_leaves_nothing_and_the_next_one_works(ledger: Ledger) -> None:
    """The exception of the body comes out as it is."""

    def fail() -> None:
        with ledger.transaction() as tx:
            tx.execute("INSERT INTO objects (path) VALUES ('a')")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert audit.object_numbers(ledger, ["b"]) == [1]


def test_a_copy_of_the_files_of_a_killed_process_opens_whole(
    ledger: Ledger, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> None:
    """Committed rows are in the log; kill -9 needs no clean-up."""
    made = tokens.create(ledger, "agent:a")
    audit.object_numbers(ledger, ["a", "b"])
    killed = tmp_path_factory.mktemp("killed")
    for name in STORE_FILES[:2]:
        shutil.copy(tmp_path / name, killed / name)
    again = Ledger.open(killed, clock)
    assert again.notice is None
    assert tokens.verify(again, made.token) == "agent:a"
    assert audit.object_numbers(again, ["b", "a"]) == [2, 1]
    again.close()


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    """Each gets the same key and its own numbers; nothing is locked out."""
    found: list[bytes] = []

    together = threading.Barrier(8)

    def work(number: int) -> None:
        together.wait()
        found.append(keys.get_or_create(ledger, "shared"))
        for n in range(20):
            audit.object_numbers(ledger, [f"{number}-{n}"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    with ledger.reading() as connection:
        assert connection.execute("SELECT count(*), max(number) FROM objects").fetchone()[:] == (160, 160)


def test_closing_twice_is_harmless_and_use_afterwards_an_error(ledger: Ledger) -> None:
    """A late act of a closing owner gets an error, not a crash of the interpreter."""
    ledger.close()
    ledger.close()
    with pytest.raises(Broken):
        tokens.listing(ledger)


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_crash_while_setting_aside_loses_nothing(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    """Whatever was moved already stays where it is; the next start moves the rest, and never mixes old with new."""
    for name in STORE_FILES:
        (tmp_path / name).write_bytes(f"damaged {name}".encode() * 100)
    before = set(bytes_of(tmp_path).values())
    rename = Path.rename
    done: list[Path] = []

    def crash(self: Path, target: Path) -> Path:
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", crash)
        with pytest.raises(KeyboardInterrupt):
            Ledger.open(tmp_path, clock)
    again = Ledger.open(tmp_path, clock)
    assert again.notice is not None
    assert tokens.listing(again) == []
    again.close()
    assert before <= set(bytes_of(tmp_path).values())

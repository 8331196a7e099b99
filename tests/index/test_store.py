"""The files of an index: whatever stands in the state folder, a usable one is opened and nothing old is served."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pcpd import durable, sqlite
from pcpd.errors import Broken, PcpError, Unavailable
from pcpd.index import outbox, pages, readers
from pcpd.index.store import Index
from tests.index.samples import fill, paths_of, put_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An open index with one page, `a`."""
    opened = Index.open(tmp_path)
    fill(opened, {"a.md": "alpha"})
    yield opened
    opened.close()


def names(folder: Path) -> set[str]:
    """The names in a folder, without those that SQLite makes beside a database."""
    return {file.name for file in folder.iterdir() if not file.name.endswith(("-wal", "-shm"))}


class TestOpening:
    """What is opened, and what is thrown away."""

    def test_an_empty_folder_gets_a_first_index(self, tmp_path: Path) -> None:
        """A new one is no reset: nothing was lost."""
        index = Index.open(tmp_path)
        assert not index.was_reset
        assert names(tmp_path) == {"index", "index-1.sqlite"}
        index.close()

    def test_what_was_committed_is_there_after_closing(self, tmp_path: Path) -> None:
        """The same file is opened again."""
        first = Index.open(tmp_path)
        fill(first, {"a.md": "alpha"})
        first.close()
        second = Index.open(tmp_path)
        assert (paths_of(second), second.was_reset, second.number) == (["a"], False, 1)
        second.close()

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(b"not a database at all " * 100),
            lambda path: path.write_bytes(b""),
            lambda path: path.write_bytes(path.read_bytes()[:50]),
            lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(10_000)),
        ],
        ids=["other content", "empty", "cut off", "noise"],
    )
    def test_a_damaged_file_is_replaced_by_an_empty_one(self, tmp_path: Path, damage: object) -> None:
        """Under another number, so that a `-wal` that was left cannot bring the old data back."""
        first = Index.open(tmp_path)
        fill(first, {"a.md": "alpha"})
        first.close()
        assert callable(damage)
        damage(tmp_path / "index-1.sqlite")
        second = Index.open(tmp_path)
        assert (paths_of(second), second.number) == ([], 2)
        assert names(tmp_path) == {"index", "index-2.sqlite"}
        fill(second, {"b.md": "beta"})
        second.close()
        third = Index.open(tmp_path)
        assert (paths_of(third), third.was_reset) == (["b"], False)
        third.close()

    def test_an_index_of_another_schema_is_made_anew(self, tmp_path: Path) -> None:
        """An older or newer pcpd was here; its rows are not converted."""
        Index.open(tmp_path).close()
        with closing(sqlite.connect(tmp_path / "index-1.sqlite")) as connection:
            connection.execute("PRAGMA user_version = 12345")
        index = Index.open(tmp_path)
        assert (index.was_reset, index.number) == (True, 2)
        index.close()

    @pytest.mark.parametrize("text", ["", "x", "-1", "9" * 40, "1.5", "\uff17", "\0", "7"])
    def test_a_pointer_that_points_nowhere_begins_anew(self, tmp_path: Path, text: str) -> None:
        """Whatever it says, the next free number is taken."""
        Index.open(tmp_path).close()
        (tmp_path / "index").write_text(text, encoding="utf-8")
        index = Index.open(tmp_path)
        assert index.number == (8 if text == "7" else 2)
        assert (paths_of(index), names(tmp_path)) == ([], {"index", f"index-{index.number}.sqlite"})
        index.close()

    def test_a_rename_over_a_database_with_a_wal_is_why_names_are_never_used_again(
        self, tmp_path: Path
    ) -> None:
        """A `-wal` that a killed owner left belongs to its own number alone."""
        (tmp_path / "index").write_text("3\n", encoding="ascii")
        (tmp_path / "index-3.sqlite-wal").write_bytes(b"left by a kill")
        index = Index.open(tmp_path)
        assert index.number == 4
        assert not (tmp_path / "index-3.sqlite-wal").exists()
        index.close()

    def test_leftovers_of_ours_go_and_other_files_stay(self, tmp_path: Path) -> None:
        """Only names that an index can have are removed, and only files."""
        Index.open(tmp_path).close()
        ours = ("index-7.sqlite", "index-7.sqlite-wal", "index-7.sqlite-shm", "index-7.sqlite-journal")
        others = ("ledger.sqlite", "index-x.sqlite", "index-7.sqlite.bak", "my-index-7.sqlite", "index-7")
        for name in (*ours, *others):
            (tmp_path / name).touch()
        (tmp_path / "index-8.sqlite").mkdir()
        Index.open(tmp_path).close()
        assert names(tmp_path) == {"index", "index-1.sqlite", "index-8.sqlite", *others}

    def test_a_network_file_system_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With its kind, before anything is written."""
        monkeypatch.setattr(durable, "network_filesystem", lambda path: "nfs4")
        with pytest.raises(Broken, match="nfs4") as caught:
            Index.open(tmp_path)
        assert caught.value.code == "index.network"
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        """Instead of a traceback from deep inside."""
        with pytest.raises(Broken, match="nowhere") as caught:
            Index.open(tmp_path / "nowhere")
        assert caught.value.code == "index.unreadable"

    def test_a_folder_that_may_not_be_written_is_said(self, unprivileged: Path) -> None:
        """The run stops with the reason; an index is never opened for reading alone by stealth."""
        Index.open(unprivileged).close()
        unprivileged.chmod(0o500)
        (unprivileged / "index-1.sqlite").chmod(0o400)
        with pytest.raises(Broken) as caught:
            Index.open(unprivileged)
        assert caught.value.code in {"index.read-only", "index.unreadable"}
        unprivileged.chmod(0o700)

    def test_a_pointer_that_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        """A folder stands in its place."""
        (tmp_path / "index").mkdir()
        with pytest.raises(Broken) as caught:
            Index.open(tmp_path)
        assert caught.value.code == "index.read-only"


class TestWriting:
    """The one transaction at a time."""

    def test_a_failing_body_leaves_the_index_as_it_was(self, index: Index) -> None:
        """Pages, text and outbox alike."""

        def body() -> None:
            with index.transaction() as tx:
                pages.put_all(tx, [put_of("b.md", "beta")])
                outbox.mark(tx, "b.md", 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            body()
        assert paths_of(index) == ["a"]
        with index.reader() as reader:
            assert outbox.waiting(reader) == []

    def test_neither_nesting_nor_a_second_thread_gets_a_scope(self, index: Index) -> None:
        """The keeper is one thread; anything else is a fault of the program."""
        caught: list[BaseException] = []

        def other() -> None:
            try:
                with index.transaction():
                    pass
            except RuntimeError as error:
                caught.append(error)

        with index.transaction() as tx:
            pages.put_all(tx, [put_of("b.md", "beta")])
            other()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert len(caught) == 2
        assert paths_of(index) == ["a", "b"]

    def test_what_is_held_is_seen_when_it_is_released(self, index: Index) -> None:
        """Slices of a long scan share one transaction; an act in between releases first."""
        index.hold()
        fill(index, {"b.md": "beta"})
        fill(index, {"c.md": "gamma"})
        assert paths_of(index) == ["a"]
        index.release()
        assert paths_of(index) == ["a", "b", "c"]
        fill(index, {"d.md": "delta"})
        assert paths_of(index) == ["a", "b", "c", "d"]

    def test_a_failing_slice_takes_all_that_is_held_with_it(self, index: Index) -> None:
        """And ends the hold; what comes next commits on its own."""
        index.hold()
        fill(index, {"b.md": "beta"})
        with pytest.raises(ZeroDivisionError), index.transaction():
            raise ZeroDivisionError
        fill(index, {"c.md": "gamma"})
        index.release()
        assert paths_of(index) == ["a", "c"]

    def test_a_locked_database_is_an_error_and_no_silent_read_only_mode(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A database browser holds a transaction open; reading goes on, writing says what is in the way."""
        monkeypatch.setattr(sqlite, "BUSY_MS", 20)
        index = Index.open(tmp_path)
        fill(index, {"a.md": "alpha"})
        with closing(sqlite3.connect(index.path, isolation_level=None)) as browser:
            browser.execute("BEGIN IMMEDIATE")
            with pytest.raises(Broken) as caught:
                fill(index, {"b.md": "beta"})
            assert caught.value.code == "index.locked"
            assert caught.value.hint
            assert paths_of(index) == ["a"]
            browser.execute("ROLLBACK")
        fill(index, {"b.md": "beta"})
        assert paths_of(index) == ["a", "b"]
        index.close()

    def test_a_full_disk_leaves_the_index_as_it_was(self, index: Index) -> None:
        """And says that it is full."""
        with index.transaction() as tx:
            tx.execute("PRAGMA max_page_count = 150")
        with pytest.raises(Broken) as caught:
            fill(index, {f"{n}.md": f"word{n} " * 2000 for n in range(100)})
        assert caught.value.code == "index.full"
        assert paths_of(index) == ["a"]

    @pytest.mark.parametrize("is_held", [False, True])
    def test_a_kill_in_the_middle_leaves_the_old_state(self, tmp_path: Path, is_held: bool) -> None:
        """No clean-up is needed, and the index is not thrown away for it."""
        program = f"""
import sys, time
from pathlib import Path
from pcpd.index import outbox
from pcpd.index.store import Index
from pcpd.index import pages
from tests.index.samples import fill, put_of
index = Index.open(Path({str(tmp_path)!r}))
fill(index, {{"a.md": "alpha"}})
with index.transaction() as tx:
    outbox.mark(tx, "a.md", 5)
if {is_held}:
    index.hold()
    fill(index, {{f"{{n}}.md": f"word{{n}} " * 500 for n in range(300)}})
with index.transaction() as tx:
    pages.put_all(tx, [put_of(f"b{{n}}.md", f"word{{n}} " * 5000) for n in range(300)])
    outbox.clear(tx, outbox.waiting(tx))
    print("in the middle", flush=True)
    sys.stdin.read()
"""
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stdout.readline() == "in the middle\n"
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=60)
        index = Index.open(tmp_path)
        assert (paths_of(index), index.was_reset) == (["a"], False)
        with index.reader() as reader:
            assert [due.file for due in outbox.waiting(reader)] == ["a.md"]
        index.close()


class TestReading:
    """A few read-only connections, each at one point in time."""

    def test_a_reader_sees_one_point_in_time(self, index: Index) -> None:
        """Counts and pages of one answer fit each other, whatever is written meanwhile."""
        with index.reader() as reader:
            before = pages.count_files(reader)
            fill(index, {"b.md": "beta"})
            assert pages.count_files(reader) == before
        assert paths_of(index) == ["a", "b"]

    def test_a_reader_cannot_write(self, index: Index) -> None:
        """By mistake or otherwise."""
        with pytest.raises(Broken) as caught, index.reader() as reader:
            reader.execute("DELETE FROM pages")
        assert caught.value.code == "index.read-only"
        assert paths_of(index) == ["a"]

    def test_more_readers_than_connections_wait_for_each_other(self, index: Index) -> None:
        """Nobody is turned away, and no connection is lent twice."""
        seen: list[int] = []
        gate = threading.Barrier(12)

        def read() -> None:
            gate.wait(60)
            for _ in range(20):
                with index.reader() as reader:
                    seen.append(pages.count_files(reader))

        threads = [threading.Thread(target=read) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert seen == [1] * 240

    def test_waiting_for_a_reader_has_an_end(self, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rather an error than a door that hangs."""
        monkeypatch.setattr(readers, "WAIT_SECONDS", 0.01)
        with ExitStack() as stack:
            for _ in range(readers.READERS):
                stack.enter_context(index.reader())
            with pytest.raises(Unavailable) as caught, index.reader():
                pytest.fail("there is no reader left")
        assert caught.value.code == "index.busy"
        assert paths_of(index) == ["a"]

    def test_a_failing_reader_gives_its_connection_back(self, index: Index) -> None:
        """Errors use no connections up."""
        for _ in range(readers.READERS * 2):
            with pytest.raises(ZeroDivisionError), index.reader():
                raise ZeroDivisionError
        assert paths_of(index) == ["a"]

    def test_rows_left_half_read_do_not_hold_the_next_reader_back(self, index: Index) -> None:
        """Their cursor is closed with the scope; else SQLite would keep its point in time for the next one."""
        fill(index, {"b.md": "beta", "c.md": "gamma"})
        with index.reader() as reader:
            rows = reader.execute("SELECT path FROM pages")
            next(rows)
        fill(index, {"d.md": "delta"})
        assert paths_of(index) == ["a", "b", "c", "d"]
        with pytest.raises(sqlite3.ProgrammingError):
            next(rows)

    def test_nobody_reads_a_closed_index(self, tmp_path: Path) -> None:
        """A late request is told that the owner is going."""
        index = Index.open(tmp_path)
        index.close()
        with pytest.raises(PcpError) as caught, index.reader():
            pytest.fail("it is closed")
        assert caught.value.code == "index.closed"

    def test_a_reader_at_work_survives_the_closing(self, tmp_path: Path) -> None:
        """It finishes; then everything is closed."""
        index = Index.open(tmp_path)
        fill(index, {"a.md": "alpha"})
        with index.reader() as reader:
            index.close()
            assert pages.count_files(reader) == 1


class TestRebuilding:
    """A new index is made beside the old one, and takes its place at once."""

    def test_readers_move_when_the_new_one_is_in_force(self, tmp_path: Path, index: Index) -> None:
        """Those at work finish on the old one, whose files go with the last of them."""
        new = index.begin_rebuild()
        fill(new, {"b.md": "beta"})
        assert paths_of(index) == ["a"]
        with index.reader() as first:
            with index.reader() as second:
                assert index.swap(new)
                assert paths_of(index) == ["b"]
                assert [
                    reader.execute("SELECT path FROM pages").fetchone()[0] for reader in (first, second)
                ] == [
                    "a",
                    "a",
                ]
            assert "index-1.sqlite" in names(tmp_path)
        assert names(tmp_path) == {"index", "index-2.sqlite"}
        fill(index, {"c.md": "gamma"})
        assert paths_of(index) == ["b", "c"]
        assert (tmp_path / "index").read_text(encoding="ascii") == "2\n"

    def test_what_is_owed_goes_over(self, index: Index) -> None:
        """Files that wait for a commit, and effects in their order; also those that are still held."""
        index.hold()
        with index.transaction() as tx:
            outbox.mark(tx, "a.md", 5)
            outbox.add(tx, "audit", {"n": 1})
            outbox.add(tx, "audit", {"n": 2})
        assert index.swap(index.begin_rebuild())
        with index.reader() as reader:
            assert outbox.waiting(reader) == [outbox.Due("a.md", 5, 5)]
            assert [owed.payload for owed in outbox.pending(reader, "audit")] == [{"n": 1}, {"n": 2}]

    def test_a_rebuild_over_a_damaged_index_says_what_it_lost(self, tmp_path: Path) -> None:
        """The caller then compares everything with HEAD."""
        first = Index.open(tmp_path)
        with first.reader() as reader:
            root = reader.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'to_commit'").fetchone()[0]
        first.close()
        with (tmp_path / "index-1.sqlite").open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(b"\xff" * 4096)
        index = Index.open(tmp_path)
        assert index.number == 1
        with pytest.raises(Broken) as caught, index.reader() as reader:
            outbox.waiting(reader)
        assert caught.value.code == "index.corrupt"
        new = index.begin_rebuild()
        fill(new, {"b.md": "beta"})
        assert not index.swap(new)
        assert paths_of(index) == ["b"]
        assert names(tmp_path) == {"index", "index-2.sqlite"}
        index.close()

    def test_an_unwanted_rebuild_leaves_nothing(self, tmp_path: Path, index: Index) -> None:
        """It was for a comparison, or a person stopped it."""
        new = index.begin_rebuild()
        fill(new, {"b.md": "beta"})
        new.discard()
        assert {file.name for file in tmp_path.iterdir() if "-2" in file.name} == set()
        assert paths_of(index) == ["a"]

    def test_a_kill_during_a_rebuild_leaves_the_old_one_in_force(self, tmp_path: Path) -> None:
        """The half-made file goes at the next start."""
        index = Index.open(tmp_path)
        fill(index, {"a.md": "alpha"})
        new = index.begin_rebuild()
        fill(new, {"b.md": "beta"})
        new.close()
        index.close()
        again = Index.open(tmp_path)
        assert paths_of(again) == ["a"]
        assert names(tmp_path) == {"index", "index-1.sqlite"}
        again.close()


class TestUpkeep:
    """Work that is kept out of the way of a save."""

    def test_commits_do_not_checkpoint_by_themselves(self, index: Index) -> None:
        """The `-wal` grows until somebody who is idle moves it."""
        with index.transaction() as tx:
            assert tx.execute("PRAGMA wal_autocheckpoint").fetchone()[0] == 0
        fill(index, {f"{n}.md": f"word{n} " * 200 for n in range(400)})
        assert index.wal_bytes() > 1_000_000
        assert index.checkpoint()
        assert len(paths_of(index)) == 401

    def test_a_checkpoint_gives_the_space_of_the_wal_back(self, index: Index) -> None:
        """What a big scan left does not stay for ever."""
        for turn in range(3):
            fill(index, {f"{turn}-{n}.md": f"word{n} " * 900 for n in range(400)})
        assert index.checkpoint()
        assert index.wal_bytes() == 0

    def test_a_checkpoint_from_another_thread_waits_for_nobody(self, index: Index) -> None:
        """It moves what readers and the writer at work allow."""
        with index.reader() as reader, index.transaction() as tx:
            pages.put_all(tx, [put_of("b.md", "beta")])
            thread = threading.Thread(target=index.checkpoint)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
            assert pages.count_files(reader) == 1
        assert paths_of(index) == ["a", "b"]

    def test_merging_comes_to_an_end_and_changes_no_answer(self, index: Index) -> None:
        """Step by step, as long as there is something to merge."""
        for n in range(40):
            fill(index, {f"{n}.md": f"word{n} common"})
        steps = 0
        while index.optimize():
            steps += 1
            assert steps < 1000
        assert len(paths_of(index)) == 41

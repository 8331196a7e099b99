"""Two indexes of one vault are told apart row by row, or said to be alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcpd.index import dump, pages, proposals
from pcpd.index.dump import Difference
from pcpd.index.proposals import ProposalRow
from pcpd.index.store import Index
from tests.index.samples import built, put_of, rows_of

FILES = {
    "a.md": "---\ntags: [x, y]\naliases: [other]\nown: 1\n---\n[[b]] words of a\n",
    "B/c.md": "---\nimportance: high\n---\n漢字 and words",
    "pic.png": "image",
}


@contextmanager
def both(folder: Path, here: dict[str, str], rebuilt: dict[str, str]) -> Iterator[tuple[Index, Index]]:
    """Two indexes, of two sets of files."""
    with built(folder / "here", here) as one, built(folder / "rebuilt", rebuilt) as other:
        yield one, other


def differences(here: Index, rebuilt: Index) -> list[Difference]:
    """What `doctor --deep` would name."""
    with here.reader() as ours, rebuilt.reader() as theirs:
        return list(dump.differences(ours, theirs))


def test_indexes_of_the_same_files_do_not_differ(tmp_path: Path) -> None:
    """Whatever the order in which they were filled, and however the full text was merged."""
    with both(tmp_path, FILES, {}) as (here, rebuilt):
        for file in reversed(FILES):
            with rebuilt.transaction() as tx:
                pages.put_all(tx, [put_of(file, FILES[file])])
        while rebuilt.optimize():
            pass
        assert differences(here, rebuilt) == []


def test_a_page_that_is_missing_is_named_in_every_table(tmp_path: Path) -> None:
    """And so is one that should not be there."""
    with both(tmp_path, FILES, {"B/c.md": FILES["B/c.md"], "pic.png": "image"}) as (here, rebuilt):
        found = differences(here, rebuilt)
        tables = {difference.table for difference in found if difference.name.startswith("a")}
        assert {"files", "pages", "tags", "aliases", "properties", "links", "texts"} <= tables
        assert Difference("pages", "a", "surplus") in found
        assert Difference("pages", "a", "missing") in differences(rebuilt, here)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("UPDATE files SET version = zeroblob(32) WHERE file = 'pic.png'", "files"),
        ("UPDATE pages SET title = 'x' WHERE path = 'a'", "pages"),
        ("UPDATE pages SET hidden = 1 WHERE path = 'a'", "pages"),
        ("UPDATE tags SET tag = 'X' WHERE key = 'x'", "tags"),
        ("DELETE FROM aliases", "aliases"),
        ("UPDATE properties SET value = '2'", "properties"),
        ("DELETE FROM problems", "problems"),
        ("INSERT INTO problems VALUES (99, 0, 'x', 'of no page', 1)", "problems"),
        ("UPDATE links SET line = 99", "links"),
        ("UPDATE texts SET body = 'other words' WHERE title = 'a'", "texts"),
        ("UPDATE classes SET pages = pages + 1", "classes"),
        ("INSERT INTO stems (rowid, title) VALUES (99, 'surplus')", "stems"),
        ("INSERT INTO words (rowid, head) VALUES (99, 'surplus')", "words"),
    ],
)
def test_a_change_to_any_table_is_found(tmp_path: Path, sql: str, table: str) -> None:
    """By a stray bit, a bug, or a hand."""
    with both(tmp_path, FILES, FILES) as (here, rebuilt):
        with here.transaction() as tx:
            tx.execute(sql)
        assert table in {difference.table for difference in differences(here, rebuilt)}


def test_every_table_of_the_vault_is_in_the_dump(tmp_path: Path) -> None:
    """A table that somebody adds must be compared as well, or be one of those that a rebuild need not give."""
    not_of_the_vault = {"meta", "outbox", "to_commit", "sqlite_sequence"}
    not_of_the_vault |= {"events", "event_classes", "event_clock"}
    with built(tmp_path / "index", FILES) as index:
        with index.transaction() as tx:
            proposals.put(tx, [], [ProposalRow("a.md", "a", "new", "a")])
        dumped = {table for table, _ in rows_of(index)}
        with index.reader() as reader:
            tables = {row[0] for row in reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    shadows = {table for table in tables if table.startswith(("stems_", "words_"))}
    with_texts = {"lengths"}
    assert tables - shadows - with_texts - not_of_the_vault == dumped


def test_what_hangs_on_the_moment_is_left_out(tmp_path: Path) -> None:
    """Times of reading, and notes about the index itself."""
    with both(tmp_path, FILES, FILES) as (here, rebuilt):
        with here.transaction() as tx:
            pages.set_meta(tx, "proved_at", "now")
            for file, known in pages.known(tx).items():
                pages.touch(tx, file, known.stat, known.read_at_ns + 10**12)
        assert differences(here, rebuilt) == []

"""Files and pages go in and out, and the index is the same whatever the order of changes was."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pcpd.index import pages, tables
from pcpd.index.rows import FileRow
from pcpd.index.store import Index
from pcpd.pages.changes import Known, Stat
from tests.index.samples import (
    MTIME_NS,
    READ_AT_NS,
    built,
    fill,
    paths_of,
    put_of,
    rows_of,
    rule,
    rule_of,
    stat_of,
)

PLAN = """---
id: plan-1
title: The plan
tags: [Work, work, café]
aliases: [Roadmap]
type: procedural
partition: work
updated: 2026-01-05T10:00:00Z
rating: 5
odd: [a, b, a]
---
See [[Other]] and [[a/b|there]].
"""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index."""
    opened = Index.open(tmp_path)
    yield opened
    opened.close()


def ask(index: Index, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    with index.reader() as reader:
        return [tuple(row) for row in reader.execute(sql)]


class TestPutting:
    """What is kept of a page."""

    def test_a_page_has_its_row_and_all_that_hangs_on_it(self, index: Index) -> None:
        """Tags and aliases by their lookup form, properties that pcpd does not know, links in order."""
        fill(index, {"x/Plan.md": PLAN})
        assert ask(index, "SELECT path, key, tail, title, own_id, type, partition, updated FROM pages") == [
            ("x/Plan", "x/plan", "plan/x", "The plan", "plan-1", "procedural", "work", "2026-01-05T10:00:00Z")
        ]
        assert ask(index, "SELECT key, coalesce(tag, key) FROM tags ORDER BY 1") == [
            ("café", "café"),
            ("work", "Work"),
        ]
        assert ask(index, "SELECT tail, alias FROM aliases") == [("roadmap", "Roadmap")]
        assert ask(index, "SELECT key, value FROM properties WHERE key <> 'aliases'") == [
            ("odd", "a"),
            ("odd", "b"),
            ("rating", "5"),
        ]
        assert ask(index, "SELECT seq, tail FROM links ORDER BY seq") == [(0, "other"), (1, "b/a")]

    def test_a_second_put_takes_the_place_of_the_first(self, index: Index) -> None:
        """Nothing of the first stays in any table."""
        fill(index, {"a.md": PLAN})
        fill(index, {"a.md": "plain"})
        with_plain = rows_of(index)
        with built(index.folder / "other", {"a.md": "plain"}) as other:
            assert rows_of(other) == with_plain

    def test_the_last_of_two_puts_in_one_batch_counts(self, index: Index) -> None:
        """As if they had come one after the other."""
        with index.transaction() as tx:
            pages.put_all(tx, [put_of("a.md", PLAN), put_of("a.md", "plain")])
        assert ask(index, "SELECT title FROM pages") == [("a",)]

    def test_a_file_that_stopped_being_a_page_leaves_no_page(self, index: Index) -> None:
        """It was over the limit when read again, say."""
        fill(index, {"a.md": PLAN})
        with index.transaction() as tx:
            pages.put_file(tx, FileRow("a.md", "page", stat_of(PLAN), READ_AT_NS, "", "too-large"))
        assert paths_of(index) == []
        with index.reader() as reader:
            assert tables.left_out(reader) == [("a.md", "too-large")]

    def test_a_page_without_a_time_has_its_files(self, index: Index) -> None:
        """In UTC, cut to seconds."""
        fill(index, {"a.md": "text"})
        assert ask(index, "SELECT updated, is_dated FROM pages") == [("2023-11-14T22:13:20Z", 0)]

    def test_values_of_any_length_fit(self, index: Index) -> None:
        """Filters look at the first 200 characters of a value."""
        fill(index, {"a.md": f"---\nlong: {'x' * 100_000}\n---\n"})
        assert ask(index, "SELECT key, length(value) FROM properties") == [("long", 200)]

    def test_a_page_with_a_problem_is_there_with_it(self, index: Index) -> None:
        """Its problems are listed by file, in their order."""
        fill(index, {"b.md": "---\ntags: {a: 1}\nimportance: high\n---\n", "a.md": "---\na: 1\na: 2\n---\n"})
        assert ask(index, "SELECT path, problems > 0 FROM pages ORDER BY path") == [("a", 1), ("b", 1)]
        with index.reader() as reader:
            found = list(tables.problems(reader))
            assert tables.counts(reader).problems == 2
        assert next(item.file for item in found) == "a.md"
        assert {item.file for item in found} == {"a.md", "b.md"}


class TestRemoving:
    """What is forgotten is gone from every table."""

    def test_a_removed_page_leaves_nothing(self, index: Index) -> None:
        """The index is as if it had never been."""
        fill(index, {"a.md": PLAN, "b.md": "stays", "c.png": "image"})
        with index.transaction() as tx:
            pages.remove(tx, "a.md", "c.png", "never-known.md")
        with built(index.folder / "other", {"b.md": "stays"}) as other:
            assert rows_of(other) == rows_of(index)

    def test_of_two_names_that_differ_by_case_only_the_named_one_goes(self, index: Index) -> None:
        """A case-only rename is a put and a remove."""
        fill(index, {"Plan.md": PLAN, "plan.md": "other"})
        with index.transaction() as tx:
            pages.remove(tx, "Plan.md")
        assert paths_of(index) == ["plan"]

    def test_more_files_than_a_statement_takes_parameters(self, index: Index) -> None:
        """Put and removed in one go each (SQLite's limit is near 33,000)."""
        files = [f"f/{n:05}.md" for n in range(35_000)]
        rows = [
            FileRow(file, "page", Stat(1, MTIME_NS, MTIME_NS, n), READ_AT_NS, "")
            for n, file in enumerate(files)
        ]
        with index.transaction() as tx:
            pages.put_all(tx, [(row, None, None) for row in rows])
            pages.put_all(tx, [put_of(file, "text") for file in files[:300]])
        with index.reader() as reader:
            assert pages.count_files(reader) == len(files)
        with index.transaction() as tx:
            pages.remove(tx, *files)
        with index.reader() as reader:
            assert pages.count_files(reader) == 0
        assert rows_of(index) == []


class TestKnowing:
    """What a scan is compared with."""

    @given(st.lists(st.tuples(*[st.integers(-(2**70), 2**70)] * 6), max_size=5))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
    @example([(0, 2**63, 0, 0, 0, 1)])
    @example([(0, 0, 0, 2**64 - 1, 0, 1)])
    def test_every_stat_comes_back_as_it_was(self, index: Index, stats: list[tuple[int, ...]]) -> None:
        """Also inodes and times that no column of SQLite holds."""
        rows = [
            FileRow(f"{n}.png", "attachment", Stat(*stat[:5]), stat[5] % 2**63, "ab" * 32)
            for n, stat in enumerate(stats)
        ]
        with index.transaction() as tx:
            pages.remove(tx, *pages.known(tx))
            for row in rows:
                pages.put_file(tx, row)
        with index.reader() as reader:
            assert pages.known(reader) == {row.file: Known(row.stat, row.read_at_ns) for row in rows}
            assert [pages.file_row(reader, row.file) for row in rows] == rows

    def test_a_file_that_is_not_known_is_none(self, index: Index) -> None:
        """Not an error."""
        with index.reader() as reader:
            assert pages.file_row(reader, "a.md") is None
            assert pages.known(reader) == {}

    def test_a_touched_file_keeps_its_page(self, index: Index) -> None:
        """Time stamps alone are no content; a page without a time of its own shows the new one."""
        fill(index, {"dated.md": PLAN, "plain.md": "text"})
        later = stat_of("text", MTIME_NS + 10**9)
        with index.transaction() as tx:
            for file in ("dated.md", "plain.md", "unknown.md"):
                pages.touch(tx, file, later, READ_AT_NS + 5)
        with index.reader() as reader:
            assert pages.known(reader) == {
                file: Known(later, READ_AT_NS + 5) for file in ("dated.md", "plain.md")
            }
        assert ask(index, "SELECT path, updated FROM pages ORDER BY path") == [
            ("dated", "2026-01-05T10:00:00Z"),
            ("plain", "2023-11-14T22:13:21Z"),
        ]

    def test_notes_about_the_index_are_kept(self, index: Index) -> None:
        """By key; the last one counts."""
        with index.transaction() as tx:
            pages.set_meta(tx, "proved_at", "1")
            pages.set_meta(tx, "proved_at", "2")
        with index.reader() as reader:
            assert (pages.meta(reader, "proved_at"), pages.meta(reader, "other")) == ("2", None)


class TestReclassing:
    """A changed context.yaml remakes what it decides."""

    def test_pages_that_name_no_partition_follow_the_default(self, index: Index) -> None:
        """And only they are counted as changed."""
        fill(index, {"a.md": "text", "b.md": PLAN, "c.md": "---\nreview: {state: proposed}\n---\n"})
        with index.transaction() as tx:
            assert pages.reclass(tx, partial(rule_of, "home")) == 2
            assert pages.reclass(tx, partial(rule_of, "home")) == 0
        assert ask(index, "SELECT path, partition, hidden FROM pages ORDER BY path") == [
            ("a", "home", 0),
            ("b", "work", 0),
            ("c", "home", 1),
        ]

    def test_it_equals_a_rebuild(self, index: Index) -> None:
        """In every table, the statistics of the full text among them."""
        files = {"a.md": "text", "b.md": PLAN}
        fill(index, files)
        with index.transaction() as tx:
            pages.reclass(tx, partial(rule_of, "home"))
        with built(index.folder / "other", {}) as other:
            with other.transaction() as tx:
                pages.put_all(tx, [put_of(file, text, default="home") for file, text in files.items()])
            assert rows_of(other) == rows_of(index)


NAMES = ("a.md", "A.md", "b/a.md", "b/c.md", "caf\u00e9.md", "cafe\u0301.md", "pic.png", "_topic.md")
TEXTS = (
    "",
    "plain text with [[a]] and [[b/c]]",
    PLAN,
    "---\naliases: [a, C]\nid: plan-1\n---\n[[cafe\u0301]] 漢字の本",
    "---\nbroken: [\n---\ntext",
    "---\nreview: {state: rejected}\nsensitivity: sensitive\n---\n",
)


@dataclass
class Disk:
    """What a vault holds: name, text and time of each file."""

    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    default: str = "personal"

    def puts(self) -> list[pages.Put]:
        """All of it, as a first scan would put it."""
        return [
            put_of(file, text, mtime_ns=time, default=self.default)
            for file, (text, time) in self.files.items()
        ]


changes = st.one_of(
    st.tuples(
        st.just("write"), st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TEXTS)), max_size=4)
    ),
    st.tuples(st.just("remove"), st.lists(st.sampled_from(NAMES), max_size=3)),
    st.tuples(st.just("touch"), st.sampled_from(NAMES)),
    st.tuples(st.just("context"), st.sampled_from(("personal", "home"))),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


def apply(disk: Disk, index: Index, now: int, change: tuple[object, ...]) -> None:
    """Makes one change to the disk and brings the index in step."""
    with index.transaction() as tx:
        match change:
            case ("write", list(writes)):
                disk.files.update({file: (text, MTIME_NS + now) for file, text in writes})
                pages.put_all(
                    tx,
                    [
                        put_of(file, text, mtime_ns=MTIME_NS + now, default=disk.default)
                        for file, text in writes
                    ],
                )
            case ("remove", list(files)):
                for file in files:
                    disk.files.pop(file, None)
                pages.remove(tx, *files)
            case ("touch", str(file)) if file in disk.files:
                text, _ = disk.files[file]
                disk.files[file] = (text, MTIME_NS + now)
                pages.touch(tx, file, stat_of(text, MTIME_NS + now), READ_AT_NS)
            case ("context", str(default)):
                disk.default = default
                pages.reclass(tx, partial(rule_of, default))
            case ("move", str(file), str(target)) if file in disk.files and file != target:
                text, time = disk.files[target] = disk.files.pop(file)
                pages.remove(tx, file)
                pages.put_all(tx, [put_of(target, text, mtime_ns=time, default=disk.default)])


@given(st.lists(changes, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_the_index_equals_a_rebuild_after_any_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[object, ...]]
) -> None:
    """Row by row, in every table: nothing hangs on the order in which changes came."""
    folder = tmp_path_factory.mktemp("vault")
    disk = Disk()
    with built(folder / "lived", {}) as lived, built(folder / "fresh", {}) as fresh:
        for now, change in enumerate(history):
            apply(disk, lived, now * 10**9, change)
        with fresh.transaction() as tx:
            pages.put_all(tx, disk.puts())
        assert rows_of(lived) == rows_of(fresh)


def test_clashes_are_named_in_groups(index: Index) -> None:
    """Paths that differ by case or Unicode form alone, and ids that stand twice."""
    fill(
        index,
        {"a.md": PLAN, "A.md": "x", "caf\u00e9.md": "x", "cafe\u0301.md": "x", "b.md": PLAN, "c.md": "x"},
    )
    with index.reader() as reader:
        assert tables.clashes(reader) == [("A", "a"), ("cafe\u0301", "caf\u00e9"), ("a", "b")]


def test_counts_tell_pages_from_other_files(index: Index) -> None:
    """Control files are no pages."""
    fill(
        index, {"a.md": "x", "b.png": "x", "_topic.md": "x", "c.md": "---\nreview: {state: proposed}\n---\n"}
    )
    with index.reader() as reader:
        assert tables.counts(reader) == tables.Counts(pages=2, attachments=2, problems=0, hidden=1)


def test_rules_are_asked_with_what_a_page_declares(index: Index) -> None:
    """The same rule serves puts and a changed context."""
    fill(index, {"a.md": PLAN})
    with index.transaction() as tx:
        assert pages.reclass(tx, rule) == 0

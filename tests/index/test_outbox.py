"""What the index owes the world outside is kept until it is done, and never forgotten for a clock's sake."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pcpd.index import outbox
from pcpd.index.outbox import Due
from pcpd.index.store import Index

SECOND = 1_000_000_000


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index."""
    opened = Index.open(tmp_path)
    yield opened
    opened.close()


def mark(index: Index, file: str, at_ns: int, pace: str = "page") -> None:
    """Marks one file in a transaction of its own."""
    with index.transaction() as tx:
        outbox.mark(tx, file, at_ns, pace=pace)


def due(index: Index, now_ns: int, pace: str = "page") -> list[str]:
    """The files that are due with the waiting times of pages: quiet for 2 s, 30 s at most."""
    with index.reader() as reader:
        rows = outbox.due(reader, now_ns, quiet_ns=2 * SECOND, longest_ns=30 * SECOND, pace=pace)
    return [row.file for row in rows]


def waiting(index: Index) -> list[Due]:
    """All that waits."""
    with index.reader() as reader:
        return outbox.waiting(reader)


class TestWaitingForACommit:
    """Files that changed wait until they are quiet, and are committed before long."""

    def test_a_file_is_due_when_it_has_been_quiet(self, index: Index) -> None:
        """Not while somebody is still writing."""
        mark(index, "a.md", 100 * SECOND)
        assert due(index, 101 * SECOND) == []
        assert due(index, 102 * SECOND) == ["a.md"]

    def test_a_file_that_never_rests_is_due_at_last(self, index: Index) -> None:
        """Every version that lives long enough is kept."""
        for second in range(100, 130):
            assert due(index, second * SECOND) == []
            mark(index, "a.md", second * SECOND)
        assert due(index, 130 * SECOND) == ["a.md"]

    def test_paces_wait_apart(self, index: Index) -> None:
        """Conversations are committed more rarely than pages."""
        mark(index, "a.md", 100 * SECOND)
        mark(index, "talk.md", 100 * SECOND, "conversation")
        assert due(index, 200 * SECOND) == ["a.md"]
        assert due(index, 200 * SECOND, "conversation") == ["talk.md"]

    def test_what_was_committed_waits_no_more(self, index: Index) -> None:
        """Only what was seen is cleared."""
        mark(index, "a.md", 100)
        mark(index, "b.md", 100)
        with index.transaction() as tx:
            outbox.clear(tx, [row for row in outbox.waiting(tx) if row.file == "a.md"])
        assert [row.file for row in waiting(index)] == ["b.md"]

    @pytest.mark.parametrize(
        "at", [250, 200, 100, 0], ids=["later", "in the same tick", "set back", "at zero"]
    )
    def test_a_change_during_the_commit_is_not_cleared_with_it(self, index: Index, at: int) -> None:
        """Whatever the clock says meanwhile; it waits from its own time on."""
        mark(index, "a.md", 200)
        seen = waiting(index)
        mark(index, "a.md", at)
        with index.transaction() as tx:
            outbox.clear(tx, seen)
        (left,) = waiting(index)
        assert left.first_ns == left.last_ns == max(at, 201)
        with index.transaction() as tx:
            outbox.clear(tx, [left])
        assert waiting(index) == []

    def test_a_clock_that_was_set_back_delays_nothing(self, index: Index) -> None:
        """A mark from the future would otherwise wait until it comes."""
        mark(index, "a.md", 5_000 * SECOND)
        assert due(index, 100 * SECOND) == ["a.md"]

    def test_many_files_are_marked_and_cleared_at_once(self, index: Index) -> None:
        """As after a checkout of another branch."""
        files = [f"{n:05}.md" for n in range(35_000)]
        with index.transaction() as tx:
            outbox.mark_all(tx, files, 100 * SECOND)
        assert due(index, 102 * SECOND) == files
        with index.transaction() as tx:
            outbox.clear(tx, outbox.waiting(tx))
        assert waiting(index) == []


class TestEffects:
    """Effects are kept in order until they are done."""

    def test_effects_come_in_their_order_kind_by_kind(self, index: Index) -> None:
        """With any JSON value as their payload, and an id that is never used again."""
        with index.transaction() as tx:
            first = outbox.add(tx, "audit", {"text": "ü \0 \U0001f600", "list": [1, None]})
            outbox.add(tx, "subscriber", "other")
            second = outbox.add(tx, "audit", [])
        with index.reader() as reader:
            found = outbox.pending(reader, "audit")
            assert outbox.pending(reader, "audit", limit=1) == found[:1]
        assert [(owed.id, owed.payload) for owed in found] == [
            (first, {"text": "ü \0 \U0001f600", "list": [1, None]}),
            (second, []),
        ]
        with index.transaction() as tx:
            outbox.done(tx, [first, second])
            assert outbox.add(tx, "audit", 1) > second
        with index.reader() as reader:
            assert [owed.payload for owed in outbox.pending(reader, "audit")] == [1]
            assert [owed.payload for owed in outbox.pending(reader, "subscriber")] == ["other"]

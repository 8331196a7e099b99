"""What changed is kept per class of facts: whoever replays it sees what they may see, whatever else happened."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.index import events, pages
from pcpd.index.events import Change
from pcpd.index.listing import listing
from pcpd.index.store import Index
from pcpd.index.visible import EVERYTHING
from pcpd.policy.decide import Slice, Visibility
from tests.index.samples import built, put_of, sees

AT = "2026-11-30T12:00:00Z"
Changes = Mapping[str, str | None]
"""What is saved in one transaction: texts by file, None for a file that is removed."""


@contextmanager
def kept(epoch: int = 7) -> Iterator[Index]:
    """An empty index that keeps changes."""
    with tempfile.TemporaryDirectory() as folder, built(Path(folder), {}) as index:
        with index.transaction() as tx:
            events.begin(tx, epoch)
        yield index


def save(index: Index, changes: Changes) -> int:
    """Brings changes in as reconcile does; gives how many were noted."""
    with index.transaction() as tx:
        before = events.states(tx, list(changes))
        pages.put_all(tx, [put_of(file, text) for file, text in changes.items() if text is not None])
        pages.remove(tx, *(file for file, text in changes.items() if text is None))
        return events.write(tx, before, events.states(tx, list(changes)), AT)


def all_after(index: Index, visible: Visibility, seq: int, limit: int = 2) -> list[Change]:
    """Every change after a number, read in batches."""
    found: list[Change] = []
    with index.reader() as reader:
        while True:
            some, seq = events.following(reader, visible, seq, limit)
            found += some
            if len(some) < limit:
                return found


def shown(index: Index, visible: Visibility) -> dict[str, str]:
    """What a list of pages shows: versions by path."""
    with index.reader() as reader:
        return {row.path: row.version for row in listing(reader, visible, limit=1000).pages}


def replayed(start: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """What a reader holds who had `start` and was told these changes."""
    held = dict(start)
    for change in changes:
        if change.kind == "removed":
            held.pop(change.path, None)
        else:
            assert change.version is not None
            held[change.path] = change.version
    return held


def last(index: Index, visible: Visibility) -> int:
    """The number of the last change for a reader."""
    with index.reader() as reader:
        return events.last(reader, visible)


def page(
    partition: str = "personal",
    *,
    kind: str = "semantic",
    sensitive: bool = False,
    proposed: bool = False,
    n: int = 0,
) -> str:
    """A page with these facts."""
    review = "\nreview: {state: proposed}" if proposed else ""
    sensitivity = "sensitive" if sensitive else "normal"
    return f"---\ntype: {kind}\npartition: {partition}\nsensitivity: {sensitivity}{review}\n---\n{n}\n"


PERSONAL = sees("personal")
READERS = (
    EVERYTHING,
    PERSONAL,
    sees("personal", "work"),
    Visibility(
        slices=frozenset(
            {Slice("work", "semantic", sensitive=True), Slice("work", "semantic", False, hidden=True)}
        ),
        hidden=True,
    ),
)
texts = st.none() | st.builds(
    page,
    st.sampled_from(["personal", "work"]),
    kind=st.sampled_from(["semantic", "episodic"]),
    sensitive=st.booleans(),
    proposed=st.booleans(),
    n=st.integers(0, 1),
)
files = st.sampled_from(["a.md", "B.md", "ä/c.md", "ä/C.md"])
histories = st.lists(st.dictionaries(files, texts, max_size=3), max_size=10)


@settings(max_examples=60)
@given(history=histories, reader=st.sampled_from(READERS), limit=st.integers(1, 3))
def test_whoever_replays_changes_from_anywhere_sees_what_a_list_shows(
    history: list[Changes], reader: Visibility, limit: int
) -> None:
    """The same paths and versions, for the person and for readers of a part."""
    with kept() as index:
        moments = [(0, shown(index, reader))]
        for changes in history:
            save(index, changes)
            moments.append((last(index, reader), shown(index, reader)))
        for seq, held in moments:
            assert replayed(held, all_after(index, reader, seq, limit)) == shown(index, reader)


@settings(max_examples=40)
@given(
    history=histories,
    others=st.lists(
        st.dictionaries(st.sampled_from(["x.md", "ä/y.md", "z.md"]), st.integers(0, 99)), max_size=12
    ),
)
def test_changes_outside_the_grant_change_nothing_that_a_reader_gets(
    history: list[Changes], others: list[dict[str, int]]
) -> None:
    """Numbers aside: not the changes, not where they end, not what is too old; however many there are."""
    hidden = [{file: page("secret", n=n) for file, n in each.items()} for each in others]

    def told(*, with_others: bool) -> list[object]:
        said: list[object] = []
        with patch.object(events, "KEPT", 3), patch.object(events, "SLACK", 1), kept() as index:
            cursors = [0]
            for place, changes in enumerate(history):
                for other in hidden[place::2] if with_others else ():
                    save(index, other)
                save(index, changes)
                cursors.append(last(index, PERSONAL))
            with index.reader() as reader:
                floor = events.floor(reader, PERSONAL)
            for seq in cursors:
                said.append(seq < floor)
                said += [
                    (each.kind, each.path, each.version, each.at, each.category)
                    for each in all_after(index, PERSONAL, max(seq, floor))
                ]
            said.append([cursors.index(each) for each in cursors])
        return said

    assert told(with_others=False) == told(with_others=True)


def test_a_page_that_changes_class_is_changed_for_who_sees_both_and_gone_for_who_sees_the_first() -> None:
    """One number, and to each reader one event of it."""
    with kept() as index:
        save(index, {"a.md": page("personal")})
        save(index, {"a.md": page("work")})
        both, first, second = (all_after(index, each, 1) for each in (READERS[2], PERSONAL, sees("work")))
        assert [(each.kind, each.seq) for each in both] == [("changed", 2)]
        assert [(each.kind, each.version) for each in first] == [("removed", None)]
        assert [each.kind for each in second] == ["created"]


def test_a_change_of_class_is_one_event_wherever_a_batch_is_cut() -> None:
    """Also where what stands before it is not told."""
    with kept() as index:
        save(index, {"b.md": page("personal")})
        for n in (1, 2):
            save(index, {"a.md": page(n=n)})
        save(index, {"b.md": page("work")})
        save(index, {"a.md": page(sensitive=True)})
        found = all_after(index, READERS[2], 1, 1)
        assert [(each.kind, each.path) for each in found] == [("changed", "b"), ("removed", "a")]


def test_of_a_page_that_may_not_be_read_today_nothing_is_told_but_that_it_is_gone() -> None:
    """What was seen of it once is not told again."""
    with kept() as index:
        save(index, {"a.md": page(n=1)})
        save(index, {"a.md": page(n=2)})
        save(index, {"a.md": page(sensitive=True, n=3)})
        save(index, {"a.md": page(sensitive=True, n=4)})
        assert [(each.kind, each.version) for each in all_after(index, PERSONAL, 0)] == [("removed", None)]
        save(index, {"a.md": None})
        assert [each.kind for each in all_after(index, PERSONAL, 0)] == ["removed"]


def test_bytes_that_stay_are_no_change() -> None:
    """Also where the file was written again, or a file is no page."""
    with kept() as index:
        assert save(index, {"a.md": page()}) == 1
        assert save(index, {"a.md": page(), "pic.png": "image", "b.md": None}) == 0
        with index.transaction() as tx:
            pages.touch(tx, "a.md", put_of("a.md", page(), mtime_ns=1)[0].stat, 5)
        assert len(all_after(index, EVERYTHING, 0)) == 1


def test_old_changes_of_one_class_are_dropped_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ones are kept; who must have missed some can tell, and nobody else."""
    monkeypatch.setattr(events, "KEPT", 5)
    monkeypatch.setattr(events, "SLACK", 2)
    with kept() as index:
        save(index, {"b.md": page("work")})
        for n in range(20):
            save(index, {"a.md": page(n=n)})
        assert 5 <= len(all_after(index, PERSONAL, 0)) <= 7
        with index.reader() as reader:
            assert events.floor(reader, PERSONAL) == 21 - len(all_after(index, PERSONAL, 0))
            assert events.floor(reader, sees("work")) == 0
            assert events.last(reader, sees("work")) == 1
            (count,) = reader.execute("SELECT sum(kept) FROM event_classes").fetchone()
            assert count == len(all_after(index, EVERYTHING, 0))


def test_more_changes_at_once_than_are_kept_leave_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a checkout of another branch may bring."""
    monkeypatch.setattr(events, "KEPT", 10)
    monkeypatch.setattr(events, "SLACK", 2)
    with kept() as index:
        save(index, {f"{n:03}.md": page() for n in range(100)})
        assert [each.path for each in all_after(index, PERSONAL, 0)] == [f"{n:03}" for n in range(90, 100)]


def test_a_new_index_keeps_nothing_until_it_is_told_to_begin() -> None:
    """Its first scan is no news, and its numbers are of an epoch of its own."""
    with kept(3) as index, index.reader() as reader:
        assert events.epoch(reader) == 3
    with tempfile.TemporaryDirectory() as folder:
        files = {"a.md": page()}
        with built(Path(folder), files) as index, index.reader() as reader:
            assert (events.epoch(reader), events.last(reader, EVERYTHING)) == (0, 0)

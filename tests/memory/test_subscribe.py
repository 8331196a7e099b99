"""What changed since a reader last looked: each is told their part, in order, and nothing of anything else."""

import pytest

from pcpd.memory import read, subscribe, upkeep
from pcpd.memory.memory import Caller
from pcpd.memory.subscribe import Event, News
from tests.vaults import Opened
from tests.waiting import until


def now(opened: Opened, caller: Caller) -> str:
    """The present cursor."""
    return subscribe.since(opened.memory, caller, None).cursor


def told(news: News) -> list[tuple[str, str]]:
    """Kind and path of each event."""
    assert not news.is_reset
    return [(event.kind, event.path) for event in news.events]


def follow(opened: Opened, caller: Caller, cursor: str, want: int) -> list[tuple[str, str]]:
    """Waits until so many events came."""
    return (
        until(
            lambda: (
                found if len(found := told(subscribe.since(opened.memory, caller, cursor))) >= want else None
            )
        )
        or []
    )


def test_each_change_is_told_in_its_order_and_the_cursor_goes_on_after_it(opened: Opened) -> None:
    """Created, changed, removed; after the last one nothing."""
    start = now(opened, opened.person)
    opened.save("a.md", "one\n")
    follow(opened, opened.person, start, 1)
    opened.save("a.md", "two\n")
    follow(opened, opened.person, start, 2)
    (row,) = read.list_pages(opened.memory, opened.person).pages
    news = subscribe.since(opened.memory, opened.person, start)
    assert told(news) == [("created", "a"), ("changed", "a")]
    assert news.events[-1].version == row.version
    assert news.cursor == news.events[-1].id
    assert told(subscribe.since(opened.memory, opened.person, news.events[0].id)) == [("changed", "a")]
    again = subscribe.since(opened.memory, opened.person, news.cursor)
    assert (told(again), again.cursor) == ([], news.cursor)


def test_a_reader_is_told_what_they_see_and_no_other_change_moves_their_cursor(opened: Opened) -> None:
    """A page of another partition is as if it were not there; one that leaves the grant is removed."""
    agent = opened.agent("agent:claude", "read")
    opened.save("a.md", "one\n")
    until(lambda: read.list_pages(opened.memory, agent).total == 1)
    start = now(opened, agent)
    opened.save("secret.md", "---\npartition: work\n---\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    assert now(opened, agent) == start
    assert subscribe.since(opened.memory, agent, start) == News((), start, False)
    opened.save("a.md", "---\nsensitivity: sensitive\n---\n")
    assert follow(opened, agent, start, 1) == [("removed", "a")]
    until(lambda: read.list_pages(opened.memory, agent).total == 0)
    event: Event = subscribe.since(opened.memory, agent, start).events[0]
    assert event.version is None


def test_a_listener_is_woken_by_a_change_and_no_more_after_it_left(opened: Opened) -> None:
    """By changes of pages and of grants."""
    woken: list[int] = []
    leave = subscribe.listen(opened.memory, lambda: woken.append(1))
    opened.save("a.md", "one\n")
    until(lambda: woken)
    leave()


@pytest.mark.parametrize("cursor", ["", "x", "A" * 22, "é" * 22, "A" * 10_000, "=" * 22])
def test_a_cursor_that_is_none_is_a_reset_with_the_present_one(opened: Opened, cursor: str) -> None:
    """Whatever was sent."""
    news = subscribe.since(opened.memory, opened.person, cursor)
    assert (news.events, news.is_reset) == ((), True)
    assert news.cursor == now(opened, opened.person)


def test_a_cursor_outlives_the_owner_and_no_rebuild(opened: Opened) -> None:
    """What changed while no owner ran is told; a new index is another run of numbers."""
    start = now(opened, opened.person)
    opened.close()
    opened.save("a.md", "one\n")
    opened.open()
    assert told(subscribe.since(opened.memory, opened.person, start)) == [("created", "a")]
    upkeep.rebuild(opened.memory)
    assert subscribe.since(opened.memory, opened.person, start).is_reset

"""What changed since a reader last looked: each is told their part, in order, and nothing of anything else."""

import base64
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.memory import consent, read, reconcile, subscribe, upkeep
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Caller
from pcpd.memory.positions import Positions
from pcpd.memory.subscribe import Event, News
from pcpd.policy.decide import Principal, Visibility
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
    woken.clear()
    consent.grant(opened.memory, consent.Wish("agent:claude", ["read"]))
    consent.revoke(opened.memory, principal="agent:claude", token=None)
    upkeep.rebuild(opened.memory)
    assert len(woken) >= 3
    leave()
    woken.clear()
    opened.memory.listeners.tell()
    assert woken == []


def test_a_listener_whose_loop_has_ended_keeps_nobody_from_hearing(opened: Opened) -> None:
    """Nor a write from its answer."""

    def ended() -> None:
        raise RuntimeError("Event loop is closed")

    woken: list[int] = []
    leave = (subscribe.listen(opened.memory, ended), subscribe.listen(opened.memory, lambda: woken.append(1)))
    opened.memory.listeners.tell()
    assert woken == [1]
    for each in leave:
        each()


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


def test_grants_that_change_make_a_cursor_a_reset_and_another_reader_cannot_use_it(opened: Opened) -> None:
    """What one may see is part of where one is."""
    agent, other = opened.agent("agent:claude", "read"), opened.agent("agent:other", "read")
    start = now(opened, agent)
    assert subscribe.since(opened.memory, other, start).is_reset
    opened.agent("agent:claude", "read", partition="work")
    assert subscribe.since(opened.memory, agent, start).is_reset


def test_a_context_that_moves_pages_to_another_partition_is_told_as_what_it_is_to_each(
    opened: Opened,
) -> None:
    """All pages without a partition leave one reader and come to another."""
    opened.save("a.md", "one\n")
    opened.save("b.md", "---\npartition: personal\n---\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    one, other = opened.agent("agent:claude", "read"), opened.agent("agent:other", "read", partition="work")
    starts = now(opened, one), now(opened, other)
    file = opened.root / ".pcp" / "context.yaml"
    text = file.read_text().replace("name: personal", "name: work", 1)
    opened.save(".pcp/context.yaml", text)
    assert follow(opened, one, starts[0], 1) == [("removed", "a")]
    assert follow(opened, other, starts[1], 1) == [("created", "a")]


def test_a_rebuild_resets_its_followers_once(opened: Opened) -> None:
    """Whoever looks when they are woken goes on from there."""
    opened.save("a.md", "one\n")
    start = now(opened, opened.person)
    news: list[News] = []
    leave = subscribe.listen(
        opened.memory,
        lambda: news.append(
            subscribe.since(opened.memory, opened.person, news[-1].cursor if news else start)
        ),
    )
    upkeep.rebuild(opened.memory)
    leave()
    news.append(subscribe.since(opened.memory, opened.person, news[-1].cursor))
    assert sum(each.is_reset for each in news) == 1


def replay(opened: Opened, caller: Caller, cursor: str, held: dict[str, str | None]) -> dict[str, str | None]:
    """What a reader holds who is told everything since a cursor, in small batches."""
    held = dict(held)
    while True:
        news = subscribe.since(opened.memory, caller, cursor, limit=3)
        assert not news.is_reset
        for event in news.events:
            if event.kind == "removed":
                held.pop(event.path, None)
            else:
                held[event.path] = event.version
        cursor = news.cursor
        if len(news.events) < 3:
            return held


def listed(opened: Opened, caller: Caller) -> dict[str, str | None]:
    """Versions by path, as lists show them."""
    return {row.path: row.version or None for row in read.list_pages(opened.memory, caller, limit=1000).pages}


@pytest.mark.parametrize("seed", range(4))
def test_after_a_random_history_whoever_follows_sees_what_a_list_shows(
    make_opened: Callable[..., Opened], seed: int, soak: int
) -> None:
    """From any cursor, for the person and for an agent: saves, removals, broken pages, a context that moves pages."""
    draw = random.Random(seed)  # noqa: S311
    opened = make_opened(f"h{seed}").open()
    opened.running.steward.close() if opened.running else None
    agent = opened.agent("agent:claude", "read")
    readers = (opened.person, agent)
    moments = [(caller, now(opened, caller), listed(opened, caller)) for caller in readers]
    context = opened.root / ".pcp" / "context.yaml"
    heads = ("", "---\npartition: work\n---\n", "---\nsensitivity: sensitive\n---\n", "---\nx: [\n---\n")
    for _ in range(30 * soak):
        files = [f"{draw.choice(['', 'Äb/'])}{draw.randrange(6)}.md" for _ in range(draw.randrange(1, 5))]
        for file in files:
            if draw.random() < 0.3:
                (opened.root / file).unlink(missing_ok=True)
            else:
                opened.save(file, f"{draw.choice(heads)}{draw.randrange(3)}\n")
        if draw.random() < 0.2:
            names = draw.choice([("personal", "work"), ("work", "personal")])
            opened.save(
                ".pcp/context.yaml", context.read_text().replace(f"name: {names[0]}", f"name: {names[1]}")
            )
            files.append(".pcp/context.yaml")
        reconcile.reconcile(opened.memory, files, Urgency.ACT)
        moments += [(caller, now(opened, caller), listed(opened, caller)) for caller in readers]
    for caller, cursor, held in moments:
        assert replay(opened, caller, cursor, held) == listed(opened, caller)


numbers = st.integers(0, 2**63 - 1)


@given(key=st.binary(min_size=32, max_size=32), epoch=st.integers(1, 2**32 - 1), seq=numbers)
def test_an_id_gives_its_number_back_to_its_reader_alone(key: bytes, epoch: int, seq: int) -> None:
    """Not to another principal, nor in another index, nor under other grants or another device's key."""
    who, sees = Principal("agent:a"), Visibility(hidden=False)
    mine = Positions.of(key, epoch, who, sees)
    text = mine.write(seq)
    assert mine.read(text) == seq
    others = (
        Positions.of(key, epoch, Principal("agent:b"), sees),
        Positions.of(key, epoch, who, Visibility(hidden=True)),
        Positions.of(key, epoch % (2**32 - 1) + 1, who, sees),
        Positions.of(bytes(32) if any(key) else bytes([1] * 32), epoch, who, sees),
    )
    assert [each.read(text) for each in others] == [None] * 4


@given(seq=numbers, bit=st.integers(0, 127))
def test_an_id_that_was_changed_is_none(seq: int, bit: int) -> None:
    """In any bit: nobody makes up where they are."""
    mine = Positions.of(bytes(32), 1, Principal("agent:a"), Visibility())
    block = bytearray(base64.urlsafe_b64decode(mine.write(seq) + "=="))
    block[bit // 8] ^= 1 << bit % 8
    assert mine.read(base64.urlsafe_b64encode(block).decode().rstrip("=")) is None

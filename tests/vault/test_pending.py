"""What happened is gathered in sets, and what may be the middle of a save waits for what comes next."""

import threading
from collections.abc import Callable

import pytest

from pcpd.vault.pending import MOST_FILES, Batch, Pending

GRACE_S = 10.0


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        """Begins at noon."""
        self.now = 1000.0

    def __call__(self) -> float:
        """Tells the time."""
        return self.now


@pytest.fixture
def clock() -> Hand:
    """The time, which stands still."""
    return Hand()


@pytest.fixture
def pending(clock: Hand) -> Pending:
    """Nothing yet."""
    return Pending(clock, GRACE_S)


def taken(pending: Pending) -> Batch:
    """Takes what is there; there must be something."""
    batch = pending.take()
    assert batch is not None
    return batch


def test_what_changed_is_given_at_once_and_once(pending: Pending) -> None:
    """A name that was noted many times is one name."""
    for _ in range(3):
        pending.changed("a.md")
    pending.changed("b.md")
    assert taken(pending) == Batch(frozenset({"a.md", "b.md"}), frozenset(), frozenset(), (), ())
    pending.changed("c.md")
    assert taken(pending).files == {"c.md"}


@pytest.mark.parametrize("steps", [["gone"], ["created"], ["changed", "gone"], ["gone", "created"]])
def test_what_went_or_was_created_rests_before_it_is_told(
    pending: Pending, clock: Hand, steps: list[str]
) -> None:
    """Something else is given meanwhile."""
    for step in steps:
        pending.changed("a.md") if step == "changed" else pending.unsure("a.md")
    pending.changed("b.md")
    assert taken(pending).files == {"b.md"}
    clock.now += GRACE_S
    assert taken(pending).rested == {"a.md"}


@pytest.mark.parametrize("steps", [1, 2])
def test_a_save_by_deleting_and_creating_is_one_change(pending: Pending, clock: Hand, steps: int) -> None:
    """Gone, created, closed: nothing is left to be told later."""
    for _ in range(steps):
        pending.unsure("a.md")
        clock.now += GRACE_S / 2
    pending.changed("a.md")
    batch = taken(pending)
    assert batch.files == {"a.md"}
    assert not batch.rested
    clock.now += 2 * GRACE_S
    pending.changed("b.md")
    assert taken(pending).rested == frozenset()


def test_waiting_begins_anew_with_every_doubt(pending: Pending, clock: Hand) -> None:
    """A file that is created after it went has the whole time to be written."""
    pending.unsure("a.md")
    clock.now += GRACE_S * 0.9
    pending.unsure("a.md")
    clock.now += GRACE_S * 0.9
    pending.changed("b.md")
    assert taken(pending).rested == frozenset()


def test_what_goes_together_is_told_together(pending: Pending, clock: Hand) -> None:
    """The files of a folder that is deleted one by one come in few batches."""
    for number in range(50):
        pending.unsure(f"{number}.md")
        clock.now += GRACE_S / 200
    clock.now += GRACE_S * 0.8
    assert len(taken(pending).rested) == 50


def test_folders_come_in_order_and_going_ones_also_rest(pending: Pending, clock: Hand) -> None:
    """Watches follow at once, in the order of events; that pages are gone is told later."""
    pending.folder("a", appeared=False)
    pending.folder("b", appeared=True)
    pending.folder("c", appeared=False)
    pending.folder("c", appeared=True)
    batch = taken(pending)
    assert batch.tree == (("a", False), ("b", True), ("c", False), ("c", True))
    assert batch.folders_gone == frozenset()
    clock.now += GRACE_S
    assert taken(pending).folders_gone == {"a"}


def test_too_many_names_become_everything(pending: Pending) -> None:
    """Memory stays flat however much happens before somebody takes it."""
    for number in range(MOST_FILES + 1):
        pending.changed(str(number))
    batch = taken(pending)
    assert batch.files == frozenset()
    assert batch.reasons == ("many files changed at once",)


def test_each_reason_is_given_once(pending: Pending) -> None:
    """A queue that overflows is told once for each watched folder."""
    for _ in range(5000):
        pending.everything("overflow")
    pending.everything("rules")
    assert taken(pending).reasons == ("overflow", "rules")


@pytest.mark.parametrize(
    "wake",
    [
        lambda pending: pending.changed("a.md"),
        lambda pending: pending.folder("a", appeared=True),
        lambda pending: pending.everything("why"),
        lambda pending: pending.close(),
    ],
)
def test_who_waits_is_woken_by_any_news(wake: Callable[[Pending], None]) -> None:
    """And sleeps without a limit of time before: idle costs nothing."""
    pending = Pending(Hand(), GRACE_S)
    waits: list[float | None] = []
    waiting = threading.Event()
    real = pending._news.wait

    def noted(timeout: float | None = None) -> bool:
        waits.append(timeout)
        waiting.set()
        return real(timeout)

    pending._news.wait = noted  # type: ignore[method-assign]
    taker = threading.Thread(target=pending.take)
    taker.start()
    assert waiting.wait(60)
    wake(pending)
    taker.join(60)
    assert not taker.is_alive()
    assert waits == [None]


def test_a_file_in_doubt_wakes_who_waits_when_it_is_due() -> None:
    """With the real clock, without further news."""
    import time

    pending = Pending(time.monotonic, 0.01)
    pending.unsure("a.md")
    assert taken(pending).rested == {"a.md"}
    pending.close()
    assert pending.take() is None

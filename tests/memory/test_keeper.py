"""The keeper runs jobs one after the other, the most urgent first."""

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from pcpd.errors import Invalid, Unavailable
from pcpd.memory.keeper import Keeper, Urgency


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """A keeper at work."""
    keeper = Keeper()
    keeper.start()
    yield keeper
    keeper.close(5)


def test_an_act_goes_between_two_slices_of_a_scan(keeper: Keeper) -> None:
    """An agent's write does not wait for the end of a scan that began before."""
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def first_slice() -> None:
        order.append("scan begins")
        begun.set()
        assert go_on.wait(30)

    keeper.run(Urgency.SCAN, first_slice)
    scanned = keeper.run(Urgency.SCAN, lambda: order.append("scan ends"))
    assert begun.wait(30)
    act = keeper.run(Urgency.ACT, lambda: order.append("act"))
    go_on.set()
    act.result(30)
    scanned.result(30)
    assert order == ["scan begins", "act", "scan ends"]


def test_work_that_is_refused_ends_at_its_next_slice_and_other_work_goes_on(keeper: Keeper) -> None:
    """An owner that ends waits for no scan, and commits all the same."""
    begun, go_on = threading.Event(), threading.Event()

    def slice_() -> str:
        begun.set()
        assert go_on.wait(30)
        return "done"

    running = keeper.run(Urgency.SCAN, slice_)
    assert begun.wait(30)
    waiting = keeper.run(Urgency.SCAN, lambda: "done")
    keeper.refuse(Urgency.SCAN)
    with pytest.raises(Unavailable):
        keeper.run(Urgency.SCAN, lambda: None).result(30)
    go_on.set()
    assert running.result(30) == waiting.result(30) == "done"
    assert keeper.run(Urgency.COMMIT, lambda: "committed").result(30) == "committed"


def test_jobs_of_one_urgency_run_in_the_order_of_their_coming(keeper: Keeper) -> None:
    """Two writes of one agent keep their order."""
    done: list[int] = []
    futures = [keeper.run(Urgency.ACT, partial(done.append, n)) for n in range(50)]
    for future in futures:
        future.result(30)
    assert done == list(range(50))


def test_a_job_that_fails_tells_its_caller_and_nobody_else(keeper: Keeper) -> None:
    """The keeper outlives what its jobs raise."""

    def fails() -> None:
        raise Invalid("page.content", "no")

    with pytest.raises(Invalid):
        keeper.run(Urgency.ACT, fails).result(30)
    assert keeper.run(Urgency.ACT, lambda: 3).result(30) == 3


def test_a_closing_keeper_takes_no_more_jobs_and_ends_those_it_has() -> None:
    """What was promised is done; what comes later is told to come again."""
    keeper = Keeper()
    waiting = keeper.run(Urgency.COMMIT, lambda: "done")
    keeper.start()
    assert keeper.close(30)
    assert waiting.result(0) == "done"
    with pytest.raises(Unavailable):
        keeper.run(Urgency.ACT, lambda: None).result(0)

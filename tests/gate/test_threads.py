"""The doors' threads: acts run beside the event loop, so many at a time; who is cancelled waits no longer."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from pcpd.gate.threads import Shares, Threads
from tests.waiting import LONGEST_S, until


def _named(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def test_an_act_gives_what_it_gives_and_raises_what_it_raises() -> None:
    """On a thread of the door, not of the loop."""

    async def main() -> None:
        threads = Threads(2, "door-a")
        assert await threads.run(lambda: threading.current_thread().name) == "door-a"
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)
        assert await threads.run(lambda: 1) == 1

    asyncio.run(main())


def test_threads_are_made_as_they_are_needed_and_no_more_than_so_many() -> None:
    """What comes while all of them work is done afterwards, in the order in which it came."""

    async def main() -> None:
        threads, may_go_on, done = Threads(2, "door-b"), threading.Event(), list[int]()
        await threads.run(lambda: None)
        await threads.run(lambda: None)
        assert _named("door-b") == 1
        held = [asyncio.ensure_future(threads.run(lambda: may_go_on.wait(LONGEST_S))) for _ in range(2)]
        waiting = [asyncio.ensure_future(threads.run(lambda n=n: done.append(n))) for n in range(20)]  # type: ignore[misc]
        await asyncio.sleep(0)
        assert _named("door-b") == 2
        assert not done
        may_go_on.set()
        await asyncio.gather(*held, *waiting)
        assert sorted(done) == list(range(20))
        assert _named("door-b") == 2

    asyncio.run(main())


def test_who_is_cancelled_waits_no_longer_and_the_act_goes_on() -> None:
    """Its thread serves the next one afterwards."""

    async def main() -> None:
        threads, may_go_on, ended = Threads(1, "door-c"), threading.Event(), threading.Event()
        faults = list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, said: faults.append(said))

        def act() -> None:
            assert may_go_on.wait(LONGEST_S)
            ended.set()

        waiting = asyncio.ensure_future(threads.run(act))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not ended.is_set()
        may_go_on.set()
        assert await threads.run(ended.is_set)
        assert not faults

    asyncio.run(main())


def test_an_idle_thread_keeps_nothing_alive() -> None:
    """Neither what the last act was given nor what it gave: a page of ten megabytes would stay for hours."""

    class Page:
        """Something large."""

    async def main() -> None:
        threads = Threads(1, "door-d")

        def act(given: Page) -> Page:
            return given

        def fail(_given: Page) -> None:
            raise ZeroDivisionError

        page = Page()
        seen = weakref.ref(page)
        assert await threads.run(lambda page=page: act(page)) is page  # type: ignore[misc]
        del page
        await asyncio.to_thread(until, lambda: seen() is None)
        page = Page()
        seen = weakref.ref(page)
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda page=page: fail(page))  # type: ignore[misc]
        del page
        await asyncio.to_thread(until, lambda: gc.collect() >= 0 and seen() is None)

    asyncio.run(main())


def test_an_act_that_outlives_its_loop_ends_quietly() -> None:
    """As when an owner ends while a page is read."""
    may_go_on, begun = threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        assert may_go_on.wait(LONGEST_S)

    async def main() -> None:
        threads = Threads(1, "door-e")
        waiting = asyncio.ensure_future(threads.run(act))
        while not begun.is_set():
            await asyncio.sleep(0)
        waiting.cancel()

    with ThreadPoolExecutor(1) as loop:
        loop.submit(asyncio.run, main()).result(LONGEST_S)
    (thread,) = (each for each in threading.enumerate() if each.name == "door-e")
    may_go_on.set()
    thread.join(LONGEST_S)
    assert not thread.is_alive()


def test_no_agent_takes_all_threads_and_none_takes_the_persons() -> None:
    """One has half of those for agents at most, however much it asks; what the person asks waits for no agent."""

    async def main() -> None:
        shares, may_go_on = Shares(4, "door-f"), threading.Event()
        held = [
            asyncio.ensure_future(shares.run(lambda: may_go_on.wait(LONGEST_S), "agent:one"))
            for _ in range(9)
        ]
        async with asyncio.timeout(LONGEST_S):
            assert await shares.run(lambda: 2, "agent:two") == 2
            held += [
                asyncio.ensure_future(shares.run(lambda: may_go_on.wait(LONGEST_S), "agent:two"))
                for _ in range(9)
            ]
            assert await shares.run(lambda: 3) == 3
        may_go_on.set()
        assert all(await asyncio.gather(*held))

    asyncio.run(main())


def test_an_agent_that_hangs_up_has_its_share_back_when_its_acts_have_ended() -> None:
    """Not before: asking and hanging up again and again takes no more threads than waiting."""

    async def main() -> None:
        shares, may_go_on = Shares(2, "door-g"), threading.Event()
        gone = asyncio.ensure_future(shares.run(lambda: may_go_on.wait(LONGEST_S), "agent:one"))
        await shares.run(lambda: None, "agent:two")
        gone.cancel()
        after = asyncio.ensure_future(shares.run(lambda: 1, "agent:one"))
        await shares.run(lambda: None, "agent:two")
        assert not after.done()
        may_go_on.set()
        assert await after == 1

    asyncio.run(main())

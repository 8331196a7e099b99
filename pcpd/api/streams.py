"""What all event streams of an owner share: how many there may be, what wakes them, and the threads they look on.

Quiet streams cost one wake-up of the event loop every `BEAT_S` seconds, however many there are.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pcpd.errors import Unavailable
from pcpd.gate.credentials import Credentials
from pcpd.gate.threads import Threads
from pcpd.memory import subscribe
from pcpd.memory.memory import Memory

BEAT_S = 15.0
MOST = 96
"""Streams at a time, fewer than the connections over loopback, so that calls always find a way in."""
MOST_OF_ONE = 32
LOOKS = 2
"""Threads that look for changes, so that a burst of them delays no call."""


class Waiting:
    """One stream's wake-up: `rings` when something may have changed, `beats` when it is time to show life."""

    def __init__(self) -> None:
        self.beats = False
        self._woken = asyncio.Event()

    def wake(self, *, beat: bool = False) -> None:
        """Wakes the stream."""
        self.beats = self.beats or beat
        self._woken.set()

    async def sleep(self) -> bool:
        """Waits for the next wake-up, or the one that came since the last; tells whether it was a beat."""
        await self._woken.wait()
        self._woken.clear()
        beats, self.beats = self.beats, False
        return beats


class Streams:
    """The streams of one owner. For the loop's thread alone."""

    def __init__(self, memory: Memory) -> None:
        self.credentials = Credentials(memory)
        self.threads = Threads(LOOKS, "events")
        self._memory = memory
        self._waiting: dict[Waiting, str] = {}
        self._leave: Callable[[], None] = lambda: None
        self._timer: asyncio.TimerHandle | None = None
        self._is_rung = False

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._waiting)

    @contextmanager
    def place(self, principal: str) -> Iterator[Waiting]:
        """Gives one more stream its wake-up. Raises `Unavailable` (`events.too-many`)."""
        mine = Counter(self._waiting.values())[principal]
        if len(self._waiting) >= MOST or mine >= MOST_OF_ONE:
            raise Unavailable(
                "events.too-many",
                f"{mine} streams of {principal} are open, {len(self._waiting)} of all",
                hint=f"close some: {MOST_OF_ONE} may be open for one principal, {MOST} for all",
            )
        waiting = Waiting()
        if not self._waiting:
            self._start()
        self._waiting[waiting] = principal
        try:
            yield waiting
        finally:
            del self._waiting[waiting]
            if not self._waiting:
                self._stop()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._leave = subscribe.listen(self._memory, lambda: self._hop(loop))
        self._timer = loop.call_later(BEAT_S, self._beat)

    def _stop(self) -> None:
        self._leave()
        if self._timer is not None:
            self._timer.cancel()

    def _hop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called on the thread that changed something; what comes before the loop has heard rings once."""
        if not self._is_rung:
            self._is_rung = True
            loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self._is_rung = False
        for waiting in self._waiting:
            waiting.wake()

    def _beat(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)
        for waiting in self._waiting:
            waiting.wake(beat=True)

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
"""Streams of one principal at a time."""
LOOKS = 2
"""Threads that look for changes, so that a burst of them delays no call."""


class Waiting:
    """What one stream waits for: that something may have changed, or that it is time for a sign of life (a beat)."""

    def __init__(self) -> None:
        self._is_beat = False
        self._woken = asyncio.Event()

    def wake(self, *, beat: bool = False) -> None:
        """Wakes the stream; `beat` when it is time for a sign of life."""
        self._is_beat = self._is_beat or beat
        self._woken.set()

    async def sleep(self) -> bool:
        """Waits for the next wake-up, or the one that came since the last; tells whether it was a beat."""
        await self._woken.wait()
        self._woken.clear()
        was_beat, self._is_beat = self._is_beat, False
        return was_beat


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
        """Counts one more stream while the body runs, and gives what it waits for. Raises `Unavailable`
        (`events.too-many`)."""
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
        """Passes a wake-up on to the event loop, from the thread that changed something.

        Further ones that come before the loop has taken the first are one with it.
        """
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

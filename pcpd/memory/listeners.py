"""Who wants to know when something may have changed: doors that tell their clients."""

import threading
from collections.abc import Callable
from contextlib import suppress

Wake = Callable[[], None]


class Listeners:
    """What is to be called after changes. Any thread may use it.

    A wake says only that looking may be worth it; it returns at once and raises nothing, but for the
    RuntimeError of an event loop that has ended meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: tuple[Wake, ...] = ()

    def add(self, wake: Wake) -> Callable[[], None]:
        """Calls `wake` after changes from now on; gives the function that ends that."""
        with self._lock:
            self._wakes += (wake,)

        def remove() -> None:
            with self._lock:
                self._wakes = tuple(each for each in self._wakes if each is not wake)

        return remove

    def tell(self) -> None:
        """Wakes everyone."""
        for wake in self._wakes:
            with suppress(RuntimeError):
                wake()

"""Runs a request and shows, at a terminal, how far long work is."""

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE_S = 1.0
GLANCE_S = 0.2


class _Job(Generic[T]):
    """A call on a thread of its own, and what came of it."""

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._result.append(self._act())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self._error = error
        finally:
            self.done.set()

    def result(self) -> T:
        """Gives what the call gave, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result[0]


def wait(act: Callable[[], T], glance: Callable[[], None]) -> T:
    """Gives what `act` gives, however long it takes, without a word. Ctrl-C and what `glance` raises end the wait."""
    job = _Job(act)
    while not job.done.wait(GLANCE_S):
        glance()
    return job.result()


def run(act: Callable[[], T], work: Callable[[], Mapping[str, object] | None]) -> T:
    """Gives what `act` gives. Ctrl-C ends the wait at once.

    After a second, and only where stderr is a terminal, `work` is asked again and again and shown as a bar.
    """
    job = _Job(act)
    if not job.done.wait(PATIENCE_S) and sys.stderr.isatty():
        _show(job.done, work)
    while not job.done.wait(GLANCE_S):
        pass
    return job.result()


def _show(done: threading.Event, work: Callable[[], Mapping[str, object] | None]) -> None:
    """Shows a bar until the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("waiting for the owner", total=None)
        while not done.wait(GLANCE_S):
            now = work() or {}
            total = now.get("total")
            if isinstance(total, int) and total:
                bars.update(
                    task, description=str(now.get("what")), total=total, completed=_number(now.get("done"))
                )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0

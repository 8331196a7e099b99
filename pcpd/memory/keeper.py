"""The keeper: the one thread on which everything that changes the vault's media runs.

A job is a function and a slice of at most 50 ms: whoever has long work puts it in one slice after the other,
and between two of them more urgent jobs go first, so that an agent's write never waits for a scan
(architecture.md, *The road in*).
"""

import heapq
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

from pcpd.errors import Unavailable

T = TypeVar("T")


class Urgency(IntEnum):
    """What goes first when several jobs wait."""

    ACT = 0
    EVENT = 1
    SCAN = 2
    COMMIT = 3


@dataclass(order=True, slots=True)
class _Job:
    urgency: Urgency
    number: int
    work: Callable[[], Any] = field(compare=False)
    future: "Future[Any]" = field(compare=False)


class Keeper:
    """Runs jobs one after the other, the most urgent first, in the order of their coming within one urgency."""

    def __init__(self) -> None:
        self._jobs: list[_Job] = []
        self._refused: frozenset[Urgency] = frozenset()
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def is_here(self) -> bool:
        """Tells whether the caller runs on the keeper itself."""
        return threading.current_thread() is self._thread

    def run(self, urgency: Urgency, work: Callable[[], T]) -> "Future[T]":
        """Queues a job; the future gives its answer or raises its error, `Unavailable` (`owner.closing`) at the end."""
        future: Future[T] = Future()
        self._put(_Job(urgency, next(self._numbers), work, future))
        return future

    def refuse(self, *urgencies: Urgency) -> None:
        """Takes no more jobs of these urgencies; those that wait are done. Long work ends at its next slice."""
        with self._wake:
            self._refused |= set(urgencies)

    def close(self, timeout_s: float) -> bool:
        """Takes no more jobs, ends after those that wait, and tells whether it ended in time."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _put(self, job: _Job) -> None:
        with self._wake:
            if self._closing or job.urgency in self._refused:
                job.future.set_exception(
                    Unavailable("owner.closing", "the owner is shutting down", hint="try again in a moment")
                )
                return
            heapq.heappush(self._jobs, job)
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._closing:
                    self._wake.wait()
                if not self._jobs:
                    return
                job = heapq.heappop(self._jobs)
            self._do(job)

    @staticmethod
    def _do(job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        try:
            job.future.set_result(job.work())
        except BaseException as error:  # noqa: BLE001  (the keeper's edge: the waiting caller gets the error)
            job.future.set_exception(error)

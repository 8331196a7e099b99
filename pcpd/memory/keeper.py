"""The keeper: the one thread on which everything that changes the vault's media runs.

A short job is a function. A long job is a generator: each `yield` ends a slice, and between slices more
urgent jobs go first, so that an agent's write never waits for a scan (architecture.md, *The road in*).
"""

import heapq
import itertools
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

from pcpd.errors import Unavailable

SLICE_S = 0.05

T = TypeVar("T")

_Slices = Generator[None, None, Any]


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
    work: Callable[[], Any] | None = field(compare=False)
    slices: _Slices | None = field(compare=False)
    future: "Future[Any]" = field(compare=False)


class Keeper:
    """Runs jobs one slice at a time, the most urgent first, in the order of their coming within one urgency.

    `monotonic` gives seconds; it decides how many steps of a long job fit into one slice of 50 ms.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._jobs: list[_Job] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Tells whether the thread runs."""
        return self._thread.is_alive()

    def is_here(self) -> bool:
        """Tells whether the caller runs on the keeper itself."""
        return threading.current_thread() is self._thread

    def run(self, urgency: Urgency, work: Callable[[], T]) -> "Future[T]":
        """Queues a short job; the future gives its answer or raises its error."""
        future: Future[T] = Future()
        self._put(_Job(urgency, next(self._numbers), work, None, future))
        return future

    def run_long(self, urgency: Urgency, slices: Generator[None, None, T]) -> "Future[T]":
        """Queues a long job; the future gives what the generator returns."""
        future: Future[T] = Future()
        self._put(_Job(urgency, next(self._numbers), None, slices, future))
        return future

    def must_yield(self, urgency: Urgency) -> bool:
        """Tells a long job whether something more urgent waits."""
        return bool(self._jobs) and self._jobs[0].urgency < urgency

    def close(self, timeout_s: float) -> bool:
        """Takes no more jobs, ends after those that wait, and tells whether it ended in time."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _put(self, job: _Job) -> None:
        with self._wake:
            if self._closing:
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
            self._step(job)

    def _step(self, job: _Job) -> None:
        if job.slices is None and not job.future.set_running_or_notify_cancel():
            return
        try:
            if job.work is not None:
                job.future.set_result(job.work())
            elif job.slices is not None:
                self._slice(job, job.slices)
        except BaseException as error:  # noqa: BLE001  (the keeper's edge: the waiting caller gets the error)
            job.future.set_exception(error)

    def _slice(self, job: _Job, slices: _Slices) -> None:
        until = self._monotonic() + SLICE_S
        try:
            while True:
                next(slices)
                if self._closing_early(job) or self._monotonic() >= until or self.must_yield(job.urgency):
                    break
        except StopIteration as end:
            job.future.set_result(end.value)
            return
        with self._wake:
            heapq.heappush(self._jobs, job)

    def _closing_early(self, job: _Job) -> bool:
        if not (self._closing and job.urgency >= Urgency.SCAN):
            return False
        if job.slices is not None:
            job.slices.close()
        raise Unavailable("owner.closing", "the owner is shutting down", hint="it resumes at the next start")

"""Waits for what happens on other threads or in other processes: on a condition, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LONGEST_S = 60.0
STEP_S = 0.005


def until(condition: Callable[[], T], what: str = "") -> T:
    """Gives the first true answer of `condition`, asked again and again; fails after a minute."""
    ends_at = time.monotonic() + LONGEST_S
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < ends_at, f"never came true: {what or condition}"
        time.sleep(STEP_S)

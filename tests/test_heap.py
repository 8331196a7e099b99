"""Memory outside Python's own: what bulk work freed goes back to the system."""

import sqlite3
import sys
from pathlib import Path

import pytest

from pcpd import heap


def resident_kb() -> int:
    """What the system says this process holds."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def test_it_can_be_asked_for_anywhere() -> None:
    """Where the C library is another one, nothing happens."""
    heap.use_one_arena()
    heap.give_back()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_what_was_freed_below_something_that_stays_is_given_back() -> None:
    """The heap's top cannot fall below a piece in use; what is free beneath it goes back all the same."""
    if heap._glibc() is None:
        pytest.skip("another C library than glibc")
    heap.use_one_arena()
    conn = sqlite3.connect(":memory:")
    conn.execute("CREATE TABLE filled (text)")
    conn.executemany("INSERT INTO filled VALUES (?)", [("x" * 2000,)] * 20_000)
    on_top = sqlite3.connect(":memory:")
    on_top.execute("CREATE TABLE stays (text)")
    conn.close()
    full = resident_kb()
    heap.give_back()
    on_top.close()
    assert resident_kb() < full + 1000

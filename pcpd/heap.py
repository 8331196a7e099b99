"""The process's memory: C's kept in one arena and given back after bulk work, Python's not searched in vain.

glibc gives each thread an arena of its own, and keeps in it what was freed: the threads of an owner would hold
tens of megabytes that no thread uses. Elsewhere than on glibc nothing here does anything about that. Python
searches all objects for unused cycles, and stops every thread meanwhile: 100 ms once a framework is imported.
"""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_ARENA_MAX = -8  # M_ARENA_MAX of mallopt(3)


def use_one_arena() -> None:
    """Lets all threads share one arena. For the start, before there are threads; Python's lock keeps them apart."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_ARENA_MAX, 1)


def give_back() -> None:
    """Gives the system what is free within the heap: some milliseconds, in which Python goes on."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


@contextmanager
def importing() -> Iterator[None]:
    """Imports without searching for cycles, and leaves what is there then out of every later search."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None

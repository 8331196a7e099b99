"""What this process takes of the machine, under Prometheus' names for it. What cannot be told is left out."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pcpd.api.exposition import Family, one

_STATM = Path("/proc/self/statm")
_FOLDERS = (Path("/proc/self/fd"), Path("/dev/fd"))


def families(started_at: float) -> Iterator[Family]:
    """Gives the numbers; `started_at` is when the process began, in seconds since 1970."""
    times = os.times()
    yield one(
        "process_cpu_seconds_total", "counter", "CPU time, of user and system.", times.user + times.system
    )
    yield one(
        "process_start_time_seconds", "gauge", "When the process began, seconds since 1970.", started_at
    )
    yield one("process_threads", "gauge", "Threads.", threading.active_count())
    with suppress(OSError, ValueError, IndexError):
        virtual, resident = _STATM.read_text().split()[:2]
        page = resource.getpagesize()
        yield one("process_virtual_memory_bytes", "gauge", "Address space.", int(virtual) * page)
        yield one("process_resident_memory_bytes", "gauge", "Memory in use.", int(resident) * page)
    open_files = next((count for count in map(_entries, _FOLDERS) if count is not None), None)
    if open_files is not None:
        yield one("process_open_fds", "gauge", "Open files and sockets.", open_files)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY:
        yield one("process_max_fds", "gauge", "Files and sockets that may be open.", limit)


def _entries(folder: Path) -> int | None:
    try:
        return len(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return None

"""What the benchmark looks at from outside: processes, folders, and samples of time."""

import hashlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def median(samples: Sequence[float]) -> float:
    """Gives the middle of some samples."""
    return statistics.median(samples)


def p95(samples: Sequence[float]) -> float:
    """Gives the value under which 95 of 100 samples lie."""
    return sorted(samples)[min(len(samples) - 1, int(len(samples) * 0.95))]


def timed(work: Callable[..., object], *arguments: object) -> float:
    """Gives the milliseconds that one call takes."""
    start = time.perf_counter()
    work(*arguments)
    return (time.perf_counter() - start) * 1000


def cpu_seconds(pid: int) -> float:
    """Gives the processor time that a process and its ended children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(fields[place]) for place in (11, 12, 13, 14)) / _TICKS


def memory_mb(pid: int, what: str = "VmRSS") -> float:
    """Gives the resident memory of a process; `VmHWM` for its highest so far."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def tree_digest(folder: Path) -> str:
    """Names the bytes and times of every page below a folder: what a first index must leave as it was."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.md")):
        digest.update(f"{file.relative_to(folder)}\0{file.stat().st_mtime_ns}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def size_of(folder: Path, pattern: str) -> int:
    """Gives the bytes of all files that match."""
    return sum(file.stat().st_size for file in folder.rglob(pattern) if file.is_file())


def until(holds: Callable[[], bool], *, timeout_s: float, pause_s: float = 0.05) -> float:
    """Waits until something holds and gives the seconds it took."""
    start = time.perf_counter()
    while not holds():
        if time.perf_counter() - start > timeout_s:
            raise TimeoutError(f"not within {timeout_s:.0f} s")
        time.sleep(pause_s)
    return time.perf_counter() - start

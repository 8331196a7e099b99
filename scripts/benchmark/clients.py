"""Many clients at once beside a person who saves: 32 over MCP on HTTP and 32 of the API, every answer checked."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark import bare, searching
from benchmark.load import Plan
from benchmark.machine import cpu_seconds, median, memory_mb
from benchmark.person import ROOT, Person
from benchmark.report import Row
from benchmark.wire import Caller, Line

EACH = 32
AGENTS = 4
SECONDS = 60.0
LIMIT_SECONDS = 10.0
WORDS = 200
MOST_HITS = 8
"""Pages that a word may be on: every answer then holds all of them."""
WARM = 0.25
"""The part of the time in which an owner's memory may grow: caches fill, threads are made."""
MOST_GROWN_MB = 8
P95_MS = 60.0
BLOCKED_MS = 50.0


def clients(person: Person, vault: Path, pages: int, seconds: float = SECONDS) -> Iterator[Row]:
    """Gives the rows of a minute with 64 clients, beside ten seconds of as many with bare servers."""
    with bare.serving("benchmark.bare_doors:app") as (_, address):
        least = _run(Plan(address, LIMIT_SECONDS, EACH))["kinds"]
    with person.owner(vault) as owner:
        tokens = [person.let_in(vault, f"agent:client-{number}") for number in range(AGENTS)]
        words = _words(Caller(owner.address, tokens[0]), vault)
        used, memory = cpu_seconds(owner.pid), _Memory(owner.pid)
        said = _run(Plan(owner.address, seconds, EACH, str(vault), tokens, words))
        grown, used = memory.end(), cpu_seconds(owner.pid) - used
    what, kinds = f"{2 * EACH} clients for {seconds:.0f} s", said["kinds"]
    count = sum(each["count"] for each in kinds.values())
    note = (
        f"{count / seconds:,.0f} answers/s on {os.cpu_count()} cores, of which the clients took "
        f"{said['cpu'] / seconds:.2f} and the owner {used / seconds:.2f}; {said['saves']} pages saved meanwhile"
    )
    for wrong in said["first"]:
        print(wrong, file=sys.stderr)
    yield Row(
        f"{what}: errors and wrong answers", pages, said["wrong"], None, "", "0", not said["wrong"], note
    )
    for kind in ("API", "MCP"):
        ours, limit = kinds[kind]["p95"], least[kind]["p95"]
        yield Row(f"{what}: p95, {kind}", pages, ours, limit, "ms", f"≤ {P95_MS:.0f} ms", ours <= P95_MS,
                  "limit: bare FastAPI and SDK, as many clients")  # fmt: skip
    longest, limit = kinds["health"]["longest"], least["health"]["longest"]
    yield Row(f"{what}: longest answer of `health`", pages, longest, limit, "ms", f"≤ {BLOCKED_MS:.0f} ms",
              longest <= BLOCKED_MS, "how long the event loop kept anybody waiting")  # fmt: skip
    yield Row(f"{what}: memory on top after the first {seconds * WARM:.0f} s", pages, grown, None, "MB",
              f"≤ {MOST_GROWN_MB} MB", grown <= MOST_GROWN_MB)  # fmt: skip


def _run(plan: Plan) -> Any:
    """Runs the clients in a process of their own; gives what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.load"],
        input=json.dumps(asdict(plan)), capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def _words(caller: Caller, vault: Path) -> list[tuple[str, list[str]]]:
    """Gives words and the pages that have them, as found before anything is saved."""
    found: list[tuple[str, list[str]]] = []
    line = Line(caller.address)
    for word in dict.fromkeys(word for words in searching.queries(vault).values() for word in words):
        if word.isalpha():
            said = json.loads(line.ask(caller.get(f"/vault/v1/search?q={word}")).body)
            if 0 < said["total"] <= MOST_HITS:
                found.append((word, [row["path"] for row in said["results"]]))
    line.close()
    return found[:WORDS]


class _Memory:
    """Looks at a process's memory once a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: list[float] = []
        self._ended = threading.Event()
        self._looker = threading.Thread(target=self._look)
        self._looker.start()

    def end(self) -> float:
        """Stops looking; gives by how many MB the last quarter lies above the second, by their medians."""
        self._ended.set()
        self._looker.join()
        part = len(self._seen) // 4
        return median(self._seen[-part:]) - median(self._seen[part : 2 * part])

    def _look(self) -> None:
        while not self._ended.wait(1):
            self._seen.append(memory_mb(self._pid))

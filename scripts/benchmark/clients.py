"""Many clients at once beside a person who saves: 32 over MCP on HTTP and 32 of the API, every answer checked."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from benchmark import bare, searching
from benchmark.load import Plan
from benchmark.machine import cpu_seconds, median, memory_mb
from benchmark.person import ROOT, Json, Person
from benchmark.report import Row
from benchmark.wire import Caller, Line

EACH = 32
AGENTS = 4
SECONDS = 60.0
PACE_S = 0.2
"""Seconds between the questions of one client: five a second, which no agent asks for long."""
RUSH_SECONDS = 10.0
WORDS = 200
MOST_HITS = 8
"""Pages that a word may be on: every answer then holds all of them."""
MOST_GROWN_MB = 8
P95_MS = 60.0
BLOCKED_MS = 50.0
KINDS = ("API", "MCP")


def clients(person: Person, vault: Path, pages: int, seconds: float = SECONDS) -> Iterator[Row]:
    """Gives the rows of a minute with 64 clients, beside ten seconds of as many with bare servers.

    Then both once more with clients that ask as soon as they hear: what the servers can do at most.
    """
    with bare.serving("benchmark.bare_doors:app") as (_, address):
        least = _run(Plan(address, RUSH_SECONDS, EACH, PACE_S))
        least_rush = _run(Plan(address, RUSH_SECONDS, EACH))
    with person.owner(vault) as owner:
        tokens = [person.let_in(vault, f"agent:client-{number}") for number in range(AGENTS)]
        words = _words(Caller(owner.address, tokens[0]), vault)
        with _memory_of(owner.pid) as seen:
            used = cpu_seconds(owner.pid)
            said = _run(Plan(owner.address, seconds, EACH, PACE_S, str(vault), tokens, words))
            used = (cpu_seconds(owner.pid) - used) / seconds
        rush = _run(Plan(owner.address, RUSH_SECONDS, EACH, 0.0, str(vault), tokens, words))
    note = (
        f"{_a_second(said):,.0f} answers/s on {os.cpu_count()} cores, of which the owner took {used:.2f} and the "
        f"clients {said['cpu'] / seconds:.2f}; {said['saves']} pages saved meanwhile"
    )
    what = f"{2 * EACH} clients for {seconds:.0f} s, five times a second each"
    yield from _goals(what, pages, (said, least), note)
    part = len(seen) // 4
    grown = median(seen[-part:]) - median(seen[part : 2 * part])
    yield Row(f"{what}: memory, last quarter over second", pages, grown, None, "MB", f"≤ {MOST_GROWN_MB} MB",
              grown <= MOST_GROWN_MB)  # fmt: skip
    yield from _rush(pages, rush, least_rush)


def _goals(what: str, pages: int, of: tuple[Json, Json], note: str) -> Iterator[Row]:
    said, _ = of
    _tell(said)
    yield Row(
        f"{what}: errors and wrong answers", pages, said["wrong"], None, "", "0", not said["wrong"], note
    )
    for kind in KINDS:
        ours, limit = (each["kinds"][kind]["p95"] for each in of)
        yield Row(f"{what}: p95, {kind}", pages, ours, limit, "ms", f"≤ {P95_MS:.0f} ms", ours <= P95_MS,
                  "limit: as many clients of a bare FastAPI route and a bare server of the SDK")  # fmt: skip
    ours, limit = (each["kinds"]["health"]["longest"] for each in of)
    yield Row(f"{what}: longest answer of `health`", pages, ours, limit, "ms", f"≤ {BLOCKED_MS:.0f} ms",
              ours <= BLOCKED_MS, "how long the event loop kept anybody waiting")  # fmt: skip


def _rush(pages: int, said: Json, least: Json) -> Iterator[Row]:
    _tell(said)
    ours, limit = _a_second(said), _a_second(least)
    highest = ", ".join(f"{kind} {said['kinds'][kind]['p95']:.0f} ms" for kind in KINDS)
    yield Row(f"{2 * EACH} clients that never pause: right answers", pages, ours if not said["wrong"] else 0, limit,
              "/s", "–", None, f"p95 {highest}; limit: bare servers")  # fmt: skip


def _a_second(said: Json) -> float:
    return sum(float(said["kinds"][kind]["a_second"]) for kind in KINDS)


def _tell(said: Json) -> None:
    for bad in said["first"]:
        print(bad, file=sys.stderr)


def _run(plan: Plan) -> Json:
    """Runs the clients in a process of their own; gives what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.load"],
        input=json.dumps(asdict(plan)), capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    said: Json = json.loads(done.stdout)
    return said


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


@contextmanager
def _memory_of(pid: int) -> Iterator[list[float]]:
    """Looks at a process's memory once a second; gives what it sees, in MB."""
    seen: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(1):
            seen.append(memory_mb(pid))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield seen
    finally:
        ended.set()
        looker.join()

"""The doors: pages over HTTP beside a bare route, `pcpd mcp` beside a bare server of the SDK, and quiet clients."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmark import bare, searching
from benchmark.machine import cpu_seconds, median, memory_mb, timed
from benchmark.person import ROOT, Agent, Person, Session
from benchmark.report import Row
from benchmark.sessions import Session as HttpSession
from benchmark.wire import Caller, Line

READS = 3_000
TURNS = 5
TURN_S = 2.0
CALLS = 400
HITS = 10
"""Results of a search, as many as a tool gives unless told otherwise."""
STARTS = 5
QUIET = 32
QUIET_S = 30


def doors(person: Person, vault: Path, pages: int) -> Iterator[Row]:
    """Gives the rows of all doors of one owner."""
    words = searching.queries(vault)["a rare word"]
    alone = searching.alone(searching.state_of(person, vault), words, HITS)
    with person.owner(vault) as owner:
        caller = Caller(owner.address, person.let_in(vault, "agent:bench"))
        yield from over_http(caller, vault, pages)
        yield from over_stdio(person, vault, pages, words, alone)
        yield from quiet(owner.pid, caller, pages)


def over_http(caller: Caller, vault: Path, pages: int) -> list[Row]:
    """Reads pages over one connection, in turns with routes that read nothing; the best turn of each counts."""
    asked = _readable(caller, vault)
    with bare.serving("benchmark.bare_doors:app") as (_, address):
        least = Caller(address)
        turns = [
            (
                _rate(caller.address, asked),
                _rate(address, [least.get("/def/page")]),
                _rate(address, [least.get("/async/page")]),
            )
            for _ in range(TURNS)
        ]
    ours, on_a_thread, on_the_loop = (max(each) for each in zip(*turns, strict=True))
    what = "page read over HTTP, token and audit included, 1 connection"
    return [
        Row(what, pages, ours, on_a_thread, "/s", "≥ 0.5 × limit", ours >= 0.5 * on_a_thread,
            "limit: bare FastAPI `def` route"),
        Row(f"{what}, beside a route that never waits", pages, ours, on_the_loop, "/s", "–", None,
            "limit: bare FastAPI `async` route"),
    ]  # fmt: skip


def _readable(caller: Caller, vault: Path) -> list[bytes]:
    """Gives requests for pages that the caller may read, whose answers are checked once."""
    files = [file for file in sorted(vault.rglob("*.md")) if "/." not in str(file.relative_to(vault))]
    line, asked = Line(caller.address), []
    for file in random.Random(1).sample(files, min(len(files), READS)):
        request = caller.page(str(file.relative_to(vault).with_suffix("")))
        answer = line.ask(request)
        if answer.status == 200:
            assert answer.body == file.read_bytes(), file
            asked.append(request)
    line.close()
    return asked


def _rate(address: str, requests: Sequence[bytes]) -> float:
    """Gives how many requests a second one connection has answered."""
    line, count = Line(address), 0
    for request in requests[:50]:
        assert line.ask(request).status == 200
    start = time.perf_counter()
    while time.perf_counter() < start + TURN_S:
        line.ask(requests[count % len(requests)])
        count += 1
    took = time.perf_counter() - start
    line.close()
    return count / took


def over_stdio(person: Person, vault: Path, pages: int, words: Sequence[str], alone: float) -> list[Row]:
    """Starts relays and bare servers, and calls tools of both in turns.

    `alone` is what a search for one of the words takes in the process, in ms.
    """
    bare_env = person.env | {"PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT}"}
    bare_command = [sys.executable, "-m", "benchmark.bare_doors"]

    def relay() -> Session:
        return Agent(person, vault, "agent:bench")

    def least() -> Session:
        return Session(bare_command, bare_env, person.home)

    started, bare_started = _starts(relay), _starts(least)
    agent, server = relay(), least()
    paths = [
        row["path"] for row in agent.call("list_pages", limit=200)["result"]["structuredContent"]["pages"]
    ]
    read, least_read = _calls(agent, server, "read_page", "path", paths)
    found, least_found = _calls(agent, server, "search_memory", "query", words)
    size, bare_size = memory_mb(agent.pid), memory_mb(server.pid)
    agent.close()
    server.close()
    note = "limit: the SDK's server with one tool that does nothing"
    return [
        Row("`pcpd mcp` beside an owner, until it is greeted", pages, started, bare_started, "s",
            "≤ 0.15 s", started <= 0.15, note),
        Row("memory of `pcpd mcp`", pages, size, bare_size, "MB", "≤ 20 MB", size <= 20, note),
        Row("call over stdio: read_page", pages, read, least_read, "ms", "≤ limit + 0.5 ms",
            read <= least_read + 0.5, note),
        Row("call over stdio: search_memory, a rare word", pages, found, least_found + alone, "ms",
            "≤ limit + 0.5 ms", found <= least_found + alone + 0.5,
            f"{note}, and the search in the process, {alone:.2g} ms"),
    ]  # fmt: skip


def _starts(make: Callable[[], Session]) -> float:
    """Gives the least seconds of some starts."""
    taken = []
    for _ in range(STARTS):
        session = make()
        taken.append(session.start_s)
        session.close()
    return min(taken)


def _calls(
    agent: Session, server: Session, tool: str, argument: str, values: Sequence[str]
) -> tuple[float, float]:
    """Gives the milliseconds of a call, ours and the bare server's: the least of the turns' medians."""
    for value in values:
        assert not agent.call(tool, **{argument: value})["result"].get("isError")
    turns = []
    for _ in range(TURNS):
        ours = [
            timed(lambda n=n: agent.call(tool, **{argument: values[n % len(values)]})) for n in range(CALLS)
        ]
        least = [timed(lambda: server.call("read", path="a")) for _ in range(CALLS)]
        turns.append((median(ours), median(least)))
    ours, least = (min(each) for each in zip(*turns, strict=True))
    return ours, least


def quiet(pid: int, caller: Caller, pages: int) -> list[Row]:
    """Opens streams of events and sessions of MCP with a stream each, and leaves them alone."""
    before = memory_mb(pid)
    with ExitStack() as lines:
        for _ in range(QUIET):
            session = HttpSession(caller)
            lines.callback(session.line.close)
            for request in (caller.get("/vault/v1/events"), caller.mcp_stream(session.id)):
                line = Line(caller.address)
                lines.callback(line.close)
                line.send(request)
                assert b" 200 " in line.socket.recv(4096)
        time.sleep(3)
        start = cpu_seconds(pid)
        time.sleep(QUIET_S)
        used = (cpu_seconds(pid) - start) / QUIET_S * 100
        more = memory_mb(pid) - before
    what = f"{QUIET} event streams and {QUIET} MCP sessions, quiet"
    return [
        Row(f"{what}, CPU", pages, used, None, "%", "≤ 0.3 %", used <= 0.3),
        Row(f"{what}, memory on top", pages, more, None, "MB", "–", None),
    ]

"""From an editor's save to an agent's search: one page, many pages at once, and nothing at all."""

import http.client
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from benchmark import bare
from benchmark.limits import SaveToFound
from benchmark.machine import cpu_seconds, median, memory_mb, p95, until
from benchmark.person import Agent, Person
from benchmark.report import Row

SAVES = 200
IDLE_S = 60
_PAGE = "---\ntitle: Saved {n}\ntags: [bench]\n---\n\nThe word is savedword{n}x, and that is all.\n"
_WRITER = """
import pathlib, sys
root, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
for n in range(count):
    if n % 500 == 0:
        folder = root / f"burst-{n // 500:03d}"
        folder.mkdir(parents=True)
    (folder / f"page-{n:05d}.md").write_text(f"# Page {n}\\n\\nBurst word number{n}x.\\n")
"""


def save_to_found(person: Person, vault: Path, pages: int, work: Path) -> list[Row]:
    """Saves pages by rename and asks over MCP until each is found."""
    folder = vault / "inbox"
    samples = []
    with person.owner(vault):
        agent = Agent(person, vault, "agent:bench")
        agent.search("warm up")
        for n in range(SAVES):
            draft = vault / ".draft"
            draft.write_text(_PAGE.format(n=n), encoding="utf-8")
            start = time.perf_counter()
            draft.replace(folder / f"saved-{n}.md")
            while f"saved-{n}" not in agent.search(f"savedword{n}x"):
                if time.perf_counter() - start > 30:
                    raise TimeoutError(f"saved-{n} was never found")
            samples.append((time.perf_counter() - start) * 1000)
        agent.close()
    limit = _limit(work)
    what = "saved in an editor → found over MCP (200 saves)"
    p50, high = median(samples), p95(samples)
    return [
        Row(
            f"{what}, median",
            pages,
            p50,
            median(limit),
            "ms",
            "≤ 10 ms",
            p50 <= 10,
            "limit: inotify and one row",
        ),
        Row(f"{what}, p95", pages, high, p95(limit), "ms", "≤ 40 ms", high <= 40),
    ]


def _limit(work: Path) -> list[float]:
    folder = work / "limit-saves"
    folder.mkdir()
    least = SaveToFound(folder, work / "limit-saves.sqlite")
    return [least.save(f"saved-{n}.md", _PAGE.format(n=n).encode()) for n in range(SAVES)]


def burst(person: Person, vault: Path, count: int) -> list[Row]:
    """Writes many new files at once while an owner watches, and waits until all are indexed."""
    vault.mkdir()
    person.pcpd("init", vault)
    with bare.serving() as (_, address), person.owner(vault) as owner:
        agent = Agent(person, vault, "agent:bench")  # so that what a start imports later is there
        agent.search("warm up")
        agent.close()
        before = memory_mb(owner.pid)
        stalls, bare_stalls = _Stalls(urlsplit(owner.url).netloc), _Stalls(address)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", _WRITER, str(vault), str(count)], check=True)
        wrote_s = time.perf_counter() - start
        until(lambda: person.ask(vault, "status")["pages"] == count, timeout_s=600, pause_s=0.5)
        took_s = time.perf_counter() - start
        longest, bare_longest = stalls.end(), bare_stalls.end()
        more = memory_mb(owner.pid, "VmHWM") - before
        found = person.ask(vault, "search", f"number{count - 1}x")["total"]
        whole = found == 1 and person.is_proved(vault)
    what = f"{count:,} files written at once"
    return [
        Row(
            f"{what}, all searchable", count, took_s, wrote_s, "s", "all found", whole, "limit: writing them"
        ),
        Row(
            f"{what}, longest answer of `health`",
            count,
            longest,
            bare_longest,
            "ms",
            "≤ 50 ms",
            longest <= 50,
            "limit: bare uvicorn",
        ),
        Row(f"{what}, memory on top", count, more, None, "MB", "≤ 60 MB", more <= 60),
    ]


class _Stalls:
    """Asks for a server's health without pause and remembers the longest wait: how long its loop stood."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._longest = 0.0
        self._ended = threading.Event()
        self._asker = threading.Thread(target=self._ask)
        self._asker.start()

    def end(self) -> float:
        """Stops asking and gives the longest answer in milliseconds."""
        self._ended.set()
        self._asker.join()
        return self._longest

    def _ask(self) -> None:
        with closing(http.client.HTTPConnection(self._address, timeout=60)) as connection:
            while not self._ended.wait(0.01):
                start = time.perf_counter()
                connection.request("GET", "/vault/v1/health")
                connection.getresponse().read()
                self._longest = max(self._longest, (time.perf_counter() - start) * 1000)


def idle(person: Person, vault: Path, pages: int) -> list[Row]:
    """Leaves an owner alone for a minute, beside a bare uvicorn that does nothing either."""
    with bare.serving() as (bare_pid, _), person.owner(vault) as owner:
        person.ask(vault, "status")
        time.sleep(5)  # what a start leaves behind: imports, packing
        before, before_bare = cpu_seconds(owner.pid), cpu_seconds(bare_pid)
        time.sleep(IDLE_S)
        used = (cpu_seconds(owner.pid) - before) / IDLE_S * 100
        used_bare = (cpu_seconds(bare_pid) - before_bare) / IDLE_S * 100
        rest, rest_bare = memory_mb(owner.pid), memory_mb(bare_pid)
    note = "limit: bare uvicorn"
    return [
        Row("idle owner for 60 s, CPU", pages, used, used_bare, "%", "≤ 0.3 %", used <= 0.3, note),
        Row("memory at rest", pages, rest, rest_bare, "MB", "≤ 130 MB", rest <= 130),
    ]

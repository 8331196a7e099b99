"""Many clients of one owner in one process that costs little: raw bytes and one selector.

A program: takes a plan as JSON, saves pages as a person would meanwhile, checks every answer, and prints figures.
"""

import heapq
import json
import random
import selectors
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from benchmark.machine import p95
from benchmark.sessions import Session
from benchmark.wire import Answer, Caller, Line

SAVE_S = 0.25
FOUND_S = 2.0
"""How old a save is that must be found by a search: far more than it takes, as two cores have much to do."""
EDITED = 20
SAMPLE = 2_000
PROBE_S = 0.02
_SAVED = "---\ntitle: Edited {n}\n---\n\nnumber {n}\n\nThe word is loadword{n}x, and that is all.\n"


@dataclass(frozen=True)
class Plan:
    """What to do: where, for how long, with how many clients of each kind, and with whose tokens.

    Each client asks every `pace` seconds, or as soon as it has heard where that takes longer.
    `words` are searched for, and found on those pages. Without a vault the servers are those of `bare_doors`.
    """

    address: str
    seconds: float
    each: int
    pace: float = 0.0
    vault: str = ""
    tokens: Sequence[str] = ("",)
    words: Sequence[tuple[str, Sequence[str]]] = ()


class Asked(NamedTuple):
    """One question: `read`, `search` or `bare`, of what, and what a right answer is."""

    act: str
    what: str
    is_right: Callable[[Any], bool]


class Nobody:
    """Asks bare servers, of which nothing is known."""

    saves = 0

    def save(self) -> None:
        """Saves nothing."""

    def question(self) -> Asked:
        """Gives the next question, which is the same as ever."""
        return _ANYTHING


class Person:
    """Saves pages by rename, and knows what an answer must hold."""

    def __init__(self, plan: Plan) -> None:
        self._vault = Path(plan.vault)
        self._folder = self._vault / "edited"
        self._folder.mkdir(exist_ok=True)
        self._random = random.Random(7)
        files = [file for file in sorted(self._vault.rglob("*.md")) if self._is_still(file)]
        self._still = {
            file: file.read_bytes() for file in self._random.sample(files, min(SAMPLE, len(files)))
        }
        self._words = plan.words
        self._begun = 0
        self._saved: list[float] = []
        for _ in range(EDITED):
            self.save()

    def save(self) -> None:
        """Saves the next page."""
        self._begun += 1
        draft = self._vault / ".draft"
        draft.write_text(_SAVED.format(n=self._begun), encoding="utf-8")
        draft.replace(self._folder / f"note-{self._begun % EDITED}.md")
        self._saved.append(time.perf_counter())

    @property
    def saves(self) -> int:
        """How many pages were saved."""
        return len(self._saved)

    def question(self) -> Asked:
        """Gives the next question: most read a page, some search, some of both look for what was just saved."""
        kinds = (self._read, self._read_edited, self._search, self._search_edited)
        return self._random.choices(kinds, (50, 20, 20, 10))[0]()

    def _is_still(self, file: Path) -> bool:
        name = str(file.relative_to(self._vault))
        return not name.startswith(("edited/", ".")) and "/." not in name

    def _read(self) -> Asked:
        file, data = self._random.choice(list(self._still.items()))
        path = str(file.relative_to(self._vault).with_suffix(""))
        return Asked("read", path, lambda said: said == data)

    def _read_edited(self) -> Asked:
        """What is read is no older than what was saved before it was asked for."""
        least = self.saves
        path = f"edited/note-{least % EDITED}"

        def is_right(said: bytes) -> bool:
            number = int(said.partition(b"number ")[2].partition(b"\n")[0])
            return least <= number <= self._begun and number % EDITED == least % EDITED

        return Asked("read", path, is_right)

    def _search(self) -> Asked:
        word, paths = self._random.choice(self._words)
        return Asked("search", word, lambda said: set(said) == set(paths))

    def _search_edited(self) -> Asked:
        """What was saved a while ago is found, unless it was saved over meanwhile."""
        before = time.perf_counter() - FOUND_S
        number = next(
            (n for n in range(self.saves, self.saves - EDITED, -1) if self._saved[n - 1] < before), 0
        )
        if not number:
            return self._read()
        path = f"edited/note-{number % EDITED}"
        return Asked(
            "search", f"loadword{number}x", lambda said: said == [path] or self._begun - number >= EDITED
        )


class Api:
    """A client of the HTTP API."""

    kind = "API"

    def __init__(self, caller: Caller) -> None:
        self.line, self._caller = Line(caller.address), caller

    def request(self, asked: Asked) -> bytes:
        """Gives the bytes of a question."""
        if asked.act == "read":
            return self._caller.page(asked.what)
        if asked.act == "bare":
            return self._caller.get("/def/page")
        return self._caller.get(f"/vault/v1/search?q={quote(asked.what)}")

    def said(self, asked: Asked, answer: Answer) -> object:
        """Gives what an answer says: bytes of a page, or paths."""
        if asked.act == "search":
            return [row["path"] for row in json.loads(answer.body)["results"]]
        return answer.body


class Mcp:
    """A client of MCP over HTTP."""

    kind = "MCP"

    def __init__(self, caller: Caller) -> None:
        self._session = Session(caller)
        self.line = self._session.line

    def request(self, asked: Asked) -> bytes:
        """Gives the bytes of a question."""
        tool, argument = _TOOLS[asked.act]
        return self._session.request("tools/call", name=tool, arguments={argument: asked.what})

    def said(self, asked: Asked, answer: Answer) -> object:
        """Gives what an answer says: bytes of a page, or paths."""
        data = self._session.result(answer)["structuredContent"]
        if asked.act == "search":
            return [row["path"] for row in data["results"]]
        return data["content"].encode() if asked.act == "read" else data


class Health:
    """Asks for health, now and then: how long the event loop lets others wait."""

    kind = "health"

    def __init__(self, caller: Caller) -> None:
        self.line = Line(caller.address)
        self._request = caller.get("/vault/v1/health" if caller.token else "/async/page")

    def request(self, _asked: Asked) -> bytes:
        """Gives the bytes of a question."""
        return self._request

    def said(self, _asked: Asked, _answer: Answer) -> object:
        """Gives nothing: that it was answered is enough."""
        return None


Client = Api | Mcp | Health
_ANYTHING = Asked("bare", "", lambda _: True)
_TOOLS = {"read": ("read_page", "path"), "search": ("search_memory", "query"), "bare": ("read", "path")}


@dataclass
class Figures:
    """What was measured: milliseconds of each kind, and what went wrong."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)

    def as_json(self, saves: int, seconds: float) -> str:
        """Gives them as JSON."""
        kinds = {
            kind: {"count": len(all_), "a_second": len(all_) / seconds, "p50": sorted(all_)[len(all_) // 2],
                   "p95": p95(all_), "longest": max(all_)}
            for kind, all_ in self.taken.items()
        }  # fmt: skip
        return json.dumps(
            {"kinds": kinds, "wrong": len(self.wrong), "first": self.wrong[:5], "saves": saves,
             "cpu": time.process_time()}
        )  # fmt: skip


class Load:
    """The clients at work."""

    def __init__(self, plan: Plan, person: Person | Nobody) -> None:
        callers = [Caller(plan.address, token) for token in plan.tokens]
        self._person, self.figures = person, Figures()
        self._selector = selectors.DefaultSelector()
        self._asked: dict[Client, tuple[Asked, float]] = {}
        self._due: list[tuple[float, int]] = []
        self._pace = plan.pace
        self._clients: list[Client] = [Api(callers[n % len(callers)]) for n in range(plan.each)]
        self._clients += [Mcp(callers[n % len(callers)]) for n in range(plan.each)]
        self._health = Health(callers[0])
        for client in (*self._clients, self._health):
            self._selector.register(client.line.socket, selectors.EVENT_READ, client)

    def run(self, seconds: float) -> None:
        """Keeps every client asking."""
        end = time.perf_counter() + seconds
        save_at = probe_at = now = time.perf_counter()
        self._due = [(now + self._pace * n / len(self._clients), n) for n in range(len(self._clients))]
        while (now := time.perf_counter()) < end:
            while self._due and self._due[0][0] <= now:
                self._ask(self._clients[heapq.heappop(self._due)[1]], self._person.question())
            if now >= save_at:
                self._person.save()
                save_at += SAVE_S
            if now >= probe_at and self._health not in self._asked:
                self._ask(self._health, _ANYTHING)
                probe_at = now + PROBE_S
            until = min(save_at, probe_at, self._due[0][0] if self._due else end)
            for key, _ in self._selector.select(max(until - time.perf_counter(), 0)):
                self._hear(key.data)

    def _ask(self, client: Client, asked: Asked) -> None:
        self._asked[client] = asked, time.perf_counter()
        client.line.send(client.request(asked))

    def _hear(self, client: Client) -> None:
        answer = client.line.hear()
        if answer is None:
            return
        asked, at = self._asked.pop(client)
        self.figures.taken[client.kind].append((time.perf_counter() - at) * 1000)
        try:
            is_right = answer.status == 200 and asked.is_right(client.said(asked, answer))
        except (ValueError, KeyError) as error:
            is_right, answer = False, answer._replace(body=repr(error).encode())
        if not is_right:
            self.figures.wrong.append(
                f"{client.kind} {asked.act} {asked.what}: {answer.status} {answer.body[:200]!r}"
            )
        if client is not self._health:
            heapq.heappush(self._due, (at + self._pace, self._clients.index(client)))


def main() -> int:
    """Runs the plan in standard input."""
    plan = Plan(**json.load(sys.stdin))
    person = Person(plan) if plan.vault else Nobody()
    time.sleep(FOUND_S)
    load = Load(plan, person)
    load.run(plan.seconds)
    print(load.figures.as_json(person.saves, plan.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())

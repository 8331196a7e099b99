"""An owner's doors in this process, for their tests: a real memory behind real sockets, on a thread of its own."""

import asyncio
import http.client
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pcpd.api.app import build
from pcpd.api.caller import Served
from pcpd.api.serve import serve
from pcpd.gate.threads import Shares, Threads
from pcpd.ledger import tokens
from pcpd.mcp_server.http_door import HttpDoor
from pcpd.mcp_server.relay_door import RelayDoor
from pcpd.mcp_server.sessions import Limits
from tests.vaults import Opened
from tests.waiting import LONGEST_S, until

THREADS = 16


@dataclass(frozen=True)
class Answer:
    """What an HTTP door answered."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.data)

    @property
    def code(self) -> str:
        """The code of a problem; the answer must be one."""
        assert self.headers["content-type"] == "application/problem+json", self.data
        said = self.json()
        assert said["status"] == self.status
        return str(said["code"])


class _Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=LONGEST_S)
        self._path = path

    def connect(self) -> None:
        """Connects."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LONGEST_S)
        self.sock.connect(os.fspath(self._path))


@dataclass
class Doors:
    """The HTTP door on a Unix socket and on TCP, and the relay door, before one memory."""

    opened: Opened
    folder: Path
    greeting_s: float = 10.0
    mcp_limits: Limits = field(default_factory=Limits)
    port: int = 0
    traffic: int = 0
    connected: int = 0
    handed_over: list[str] = field(default_factory=list)
    ended: list[bool] = field(default_factory=list)
    relays: "list[Relayed]" = field(default_factory=list)
    mcp: HttpDoor | None = None

    @property
    def http_socket(self) -> Path:
        """Where the person's requests go."""
        return self.folder / "socket"

    @property
    def relay_socket(self) -> Path:
        """Where relays connect."""
        return self.folder / "mcp.sock"

    @property
    def served(self) -> Served:
        """What the routes see of this owner."""
        return Served(
            memory=self.opened.memory,
            describe=lambda: {
                "pid": 1,
                "version": "0",
                "url": f"http://127.0.0.1:{self.port}",
                "idle_exit_s": None,
                "watch": "events",
            },
            hand_over=self._hand_over,
            end=lambda: self.ended.append(True),
            until=self._ended,
            threads=Shares(THREADS, "api"),
        )

    def _hand_over(self, version: str) -> bool:
        self.handed_over.append(version)
        return True

    def start(self) -> None:
        """Serves; returns when the doors are open."""
        self._open, self._failures = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._open.wait(LONGEST_S)
        assert not self._failures
        self.ask("GET", "/vault/v1/health", tcp=True)  # now both of its sockets are taken

    def close(self) -> None:
        """Ends the doors. Nothing may have been left unhandled on their loop."""
        with suppress(RuntimeError):  # they ended already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(LONGEST_S)
        assert not self._thread.is_alive()
        assert not self._failures, self._failures

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - told by `close`
            self._failures.append(error)
        finally:
            self._open.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(
            lambda _loop, said: self._failures.append(said.get("exception") or RuntimeError(said["message"]))
        )
        unix, relays = self._bound(self.http_socket), self._bound(self.relay_socket)
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        door = RelayDoor(
            self.opened.memory, Threads(THREADS, "relays"), self._count, greeting_s=self.greeting_s
        )
        await door.start(relays)
        mcp = self.mcp = HttpDoor(self.opened.memory, Threads(THREADS, "mcp"), self.mcp_limits)
        mcp_door = asyncio.create_task(mcp.serve())
        http_door = asyncio.create_task(serve(build(self.served, mcp), [unix, tcp], self._ended))
        self._loop.call_later(0, self._open.set)
        await self._stop.wait()
        await door.close()
        mcp_door.cancel()
        await http_door

    async def _ended(self) -> None:
        await self._stop.wait()

    def _bound(self, path: Path) -> socket.socket:
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(os.fspath(path))
        listening.listen(256)
        return listening

    def _count(self, by: int) -> None:
        self.traffic += by
        self.connected += max(by, 0)

    def ask(
        self,
        method: str,
        target: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        tcp: bool = False,
    ) -> Answer:
        """Sends one request. A body that is no bytes is sent as JSON; `tcp` asks the loopback port."""
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST_S)
            if tcp
            else _Unix(self.http_socket)
        )
        try:
            connection.request(method, target, body=body, headers=sent)
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, response.read())
        finally:
            connection.close()

    def vault(self, method: str, route: str, **options: Any) -> Answer:
        """Sends one request to a route below `/vault/v1/` on the person's socket."""
        return self.ask(method, f"/vault/v1/{route}", **options)

    def token(self, principal: str = "agent:claude") -> str:
        """Makes a token."""
        return tokens.create(self.opened.memory.ledger, principal).token

    def relay(self, **greeting: Any) -> "Relayed":
        """Connects to the relay door and says something about who comes, if anything."""
        self.relays.append(Relayed(self, greeting))
        return self.relays[-1]


class Relayed:
    """The owner's end of what `pcpd mcp` does: a connection on which lines of JSON go both ways."""

    def __init__(self, doors: Doors, greeting: Mapping[str, Any]) -> None:
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(LONGEST_S)
        self.link.connect(os.fspath(doors.relay_socket))
        self._reading = self.link.makefile("rb")
        self._number = 0
        if greeting:
            self.send({"pcpd": "1", **greeting})

    def send(self, *messages: Any) -> None:
        """Sends lines: bytes as they are, anything else as JSON."""
        for message in messages:
            self.link.sendall(
                (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"
            )

    def hear(self) -> Any:
        """Waits for the next line; None at the end."""
        line = self._reading.readline()
        return json.loads(line) if line else None

    def begin(self, version: str = "2025-06-18") -> Any:
        """Hears that the greeting was good, and shakes hands; gives the answer to `initialize`."""
        assert "error" not in self.hear()
        info = {"name": "test", "version": "1"}
        said = self.request("initialize", protocolVersion=version, capabilities={}, clientInfo=info)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said["result"]

    def request(self, method: str, **params: Any) -> Any:
        """Asks, and waits for the answer."""
        number = self.ask(method, **params)
        said = self.hear()
        assert said["id"] == number, said
        return said

    def ask(self, method: str, **params: Any) -> int:
        """Asks, and gives the request's id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def call(self, tool: str, **arguments: Any) -> Any:
        """Calls a tool; gives its result."""
        return self.request("tools/call", name=tool, arguments=arguments)["result"]

    def data(self, tool: str, **arguments: Any) -> Any:
        """Calls a tool that must succeed; gives its answer as data."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def close(self) -> None:
        """Hangs up."""
        self._reading.close()
        self.link.close()


@pytest.fixture
def make_doors(make_opened: Callable[..., Opened]) -> Iterator[Callable[..., Doors]]:
    """Gives what opens a vault with some pages and serves it."""
    made: list[tuple[Doors, Path]] = []

    def make(
        pages: Mapping[str, str | bytes] | None = None,
        *,
        greeting_s: float = 10.0,
        mcp_limits: Limits | None = None,
    ) -> Doors:
        opened = make_opened(f"v{len(made)}")
        for file, text in (pages or {}).items():
            opened.save(file, text)
        opened.open()
        opened.memory.health.ready = True
        folder = Path(tempfile.mkdtemp(prefix="pcpd-", dir="/tmp"))
        doors = Doors(opened, folder, greeting_s, mcp_limits or Limits())
        made.append((doors, folder))
        doors.start()
        return doors

    yield make
    for doors, folder in made:
        for relayed in doors.relays:
            relayed.close()
        doors.close()
        until(lambda doors=doors: doors.traffic == 0)  # type: ignore[misc]
        shutil.rmtree(folder)


@pytest.fixture
def doors(make_doors: Callable[..., Doors]) -> Doors:
    """The doors of a vault with one page."""
    return make_doors({"boiler.md": "---\ntitle: Boiler\n---\nGas or heat pump?\n"})

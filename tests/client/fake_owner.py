"""An owner for tests of its clients: it answers on the two sockets what it is told, and can be killed."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pcpd import __version__
from pcpd.settings import MCP_SOCKET, SOCKET

Message = dict[str, Any]


class Die(Exception):
    """Raised by a handler to kill the owner in the middle of an exchange."""


@dataclass
class Asked:
    """One request, as the owner saw it."""

    method: str
    route: str
    query: Mapping[str, str]
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


Reply = tuple[int, bytes | object, Mapping[str, str]]
Handler = Callable[[Asked], Reply]


def ok(value: bytes | object, headers: Mapping[str, str] | None = None) -> Reply:
    """Gives an answer of status 200."""
    return 200, value, headers or {}


def problem(status: int, code: str, detail: str, hint: str = "", details: object = None) -> Reply:
    """Gives a problem document."""
    said = {
        "title": "x",
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
        "details": details or {},
    }
    return status, said, {"content-type": "application/problem+json"}


@dataclass
class FakeOwner:
    """Serves a folder's two sockets until `kill`."""

    folder: Path
    http: Handler = lambda asked: problem(404, "page.not-found", f"there is no {asked.route}")
    mcp: Callable[[Message], list[Message]] = lambda message: []
    version: str = __version__
    is_ready: bool = True
    gives_way: bool = False
    greeting: Message | None = field(default_factory=lambda: {"ok": True})
    asked: list[Asked] = field(default_factory=list)
    greeted: list[Message] = field(default_factory=list)
    heard: list[Message] = field(default_factory=list)
    links: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Listens, replacing what a dead owner left."""
        for name in (SOCKET, MCP_SOCKET):
            (self.folder / name).unlink(missing_ok=True)
        owner = self
        self.server = _Server(str(self.folder / SOCKET), _handler(owner))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.door.bind(str(self.folder / MCP_SOCKET))
        self.door.listen()
        threading.Thread(target=self._serve_relays, daemon=True).start()

    def kill(self) -> None:
        """Ends as a killed process does: connections break, the sockets' files stay."""
        for listening in (self.door, self.server.socket, *self.links):
            with contextlib.suppress(OSError):  # closed already
                listening.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.server.socket.close()
        threading.Thread(target=self.server.shutdown, daemon=True).start()

    def answer(self, asked: Asked) -> Reply:
        """Answers what every owner answers, and asks the test for the rest."""
        self.asked.append(asked)
        if asked.route == "health":
            return ok(
                {"ok": True, "version": self.version, "ready": self.is_ready, "pid": id(self), "vault": "v"}
            )
        if asked.route == "handover":
            return ok({"ends": self.gives_way})
        if asked.route == "work":
            return ok({"work": None})
        return self.http(asked)

    def say(self, message: Message) -> None:
        """Sends a message of the owner's own to every relay."""
        for link in self.links:
            link.sendall(json.dumps(message).encode() + b"\n")

    def _serve_relays(self) -> None:
        while True:
            try:
                link, _ = self.door.accept()
            except OSError:
                return
            self.links.append(link)
            threading.Thread(target=self._serve_relay, args=(link,), daemon=True).start()

    def _serve_relay(self, link: socket.socket) -> None:
        try:
            with link, link.makefile("rb") as lines:
                self.greeted.append(json.loads(lines.readline()))
                if self.greeting:
                    link.sendall(json.dumps(self.greeting).encode() + b"\n")
                if self.greeting and "error" in self.greeting:
                    return
                for line in lines:
                    message = json.loads(line)
                    self.heard.append(message)
                    for answer in self.mcp(message):
                        link.sendall(json.dumps(answer).encode() + b"\n")
        except Die:
            self.kill()
        except (OSError, ValueError):
            return


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: clients that go away are part of the tests."""


def _handler(owner: FakeOwner) -> type[BaseHTTPRequestHandler]:
    class Serve(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            route = unquote(parts.path.removeprefix("/vault/v1/"), errors="surrogateescape")
            try:
                status, value, more = owner.answer(Asked(self.command, route, query, body, headers))
            except Die:
                self.close_connection = True
                owner.kill()
                return
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, header in {"content-length": str(len(data)), **more}.items():
                self.send_header(name, header)
            self.end_headers()
            self.wfile.write(data)

        def address_string(self) -> str:
            """Unix sockets have no address."""
            return "local"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Says nothing."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Serve, f"do_{method}", Serve._serve)
    return Serve

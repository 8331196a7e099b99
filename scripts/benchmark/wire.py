"""HTTP/1.1 at next to no cost: requests as bytes, answers told apart from what comes after, one connection each.

What measures must take less than what is measured: this costs some 20 us a call, httpx or the SDK's client a
millisecond.
"""

import socket
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

MCP_VERSION = "2025-06-18"
_PIECE = 256 * 1024


class Answer(NamedTuple):
    """A status, the head in lower case, and the body whole."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str:
        """Gives a header's value, or nothing."""
        _, found, rest = self.head.partition(f"\r\n{name}: ".encode())
        return rest.partition(b"\r\n")[0].decode() if found else ""


def answer_in(buffer: bytes) -> Answer | None:
    """Gives the answer that a buffer holds, once it is whole."""
    head, found, body = buffer.partition(b"\r\n\r\n")
    if not found:
        return None
    status, head = int(head[9:12]), head.lower()
    _, has_length, rest = head.partition(b"\r\ncontent-length: ")
    if has_length:
        return Answer(status, head, body) if len(body) >= int(rest.partition(b"\r\n")[0]) else None
    if b"\r\ntransfer-encoding: chunked" in head:
        return Answer(status, head, _unchunked(body)) if body.endswith(b"0\r\n\r\n") else None
    return Answer(status, head, b"")


def _unchunked(body: bytes) -> bytes:
    pieces: list[bytes] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        if not int(size, 16):
            return b"".join(pieces)
        pieces.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]


@dataclass(frozen=True)
class Caller:
    """Who asks, and where: makes requests."""

    address: str
    token: str = ""

    def get(self, target: str, more: str = "") -> bytes:
        """Gives a request for a target; `more` are further header lines."""
        return f"GET {target} HTTP/1.1\r\n{self._head()}{more}\r\n".encode()

    def page(self, path: str) -> bytes:
        """Gives a request for a page."""
        return self.get(f"/vault/v1/pages/{quote(path)}")

    def mcp(self, body: bytes, session: str = "") -> bytes:
        """Gives a request to the MCP endpoint."""
        head = (
            f"POST /mcp HTTP/1.1\r\n{self._head()}{_of(session)}Accept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def mcp_stream(self, session: str) -> bytes:
        """Gives a request for what a session's server has to say of itself."""
        return self.get("/mcp", f"{_of(session)}Accept: text/event-stream\r\n")

    def _head(self) -> str:
        shown = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return f"Host: {self.address}\r\n{shown}"


def _of(session: str) -> str:
    return f"Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: {MCP_VERSION}\r\n" if session else ""


class Line:
    """One connection that is kept."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._heard = b""

    def send(self, request: bytes) -> None:
        """Sends a request."""
        self._heard = b""
        self.socket.sendall(request)

    def hear(self) -> Answer | None:
        """Takes what has come; gives the answer once it is whole. Raises ConnectionError at the end."""
        piece = self.socket.recv(_PIECE)
        if not piece:
            raise ConnectionError(f"hung up after {self._heard[:200]!r}")
        self._heard += piece
        return answer_in(self._heard)

    def ask(self, request: bytes) -> Answer:
        """Sends a request and waits for its answer."""
        self.send(request)
        while (answer := self.hear()) is None:
            pass
        return answer

    def close(self) -> None:
        """Hangs up."""
        self.socket.close()

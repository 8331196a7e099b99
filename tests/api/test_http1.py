"""What stands on a connection beside requests of the usual kind: nothing is served twice, mixed up, or without end."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator

import pytest
import uvicorn
from uvicorn.server import ServerState

from pcpd.api import http1
from pcpd.gate.knock import Receive, Scope, Send
from tests.doors import Doors
from tests.waiting import LONGEST_S

HEALTH = b"GET /vault/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = HEALTH[:-2] + b"Connection: close\r\n\r\n"
MALFORMED = b"\x00 /\r\n\r\n"


@pytest.fixture
def link(doors: Doors) -> Iterator[socket.socket]:
    """The person's connection."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(LONGEST_S)
        link.connect(os.fspath(doors.http_socket))
        yield link


def heard(link: socket.socket) -> bytes:
    """Gives all that is said until the end."""
    said = b""
    try:
        while piece := link.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def statuses(said: bytes) -> list[int]:
    """Gives the status of each answer."""
    return [int(piece[:3]) for piece in said.split(b"HTTP/1.1 ")[1:]]


def test_several_requests_at_once_are_answered_in_their_order(link: socket.socket) -> None:
    """Also where each comes in pieces."""
    for byte in HEALTH.replace(b"health", b"nothing") + HEALTH:
        link.sendall(bytes([byte]))
    link.sendall(HEALTH + LAST)
    assert statuses(heard(link)) == [404, 200, 200, 200]


def test_only_so_many_requests_wait_for_one_another(link: socket.socket) -> None:
    """Who sends thousands at once is hung up on: each would be held in memory."""
    link.sendall(HEALTH * 1000)
    assert len(statuses(heard(link))) < 1000


@pytest.mark.parametrize(
    "endless", [b"GET /" + b"a" * 1000, b"GET / HTTP/1.1\r\nx: " + b"a" * 1000, b"\r\n" * 500]
)
def test_a_head_without_end_is_refused(link: socket.socket, endless: bytes) -> None:
    """In its first line, in a header, or before it begins."""
    link.sendall(endless)
    try:
        for _ in range(2 * http1.HEAD_BYTES // 1000):
            link.sendall(endless[-2:] * 500)
    except (BrokenPipeError, ConnectionResetError):
        return  # it was hung up on while it was still being sent
    head, _, body = heard(link).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "http.malformed"


def test_what_is_no_request_does_not_stand_in_for_the_answer_to_one(link: socket.socket) -> None:
    """The request before it is answered, and that is the end."""
    link.sendall(HEALTH + MALFORMED + HEALTH)
    assert statuses(heard(link)) == [200]


def test_a_body_that_breaks_off_is_refused_and_changes_nothing(doors: Doors, link: socket.socket) -> None:
    """Where a piece is none; nothing was answered yet."""
    link.sendall(
        b"PUT /vault/v1/pages/new HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/markdown\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno number\r\n"
    )
    assert statuses(heard(link)) == [400]
    assert not (doors.opened.root / "new.md").exists()


def test_what_comes_after_a_body_is_no_header() -> None:
    """Nobody looks there for who calls or what is meant: an app that has read the body sees what it saw before."""
    seen: list[list[bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.append([name for name, _ in scope["headers"]])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def main() -> bytes:
        ours, theirs = socket.socketpair()
        config = uvicorn.Config(app, lifespan="off", log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(
            lambda: http1.Http1(config, ServerState(), {}), ours
        )
        theirs.settimeout(LONGEST_S)
        with theirs:
            head = b"PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            theirs.sendall(head + b"3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
            said = await asyncio.to_thread(heard, theirs)
        transport.close()
        return said

    assert statuses(asyncio.run(main())) == [200]
    assert seen == [[b"host", b"connection", b"transfer-encoding"]]


def test_a_wish_for_another_protocol_is_passed_over(link: socket.socket) -> None:
    """As Java's client has it in its first request; that one is answered, and those that follow too."""
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    link.sendall((HEALTH[:-2] + wish) * 3 + HEALTH)
    link.sendall(LAST)
    assert statuses(heard(link)) == [200] * 5


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 3\r\nContent-Length: 4\r\n",
        b"Content-Length : 3\r\n", b"Content-Length: +3\r\n", b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length: 3\r\n folded\r\n", b"x: a\nContent-Length: 3\r\n", b"Host: evil.example\r\n", b"x: \x00\r\n",
    ],
)  # fmt: skip
def test_a_request_whose_end_two_readers_could_see_elsewhere_is_refused(
    link: socket.socket, doors: Doors, head: bytes
) -> None:
    """No part of one can be smuggled in as another."""
    smuggled = b"PUT /vault/v1/pages/new HTTP/1.1\r\nHost: localhost\r\n"
    link.sendall(smuggled + head + b"\r\n0\r\n\r\n" + LAST)
    assert statuses(heard(link))[0] == 400
    assert not (doors.opened.root / "new.md").exists()

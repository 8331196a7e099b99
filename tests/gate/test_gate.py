"""The gate in front of an app that would serve anything: what reaches it, and what is answered in its place."""

import asyncio
from collections.abc import Iterable
from typing import Any

from pcpd.errors import PcpError
from pcpd.gate.knock import BODY_LIMIT, App, Gate, Knock, Message, Receive, Scope, Send

PIECE = 1024 * 1024


def refuse(error: PcpError, status: int) -> App:
    """Answers with the code alone."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": error.code.encode()})

    return app


async def person(knock: Knock) -> object:
    """Takes everybody for the person."""
    return "person"


class Reading:
    """An app that reads a body whole and answers with its size; it notes that it was reached."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves."""
        while True:
            self.heard.append(await receive())
            if not self.heard[-1].get("more_body"):
                break
        size = sum(len(each.get("body", b"")) for each in self.heard)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(size).encode()})


def served(app: Reading, pieces: Iterable[bytes], **changes: Any) -> tuple[int, bytes]:
    """Sends a request with a body in pieces; gives the only status and the text of the answer."""
    scope: dict[str, Any] = {
        "type": "http", "path": "/x", "headers": [(b"host", b"localhost")], "server": ("/s", None), **changes,
    }  # fmt: skip
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    said: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(Gate(app, refuse, person)(scope, receive, send))
    (status,) = [each["status"] for each in said if each["type"] == "http.response.start"]
    return status, b"".join(each.get("body", b"") for each in said)


def test_body_without_a_length_is_counted_as_it_comes() -> None:
    """At the limit it passes; over it, the app sees a client that has gone, and only the refusal is answered."""
    pieces = [b"x" * PIECE] * (BODY_LIMIT // PIECE)
    assert served(Reading(), pieces) == (200, str(BODY_LIMIT).encode())
    app = Reading()
    assert served(app, [*pieces, b"x"]) == (413, b"http.too-large")
    assert app.heard[-1]["type"] == "http.disconnect"


def test_length_that_lies_does_not_lift_the_limit() -> None:
    """What comes is counted, whatever was said."""
    headers = [(b"host", b"localhost"), (b"content-length", b"3")]
    pieces = [b"x" * PIECE] * (BODY_LIMIT // PIECE + 1)
    assert served(Reading(), pieces, headers=headers) == (413, b"http.too-large")


def test_app_that_reads_on_never_hears_the_rest() -> None:
    """Nothing after the refusal is taken from the connection."""

    class Stubborn(Reading):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            for _ in range(BODY_LIMIT // PIECE + 20):
                self.heard.append(await receive())
            await send({"type": "http.response.start", "status": 200, "headers": []})

    app = Stubborn()
    assert served(app, [b"x" * PIECE] * (BODY_LIMIT // PIECE + 10))[0] == 413
    assert sum(len(each.get("body", b"")) for each in app.heard) <= BODY_LIMIT


def test_refused_request_never_reaches_the_app() -> None:
    """Nor is its body read."""
    app = Reading()
    assert served(app, [], headers=[(b"host", b"evil.example")]) == (421, b"http.foreign-host")
    assert app.heard == []


def test_nothing_but_http_is_served() -> None:
    """A WebSocket is hung up on, with or without a good Host."""
    app, said = Reading(), list[Message]()

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        said.append(message)

    scope = {
        "type": "websocket",
        "path": "/",
        "headers": [(b"host", b"localhost")],
        "server": ("127.0.0.1", 1),
    }
    asyncio.run(Gate(app, refuse, person)(scope, receive, send))
    assert [each["type"] for each in said] == ["websocket.close"]

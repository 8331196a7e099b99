"""The gate in front of an app that would serve anything: what reaches it, and what is answered in its place."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from pcpd.errors import Denied, PcpError
from pcpd.gate import guard
from pcpd.gate.guard import Gate
from pcpd.gate.knock import BODY_LIMIT, CALLER, App, Knock, Message, Receive, Scope, Send

PIECE = 1024 * 1024


def refuse(error: PcpError, status: int) -> App:
    """Answers with the code alone."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": error.code.encode()})

    return app


class Keeper:
    """Takes everybody for the person, but those who show a bad token; keeps what it was told to note."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, object | None]] = []

    async def caller(self, knock: Knock) -> object:
        """Tells who knocks."""
        if knock.authorization == "bad":
            raise Denied("token.refused", "no")
        return "person"

    async def note(self, knock: Knock, error: PcpError, caller: object | None) -> None:
        """Notes."""
        self.noted.append((error.code, caller))


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


CHUNKED = [(b"host", b"localhost"), (b"transfer-encoding", b"chunked")]


def served(
    app: Reading, pieces: Iterable[bytes], keeper: Keeper | None = None, **changes: Any
) -> tuple[int, bytes]:
    """Sends a request with a body in pieces; gives the only status and the text of the answer."""
    scope: dict[str, Any] = {
        "type": "http", "method": "PUT", "path": "/x", "headers": CHUNKED, "server": ("/s", None), **changes,
    }  # fmt: skip
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})
    said: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(Gate(app, refuse, keeper or Keeper())(scope, receive, send))
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


def test_refused_request_never_reaches_the_app_and_is_noted() -> None:
    """Nor is its body read."""
    for headers, answer, caller in (
        ([(b"host", b"evil.example")], (421, b"http.foreign-host"), None),
        ([(b"host", b"localhost"), (b"origin", b"null")], (403, b"http.foreign-origin"), None),
        ([(b"host", b"localhost"), (b"authorization", b"bad")], (401, b"token.refused"), None),
        ([*CHUNKED, (b"content-type", b"text/html")], (415, b"http.media-type"), "person"),
    ):
        app, keeper = Reading(), Keeper()
        assert served(app, [], keeper, headers=headers) == answer
        assert app.heard == []
        assert keeper.noted == [(answer[1].decode(), caller)]


def test_only_a_closed_list_is_open_to_who_proves_nothing() -> None:
    """Nothing that looks like it, and nothing unknown."""
    bad = [(b"host", b"localhost"), (b"authorization", b"bad")]
    assert served(Reading(), [], path="/vault/v1/health", headers=bad)[0] == 200
    for path in (
        "/", "", "/vault/v1", "/vault/v1/health/", "/vault/v1/health/x", "/vault/v1/healthz", "//vault/v1/health",
        "/VAULT/v1/health", "/vault/v1/../v1/health", "http://127.0.0.1/vault/v1/health", "/mcp", "/vault/v1/health\n",
        "/metrics", "/openapi.json",
    ):  # fmt: skip
        assert served(Reading(), [], path=path, headers=bad) == (401, b"token.refused"), path


def test_app_hears_who_calls_and_nothing_of_an_earlier_request() -> None:
    """Where nobody needs to say who they are, nobody is known."""
    seen: list[object] = []

    class Looking(Reading):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope.get("state", {}).get(CALLER))
            await super().__call__(scope, receive, send)

    app = Looking()
    served(app, [])
    served(app, [], path="/vault/v1/health")
    assert seen == ["person", None]


@pytest.mark.parametrize("server", [("127.0.0.1", 80), ("/s", None)])
def test_body_that_does_not_come_is_waited_for_so_long(
    monkeypatch: pytest.MonkeyPatch, server: tuple[str, int | None]
) -> None:
    """Over loopback; the person's own programs may take their time."""
    monkeypatch.setattr(guard, "BODY_S", 0.0)
    said, keeper = list[Message](), Keeper()
    scope = {"type": "http", "method": "PUT", "path": "/x", "headers": CHUNKED, "server": server}
    pieces = iter([b"half", b""])

    async def receive() -> Message:
        for _ in range(3):
            await asyncio.sleep(0)
        piece = next(pieces)
        return {"type": "http.request", "body": piece, "more_body": piece != b""}

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(Gate(Reading(), refuse, keeper)(scope, receive, send))
    is_slow = server[1] is not None
    assert [each["status"] for each in said if "status" in each] == [408 if is_slow else 200]
    assert keeper.noted == ([("http.too-slow", "person")] if is_slow else [])


def test_after_the_body_the_app_may_wait_for_the_client_s_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of events does so for as long as it lasts."""
    monkeypatch.setattr(guard, "BODY_S", 0.0)
    whole: Message = {"type": "http.request", "body": b"{}", "more_body": False}
    messages, heard = iter([whole, {"type": "http.disconnect"}]), list[Message]()

    async def receive() -> Message:
        for _ in range(3 if heard else 0):
            await asyncio.sleep(0)
        return next(messages)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append(await receive())
        heard.append(await receive())

    async def send(message: Message) -> None:
        raise AssertionError

    scope = {"type": "http", "method": "PUT", "path": "/x", "headers": CHUNKED, "server": ("127.0.0.1", 80)}
    asyncio.run(Gate(app, refuse, Keeper())(scope, receive, send))
    assert [each["type"] for each in heard] == ["http.request", "http.disconnect"]


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
    asyncio.run(Gate(app, refuse, Keeper())(scope, receive, send))
    assert [each["type"] for each in said] == ["websocket.close"]

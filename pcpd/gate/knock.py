"""The gate of every HTTP door: who may knock, before any route runs.

Everywhere the request must name this machine as its host, so that a name which a web page had pointed here
(rebinding) is not served, and come from no web page at all; and it must say who calls (`credentials`), on all
but a closed list of routes. On the owner's Unix socket (0600, same user by peer credentials) that is the person.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from pcpd.errors import Denied, PcpError, Usage

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[PcpError, int], App]
Identify = Callable[["Knock"], Awaitable[object]]

OPEN_ROUTES = frozenset({"/vault/v1/health"})
"""All that is answered to whoever is on this machine, without a token."""
MCP_ROUTE = "/mcp"
CALLER = "caller"
"""Where the gate puts who calls: `scope["state"][CALLER]`."""
LOOPBACK_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
BODY_LIMIT = 24 * 1024 * 1024
"""Bytes: room for the largest page in JSON's spelling, where each letter of Chinese takes six."""


@dataclass(frozen=True, slots=True)
class Knock:
    """What the gate looks at in one request. `length` is the body's, where the request tells one."""

    is_local: bool
    path: str
    host: str | None
    origin: str | None
    length: int | None
    authorization: str | None = field(default=None, repr=False)


def knock_of(scope: Scope) -> Knock:
    """Reads an ASGI scope. A Unix socket's server address has no port (uvicorn's `scope["server"]`)."""
    server = scope.get("server")
    headers = list(scope.get("headers", ()))
    length = _header(headers, b"content-length")
    return Knock(
        is_local=server is not None and server[1] is None,
        path=scope.get("path", ""),
        host=_header(headers, b"host"),
        origin=_header(headers, b"origin"),
        length=int(length) if length and length.isascii() and length.isdigit() else None,
        authorization=_header(headers, b"authorization"),
    )


def refusal(knock: Knock) -> tuple[PcpError, int] | None:
    """Gives why a request may not pass, whoever sends it, and the HTTP status for it; None when it may."""
    if knock.host is None or not LOOPBACK_HOST.fullmatch(knock.host):
        return Denied("http.foreign-host", "this host name is not served", hint="use http://127.0.0.1"), 421
    if knock.origin is not None:
        return Denied("http.foreign-origin", "requests from web pages are not served"), 403
    if knock.length is not None and knock.length > BODY_LIMIT:
        return _too_large(), 413
    return None


class Gate:
    """The ASGI layer in front of an app; `refuse` makes the answer for what may not pass.

    `identify` tells who calls, or raises `Denied`. The app finds its answer in `scope["state"]`.
    """

    def __init__(self, app: App, refuse: Refusal, identify: Identify) -> None:
        self._app, self._refuse, self._identify = app, refuse, identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes an HTTP request on, or refuses it. Nothing else is served: a WebSocket is hung up on."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        knock = knock_of(scope)
        refused = refusal(knock)
        if refused is None and knock.path not in OPEN_ROUTES:
            try:
                scope.setdefault("state", {})[CALLER] = await self._identify(knock)
            except Denied as error:
                refused = error, 401
        if refused is not None:
            await self._refuse(*refused)(scope, receive, send)
            return
        body = _Body(receive, send, lambda: self._refuse(_too_large(), 413)(scope, receive, send))
        await self._app(scope, body.receive, body.send)


class _Body:
    """Counts a request's body as it comes, for those that say no length.

    Over the limit the request is refused at once; the app then sees a client that has gone, and whatever it
    still says is dropped.
    """

    def __init__(self, receive: Receive, send: Send, refuse: Callable[[], Awaitable[None]]) -> None:
        self._receive, self._send, self._refuse = receive, send, refuse
        self._seen = 0

    async def receive(self) -> Message:
        """Gives the next piece of the body."""
        if self._seen > BODY_LIMIT:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > BODY_LIMIT:
            await self._refuse()
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Passes on what the app answers, unless the request was refused."""
        if self._seen <= BODY_LIMIT:
            await self._send(message)


def _too_large() -> PcpError:
    return Usage("http.too-large", f"the body is over {BODY_LIMIT} bytes", hint="send less at once")


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    values = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    # Two Host headers agree with no list: join them, so that neither is picked.
    return ", ".join(values) if values else None

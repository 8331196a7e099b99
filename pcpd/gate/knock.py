"""The gate of every HTTP door: who may knock, before any route runs.

On the owner's Unix socket the caller is the person (0600, same uid by peer credentials). On TCP the request
must name a loopback host, come from no foreign page, and carry a token on all but a closed list of routes.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from pcpd.errors import Denied, PcpError, Usage

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[PcpError, int], App]

OPEN_ROUTES = frozenset({"/vault/v1/health"})
LOOPBACK_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
BODY_LIMIT = 12 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Knock:
    """What the gate looks at in one request."""

    is_local: bool
    path: str
    host: str | None
    origin: str | None
    length: int | None


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
    )


def refusal(knock: Knock) -> tuple[PcpError, int] | None:
    """Gives why a request may not pass and the HTTP status for it, or None when it may."""
    if knock.length is not None and knock.length > BODY_LIMIT:
        return Usage("http.too-large", f"the body is over {BODY_LIMIT} bytes", hint="send less at once"), 413
    if knock.origin is not None:
        return Denied("http.foreign-origin", "requests from web pages are not served"), 403
    if knock.is_local:
        return None
    if knock.host is None or not LOOPBACK_HOST.fullmatch(knock.host):
        return Denied("http.foreign-host", "this host name is not served", hint="use http://127.0.0.1"), 421
    if knock.path in OPEN_ROUTES:
        return None
    hint = "use the `pcpd` command, or `pcpd mcp` with a token"
    return Denied("http.no-token", "a token is needed", hint=hint), 401


class Gate:
    """The ASGI layer in front of an app; `refuse` makes the answer for what may not pass."""

    def __init__(self, app: App, refuse: Refusal) -> None:
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = refusal(knock_of(scope))
        app = self._app if refused is None else self._refuse(*refused)
        await app(scope, _bounded(receive) if refused is None else receive, send)


def _bounded(receive: Receive) -> Receive:
    """Stops reading a body that says no length, or lies about it, at the limit."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY_LIMIT:
            raise Usage("http.too-large", f"the body is over {BODY_LIMIT} bytes", hint="send less at once")
        return message

    return bounded


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    values = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    # Two Host headers agree with no list: join them, so that neither is picked.
    return ", ".join(values) if values else None

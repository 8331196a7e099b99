"""The outermost layer: what every answer carries, and that no fault leaves as an exception.

Answers are a person's memory: nobody on the way keeps them, and no browser takes one for a page that may run.
"""

from starlette.requests import ClientDisconnect

from pcpd import __version__
from pcpd.gate.knock import App, Message, Receive, Scope, Send

_CACHE = b"cache-control"
EVERYWHERE = [
    (b"pcpd-version", __version__.encode()),
    (_CACHE, b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]
"""The headers of every answer."""


class Edge:
    """Wraps the gate and all that is behind it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. A client that went away is no error; faults were logged and answered by the app."""
        is_answered = False

        async def marked(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                said = [header for header in message.get("headers", ()) if header[0].lower() != _CACHE]
                message["headers"] = [*said, *EVERYWHERE]
            else:
                is_answered = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, marked)
        except ClientDisconnect:
            return
        except Exception:
            if not is_answered:
                raise  # the server then cuts the connection: half an answer is not taken for a whole one


class Heads:
    """Answers HEAD as GET would, without the body.

    An answer that would go on (events) ends after its headers: its reader has then gone, as the server says.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def headers_alone(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, receive, headers_alone)
        finally:
            scope["route"] = asked.get("route")

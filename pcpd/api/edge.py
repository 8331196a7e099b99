"""The outermost layer behind the gate: each answer names our version, and no fault leaves as an exception."""

from starlette.requests import ClientDisconnect

from pcpd import __version__
from pcpd.gate.knock import App, Message, Receive, Scope, Send

_VERSION = (b"pcpd-version", __version__.encode())


class Edge:
    """Wraps the routes."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. A client that went away is no error; faults were logged and answered by the app."""
        is_answered = False

        async def versioned(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _VERSION]
            else:
                is_answered = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, versioned)
        except ClientDisconnect:
            return
        except Exception:
            if not is_answered:
                raise  # the server then cuts the connection: half an answer is not taken for a whole one

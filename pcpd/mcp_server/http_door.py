"""MCP over streamable HTTP: one endpoint, whose callers the gate has told apart before a request gets here.

A session belongs to the principal that opened it. What the SDK cannot do stands in front of it: JSON arrays
(batches are part of 2025-03-26) are taken apart and answered.
"""

import asyncio
import logging
from typing import cast

from anyio import CapacityLimiter
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from pcpd.gate.knock import BODY_LIMIT, CALLER, Receive, Scope, Send
from pcpd.mcp_server.server import build
from pcpd.memory.memory import Caller, Memory

MOST_SESSIONS = 512
IDLE_S = 30 * 60

log = logging.getLogger("pcpd")


class HttpDoor:
    """The MCP endpoint of one owner, an ASGI app. `limiter` holds the threads on which tools run."""

    def __init__(self, memory: Memory, limiter: CapacityLimiter) -> None:
        self._manager = StreamableHTTPSessionManager(
            build(memory, _who, limiter),
            session_idle_timeout=IDLE_S,
            max_request_body_size=BODY_LIMIT,
            max_sessions=MOST_SESSIONS,
        )

    async def serve(self) -> None:
        """Keeps sessions until cancelled."""
        async with self._manager.run():
            await asyncio.Event().wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request of a caller that the gate knows."""
        caller = cast("Caller", scope["state"][CALLER])
        name = caller.principal.name
        # The SDK lets a session be used by none but the user that opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        await self._manager.asgi_app(scope, receive, send)


def _who(ctx: ServerRequestContext[object, object]) -> Caller:
    """Gives who sent the request that is being served."""
    request = cast("Scope", getattr(ctx.request, "scope", {}))
    return cast("Caller", request["state"][CALLER])

"""Serves an ASGI app with uvicorn on sockets that are bound already: loopback TCP and the owner's Unix socket."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pcpd.gate import peer

KEEP_ALIVE_S = 30
DRAIN_S = 1


class PeerChecked(H11Protocol):
    """HTTP/1.1 that hangs up on Unix socket peers that are another user's processes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Looks at who connected before a byte is read."""
        link = transport.get_extra_info("socket")
        if link is None or (link.family == socket.AF_UNIX and not peer.is_of(link, os.geteuid())):
            self.transport = transport  # what ends the connection looks at it
            transport.abort()
            return
        super().connection_made(transport)


class Quiet(uvicorn.Server):
    """uvicorn without its ten wake-ups a second, and without its signal handlers: the owner has its own."""

    def __init__(self, config: uvicorn.Config, until: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._until = until

    async def main_loop(self) -> None:
        """Sleeps until the owner ends. The Date header is left out, so there is nothing to refresh."""
        await self._until()


async def serve(app: Any, sockets: Sequence[socket.socket], until: Callable[[], Awaitable[None]]) -> None:
    """Serves until `until` returns, then lets requests under way finish for a second."""
    config = uvicorn.Config(
        app,
        http=PeerChecked,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
    )
    config.load()
    server = Quiet(config, until)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=list(sockets))
    await server.main_loop()
    await server.shutdown(sockets=list(sockets))

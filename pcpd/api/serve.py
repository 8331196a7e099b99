"""Serves an ASGI app with uvicorn on sockets that are bound already: loopback TCP and the owner's Unix socket."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import uvicorn

from pcpd.api.connection import Connection

KEEP_ALIVE_S = 30
DRAIN_S = 1


class Quiet(uvicorn.Server):
    """uvicorn without its ten wake-ups a second, and without its signal handlers: the owner has its own."""

    def __init__(self, config: uvicorn.Config, until: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._until = until
        self.servers: list[asyncio.Server] = []
        self.started = True

    async def main_loop(self) -> None:
        """Sleeps until the owner ends. The Date header is left out, so there is nothing to refresh."""
        await self._until()

    async def listen(self, sockets: "asyncio.Queue[socket.socket]") -> None:
        """Serves each socket that comes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self.servers.append(await loop.create_server(self._protocol, sock=await sockets.get()))

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        made: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


async def serve(
    app: Any,
    sockets: Sequence[socket.socket],
    until: Callable[[], Awaitable[None]],
    *,
    more: "asyncio.Queue[socket.socket] | None" = None,
) -> None:
    """Serves until `until` returns, then lets requests under way finish for a second.

    `more` brings sockets that are to be served too, such as one that takes the place of one that lost its name.
    """
    to_serve = more if more is not None else asyncio.Queue[socket.socket]()
    for listening in sockets:
        to_serve.put_nowait(listening)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # it tells strangers' nonsense, which would fill the log
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
    server.lifespan.state["connections"] = server.server_state.connections
    serving = asyncio.create_task(server.listen(to_serve))
    await server.main_loop()
    serving.cancel()
    await server.shutdown()

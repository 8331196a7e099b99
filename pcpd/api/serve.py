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
MOST_STRANGERS = 128
HEAD_S = 10.0
STUCK_S = 60.0
"""A client that takes nothing of an answer for so long has gone, whatever its connection says."""


class PeerChecked(H11Protocol):
    """HTTP/1.1 that hangs up on Unix socket peers that are another user's processes.

    Any user of this machine may connect to loopback: there only so many connections are kept, and none on which
    nothing is asked for a while, so that strangers cannot use up the files that the owner may open.
    """

    is_stranger = False
    _waiting: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Looks at who connected before a byte is read."""
        link = transport.get_extra_info("socket")
        self.is_stranger = link is not None and link.family != socket.AF_UNIX
        if link is None or (self._is_crowded() if self.is_stranger else not peer.is_of(link, os.geteuid())):
            self.transport = transport  # what ends the connection looks at it
            transport.abort()
            return
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing more."""
        for timer in (self._waiting, self._stuck):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Waits for the client to take what was sent; the rest of the answer waits with it."""
        super().pause_writing()
        self._stuck = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Goes on."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        super().on_response_complete()
        self._wait()

    def _is_crowded(self) -> bool:
        return sum(each.is_stranger for each in self.connections) >= MOST_STRANGERS  # type: ignore[union-attr]

    def _wait(self) -> None:
        """Hangs up on a stranger whose request is not whole after a while, however slowly it goes on coming."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self.is_stranger:
            self._waiting = self.loop.call_later(HEAD_S, self._hang_up)

    def _hang_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


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
        http=PeerChecked,
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
    serving = asyncio.create_task(server.listen(to_serve))
    await server.main_loop()
    serving.cancel()
    await server.shutdown()

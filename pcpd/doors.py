"""What one owner serves and where: HTTP and MCP on its Unix socket and on loopback, relays on a socket of their own.

The framework and the SDK are imported beside the first scan, since they take a second; whoever asks meanwhile
waits in the socket's queue. Source: architecture.md, *The owner*.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, MutableMapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pcpd import __version__, heap, sockets
from pcpd.errors import PcpError, Unavailable
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.settings import MCP_SOCKET, SOCKET

DOOR_THREADS = 16
IDLE_BEAT_S = 5.0
REACH_BEAT_S = 5.0

log = logging.getLogger("pcpd")


class Doors:
    """The sockets of one owner and what is served on them."""

    def __init__(
        self,
        memory: Memory,
        scan: Callable[[], None],
        *,
        watch_mode: Callable[[], str],
        folder: Callable[[], Path],
        is_moved: Callable[[], bool],
        announce: Callable[[str], None],
        idle_exit_s: float | None,
    ) -> None:
        """`scan` has the vault watched and returns when the index is in step.

        `folder` makes and gives the folder where clients look for the sockets, as the root is now."""
        self._folder = folder
        self._is_moved = is_moved
        self._root = memory.place.root
        self._listening: dict[str, sockets.Listening] = {}
        self._to_serve: dict[str, asyncio.Queue[socket.socket]] = {
            name: asyncio.Queue() for name in (SOCKET, MCP_SOCKET)
        }
        self._memory, self._scan_vault, self._watch_mode = memory, scan, watch_mode
        self._announce = announce
        self._idle_exit_s = idle_exit_s
        self._traffic = sockets.Traffic(memory.clock.monotonic)
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http_door: asyncio.Future[Any]
        self._url = ""

    async def serve(self, port: int) -> int:
        """Serves until a signal, a handover or idleness ends it."""
        self._loop = asyncio.get_running_loop()
        self._http_door = self._loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        tcp = sockets.loopback(port, partial(self._memory.health.notice, "port"))
        self._url = f"http://127.0.0.1:{tcp.getsockname()[1]}"
        with ExitStack() as names:
            for name in (SOCKET, MCP_SOCKET):
                self._listen(names, self._folder() / name)
            async with asyncio.TaskGroup() as tasks:
                imported = tasks.create_task(asyncio.to_thread(self._build_app))
                scanned = tasks.create_task(self._scan())
                tasks.create_task(self._end_when_idle())
                tasks.create_task(self._serve_http(await imported, tcp))
                await self._get_ready(scanned)
                tasks.create_task(self._stay_reachable(names))
                await self._serve_mcp()
        return 0

    def _listen(self, names: ExitStack, path: Path) -> None:
        """Listens at `path`, for whoever serves sockets of that name."""
        listening = sockets.Listening(path)
        names.callback(listening.close)
        self._listening[path.name] = listening
        self._to_serve[path.name].put_nowait(listening.socket)

    async def _stay_reachable(self, names: ExitStack) -> None:
        """Listens anew where clients look, when they find us no more; ends when the vault is there no more."""
        beats_away = 0
        while not await self._is_told_to_end(REACH_BEAT_S):
            if await asyncio.to_thread(self._is_moved):  # what is there now is another owner's to serve
                beats_away += 1
                if beats_away > 1:
                    log.warning("the vault is no longer at %s: moved, or another in its place", self._root)
                    self._stop.set()
                continue
            beats_away = 0
            with suppress(OSError, PcpError):  # the root is away, or nothing can be made: the next beat sees
                folder = await asyncio.to_thread(self._folder)
                for name, listening in list(self._listening.items()):
                    if not listening.is_at(folder / name):
                        self._listen(names, folder / name)
                        log.warning("the socket %s was gone; it is made anew", folder / name)

    async def _scan(self) -> None:
        """Has the vault watched and scanned. That the owner's end cuts the scan short is no error."""
        try:
            await asyncio.to_thread(self._scan_vault)
        except Unavailable:
            if not self._stop.is_set():
                raise

    async def _get_ready(self, scanned: asyncio.Task[None]) -> None:
        """Waits for the first scan; one that is told to end meanwhile is not waited for."""
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({scanned, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._stop.is_set():
            self._memory.keeper.refuse(Urgency.SCAN, Urgency.EVENT)
            return
        self._memory.health.ready = True
        log.info("ready at %s", self._url)
        self._announce(self._url)

    async def _serve_http(self, built: tuple[Any, Any], tcp: socket.socket) -> None:
        serve, app = built

        async def counted(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            self._traffic.change(1)
            try:
                await app(scope, receive, send)
            finally:
                self._traffic.change(-1)

        await serve(counted, [tcp], self._stop.wait, more=self._to_serve[SOCKET])

    def _build_app(self) -> tuple[Any, Any]:
        with heap.importing():
            from pcpd.api.app import build
            from pcpd.api.caller import Served
            from pcpd.api.serve import serve
            from pcpd.gate.threads import Shares

            served = Served(
                memory=self._memory,
                describe=self._describe,
                hand_over=self._hand_over,
                end=self._end,
                until=self._stop.wait,
                threads=Shares(DOOR_THREADS, "api"),
            )
            return serve, build(served, self._mcp_over_http)

    async def _mcp_over_http(self, scope: Any, receive: Any, send: Any) -> None:
        """Serves the MCP endpoint; who comes before the SDK is imported waits."""
        await (await asyncio.shield(self._http_door))(scope, receive, send)

    async def _serve_mcp(self) -> None:
        """Imports the SDK and serves MCP; relays wait in their socket's queue until then.

        Nothing else imports meanwhile: two threads that import one package meet it half made.
        """
        if self._stop.is_set():
            return
        relays, http = await asyncio.to_thread(self._build_mcp)
        self._http_door.set_result(http)
        async with asyncio.TaskGroup() as tasks:
            serving = [
                tasks.create_task(relays.serve(self._to_serve[MCP_SOCKET])),
                tasks.create_task(http.serve()),
            ]
            await self._stop.wait()
            for task in serving:
                task.cancel()
        await relays.close()

    def _build_mcp(self) -> tuple[Any, Any]:
        with heap.importing():
            from pcpd.gate.threads import Threads
            from pcpd.mcp_server.http_door import HttpDoor
            from pcpd.mcp_server.relay_door import RelayDoor

            return (
                RelayDoor(self._memory, Threads(DOOR_THREADS, "relays"), self._traffic.change),
                HttpDoor(self._memory, Threads(DOOR_THREADS, "mcp")),
            )

    async def _end_when_idle(self) -> None:
        if self._idle_exit_s is None:
            return
        while not await self._is_told_to_end(min(IDLE_BEAT_S, self._idle_exit_s)):
            if self._traffic.idle_s() >= self._idle_exit_s:
                self._stop.set()

    async def _is_told_to_end(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), within_s)
        return self._stop.is_set()

    def _describe(self) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "url": self._url,
            "idle_exit_s": self._idle_exit_s,
            "watch": self._watch_mode(),
        }

    def _hand_over(self, version: str) -> bool:
        """Ends this owner if a client started it, or if a newer version asks; tells whether it does."""
        if self._idle_exit_s is None and not _is_newer(version):
            return False
        self._end()
        return True

    def _end(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)


def _is_newer(version: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".") if part.isdigit()]

    return numbers(version) > numbers(__version__)

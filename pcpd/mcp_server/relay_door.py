"""The door for stdio relays: a Unix socket on which lines of JSON-RPC go both ways, after one line of greeting.

The relay's first line is `{"pcpd": version, "principal": …, "token": …}`; the door answers `{"pcpd": version}`, or
the same with `"error": {code, message, hint}`, and closes. What follows is MCP as over stdio, line by line.
"""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, cast

from anyio import CapacityLimiter, to_thread

from pcpd import __version__
from pcpd.errors import Denied, PcpError, Usage
from pcpd.gate import peer
from pcpd.gate.threads import Threads
from pcpd.ledger import tokens
from pcpd.ledger.issued import Issued
from pcpd.mcp_server.asking import Asking
from pcpd.mcp_server.lines import LINE_LIMIT, PIECE, Lines, messages
from pcpd.mcp_server.server import build, options
from pcpd.mcp_server.subscriptions import Streams, Subscriptions
from pcpd.mcp_server.watch import listened
from pcpd.memory import strangers
from pcpd.memory.memory import Caller, Memory
from pcpd.policy.decide import Principal

log = logging.getLogger("pcpd")

GREETING_LIMIT = 64 * 1024
GREETING_S = 10.0
GREETING_THREADS = 2
FAREWELL_S = 0.5
LOOK_GAP_S = 0.1
"""Between two looks at which connections may stay."""


class RelayDoor:
    """Serves relays on a listening socket; `on_traffic` is told of each connection's begin (+1) and end (-1).

    `threads` are those on which acts run. Greetings have their own few, so that a flood of wrong
    tokens delays no call.
    """

    def __init__(
        self,
        memory: Memory,
        threads: Threads,
        on_traffic: Callable[[int], None],
        *,
        greeting_s: float = GREETING_S,
    ) -> None:
        self._memory = memory
        self._threads = threads
        self._greeting_limiter = CapacityLimiter(GREETING_THREADS)
        self._looking_limiter = CapacityLimiter(1)
        self._on_traffic = on_traffic
        self._greeting_s = greeting_s
        self._tasks: dict[asyncio.Task[None], Callable[[], object]] = {}
        self._ending: asyncio.Task[None] | None = None
        self._servers: list[asyncio.Server] = []

    async def start(self, listening: socket.socket) -> None:
        """Begins to serve a socket; one more where an earlier one lost its name."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_refused())
        self._servers.append(await asyncio.start_unix_server(self._connected, sock=listening, limit=PIECE))

    async def serve(self, listening: "asyncio.Queue[socket.socket]") -> None:
        """Serves each socket that comes, until cancelled."""
        while True:
            await self.start(await listening.get())

    async def close(self) -> None:
        """Ends every connection: relays then look for the next owner."""
        for server in self._servers:
            server.close()
        ending = [] if self._ending is None else [self._ending]
        for task in (*self._tasks, *ending):
            task.cancel()
        await asyncio.gather(*self._tasks, *ending, return_exceptions=True)

    async def _end_refused(self) -> None:
        """Ends each connection as soon as its token is good no more or its principal is paused, until cancelled."""
        woken = asyncio.Event()
        unlisten = listened(self._memory, woken)
        try:
            while True:
                await woken.wait()
                woken.clear()
                for task, who in list(self._tasks.items()):
                    try:
                        await to_thread.run_sync(who, limiter=self._looking_limiter)
                    except PcpError:
                        task.cancel()
                await asyncio.sleep(LOOK_GAP_S)
        finally:
            unlisten()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = writer.get_extra_info("socket")
        if link is None or not peer.is_of(link, os.geteuid()):
            writer.transport.abort()
            return
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks[task] = lambda: None
        self._on_traffic(1)
        try:
            await self._serve(Lines(reader, GREETING_LIMIT), writer)
        except (ConnectionError, EOFError, TimeoutError):
            return  # it went away, or never said who it is
        except asyncio.CancelledError:
            return  # cut off, or the owner ends; asyncio's streams take a cancelled task for a fault
        except Exception:
            log.exception("a relay's connection met a fault")
        finally:
            self._on_traffic(-1)
            del self._tasks[task]
            await _hung_up(writer)

    async def _serve(self, lines: Lines, writer: asyncio.StreamWriter) -> None:
        try:
            first, caller = await self._greeted(lines)
            self._tasks[cast("asyncio.Task[None]", asyncio.current_task())] = caller
            await to_thread.run_sync(caller, limiter=self._looking_limiter)  # nobody looked while it greeted
        except PcpError as error:
            said = {"code": error.code, "message": error.message, "hint": error.hint}
            await _send(writer, {"pcpd": __version__, "error": said})
            return
        await _send(writer, {"pcpd": __version__})
        lines.limit = LINE_LIMIT
        asking = Asking(self._memory, lambda _ctx: caller(), self._threads, first=first)
        subscriptions = Subscriptions(asking, Streams())
        server = build(asking, subscriptions)
        try:
            async with messages(lines, writer) as (read_stream, write_stream):
                await server.run(read_stream, write_stream, options(server))
        finally:
            await subscriptions.close()

    async def _greeted(self, lines: Lines) -> tuple[Caller, Callable[[], Caller]]:
        """Checks the greeting; gives who greeted, and what tells, at each call, who calls."""
        line = await asyncio.wait_for(lines.next(), self._greeting_s)
        token, named, first = await to_thread.run_sync(self._checked, line, limiter=self._greeting_limiter)
        return Caller(first, "mcp"), lambda: Caller(self._verified(token, named), "mcp")

    def _checked(self, line: bytes | None) -> tuple[str, str, Principal]:
        """Gives a greeting's token, name and principal; has a refusal written down."""
        issued = None
        try:
            token, named = _greeting(line)
            issued = tokens.recognise(self._memory.ledger, token)
            first = _proved(issued, named)
            self._memory.brakes.check(first.name)
            return token, named, first
        except PcpError as error:
            principal = issued.principal if issued else ""
            strangers.note(self._memory, error.code, principal=principal, channel="mcp")
            raise

    def _verified(self, token: str, named: str) -> Principal:
        principal = _proved(tokens.recognise(self._memory.ledger, token), named)
        self._memory.brakes.check(principal.name)
        return principal


def _proved(issued: Issued | None, named: str) -> Principal:
    """Gives the principal that a token proves. Raises `Denied` (`token.refused`), also for another one's name."""
    if issued is None or issued.revoked_at is not None or (named and issued.principal != named):
        named = named[:100]
        raise Denied(
            "token.refused",
            f"no valid token came for {named}" if named else "no valid token came",
            hint="the person can let this client in with `pcpd connect`, and restart it then",
        )
    return Principal(issued.principal)


def _greeting(line: bytes | None) -> tuple[str, str]:
    try:
        said = json.loads(line or b"")
        token, named = said.get("token") or "", said.get("principal") or ""
    except (ValueError, AttributeError, RecursionError):
        token, named = None, None
    if not isinstance(token, str) or not isinstance(named, str):
        raise Usage("relay.greeting", "the first line must be the relay's greeting", hint="use `pcpd mcp`")
    return token, named


async def _send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    writer.write(json.dumps(value).encode() + b"\n")
    await writer.drain()


async def _hung_up(writer: asyncio.StreamWriter) -> None:
    """Closes a connection; a peer that does not read what was said last is not waited for."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), FAREWELL_S)
    except (OSError, asyncio.CancelledError):
        writer.transport.abort()

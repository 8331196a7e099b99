"""The door for stdio relays: a Unix socket on which lines of JSON-RPC go both ways, after one line of greeting.

The relay's first line is `{"pcpd": version, "principal": …, "token": …}`; the door answers `{"pcpd": version}`, or
the same with `"error": {code, message, hint}`, and closes. What follows is MCP as over stdio, line by line.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import mcp_types as types
from anyio import CapacityLimiter, create_task_group, to_thread
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage

from pcpd import __version__
from pcpd.errors import Denied, PcpError, Usage
from pcpd.ledger import tokens
from pcpd.mcp_server.server import build
from pcpd.memory.memory import Caller, Memory
from pcpd.policy.decide import Principal

LINE_LIMIT = 16 * 1024 * 1024
GREETING_S = 10.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RelayDoor:
    """Serves relays on a listening socket; `on_traffic` is told of each connection's begin (+1) and end (-1)."""

    def __init__(self, memory: Memory, limiter: CapacityLimiter, on_traffic: Callable[[int], None]) -> None:
        self._memory = memory
        self._limiter = limiter
        self._on_traffic = on_traffic
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Begins to serve."""
        self._server = await asyncio.start_unix_server(self._connected, sock=listening, limit=LINE_LIMIT)

    async def close(self) -> None:
        """Ends every connection: relays then look for the next owner."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        self._on_traffic(1)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self._on_traffic(-1)
            if task is not None:
                self._tasks.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            caller = await self._greeted(reader)
        except PcpError as error:
            said = {"code": error.code, "message": error.message, "hint": error.hint}
            await _send(writer, {"pcpd": __version__, "error": said})
            return
        await _send(writer, {"pcpd": __version__})
        server = build(self._memory, caller, self._limiter)
        async with _messages(reader, writer) as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    async def _greeted(self, reader: asyncio.StreamReader) -> Callable[[], Caller]:
        """Checks the greeting's token; gives what tells, at each call, who calls."""
        line = await asyncio.wait_for(reader.readline(), GREETING_S)
        token, named = _greeting(line)
        await to_thread.run_sync(self._verified, token, named, limiter=self._limiter)
        return lambda: Caller(self._verified(token, named), "mcp")

    def _verified(self, token: str, named: str) -> Principal:
        principal = tokens.verify(self._memory.ledger, token) if token else None
        if principal is None or (named and principal != named):
            raise Denied(
                "token.refused",
                f"no valid token came for {named}" if named else "no valid token came",
                hint=f"make one: `pcpd token create --principal {named or 'agent:NAME'}`, and set it as PCPD_TOKEN",
            )
        return Principal(principal)


def _greeting(line: bytes) -> tuple[str, str]:
    try:
        said = json.loads(line)
        token, named = said.get("token") or "", said.get("principal") or ""
    except (ValueError, AttributeError, RecursionError):
        token, named = None, None
    if not isinstance(token, str) or not isinstance(named, str):
        raise Usage("relay.greeting", "the first line must be the relay's greeting", hint="use `pcpd mcp`")
    return token, named


async def _send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    writer.write(json.dumps(value).encode() + b"\n")
    await writer.drain()


@asynccontextmanager
async def _messages(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[tuple[Any, Any]]:
    """Turns the two halves of a connection into the SDK's streams of messages, as its own stdio transport does."""
    into_server, read_stream = create_context_streams[SessionMessage | Exception](0)
    write_stream, from_server = create_context_streams[SessionMessage](0)

    async def incoming() -> None:
        async with into_server:
            while line := await _next_line(reader):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await into_server.send(error)
                    continue
                await into_server.send(SessionMessage(message))

    async def outgoing() -> None:
        async with from_server:
            async for message in from_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()

    async with create_task_group() as tasks:
        tasks.start_soon(_quietly, incoming)
        tasks.start_soon(_quietly, outgoing)
        yield read_stream, write_stream
        tasks.cancel_scope.cancel()


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    """A peer that goes away ends the connection, and is no error."""
    import anyio

    with suppress(ConnectionError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        await work()


async def _next_line(reader: asyncio.StreamReader) -> bytes:
    """Gives the next line; an empty one at the end, or when a line is longer than the limit."""
    try:
        return await reader.readline()
    except ValueError:
        return b""

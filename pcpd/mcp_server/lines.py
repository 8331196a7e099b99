"""Messages of one connection, a line of JSON each, both ways; what the SDK's own stdio transport does for a pipe.

What is no message is answered with an error, and the connection goes on. What has no answer yet is bounded, so
that a client that asks without end, or reads no answers, waits by itself and holds up nobody else.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from anyio import ClosedResourceError, create_memory_object_stream, create_task_group
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from pcpd.gate import arrays

LINE_LIMIT = 16 * 1024 * 1024
PIECE = 64 * 1024
MOST_OPEN = 32
MOST_OPEN_BYTES = 2 * LINE_LIMIT


class Lines:
    """Reads lines; one that is longer than `limit` (bytes, which may be changed between lines) is dropped alone."""

    def __init__(self, reader: asyncio.StreamReader, limit: int) -> None:
        self._reader, self.limit = reader, limit
        self._rest = bytearray()
        self._looked_at = 0
        self._is_dropping = False

    async def next(self) -> bytes | None:
        """Gives the next line without its newline; None for one that was too long.

        Raises EOFError at the end: what has no newline was cut off.
        """
        while True:
            at = self._rest.find(b"\n", self._looked_at)
            if at >= 0:
                return self._taken(at)
            self._looked_at = len(self._rest)
            if self._looked_at > self.limit:
                self._is_dropping = True
            if self._is_dropping:
                self._rest.clear()
                self._looked_at = 0
            piece = await self._reader.read(PIECE)
            if not piece:
                raise EOFError
            self._rest += piece

    def _taken(self, at: int) -> bytes | None:
        line = None if self._is_dropping or at > self.limit else bytes(self._rest[:at])
        del self._rest[: at + 1]
        self._looked_at, self._is_dropping = 0, False
        return line


class Open:
    """Counts the requests of a connection that have no answer yet, and their bytes."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._room = asyncio.Event()

    async def add(self, number: object, size: int) -> None:
        """Waits until there is room for a request of `size` bytes, and counts it."""
        while len(self._sizes) >= MOST_OPEN or (self._sizes and self._bytes + size > MOST_OPEN_BYTES):
            self._room.clear()
            await self._room.wait()
        self.done(number)  # an id that is used twice at a time counts once
        self._sizes[arrays.key_of(number)] = size
        self._bytes += size

    def done(self, number: object) -> None:
        """Takes a request out: it was answered, or will never be."""
        self._bytes -= self._sizes.pop(arrays.key_of(number), 0)
        self._room.set()

    def __contains__(self, key: object) -> bool:
        """Tells whether the request of that key has no answer yet."""
        return key in self._sizes


@asynccontextmanager
async def messages(lines: Lines, writer: asyncio.StreamWriter) -> AsyncIterator[tuple[Any, Any]]:
    """Gives the SDK's two streams of messages for a connection."""
    into_server, read_stream = create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, from_server = create_memory_object_stream[SessionMessage](0)
    link = _Link(writer)

    async def incoming() -> None:
        async with into_server:
            while True:
                for message, size in await link.taken(await lines.next()):
                    await into_server.send(await link.counted(message, size))

    async def outgoing() -> None:
        async with from_server:
            async for sent in from_server:
                await link.answer(sent.message)

    async def until_deaf() -> None:
        await _quietly(outgoing)
        tasks.cancel_scope.cancel()  # who hears no more is gone, however much it still asks

    async with create_task_group() as tasks:
        tasks.start_soon(_quietly, incoming)
        tasks.start_soon(until_deaf)
        yield read_stream, write_stream
        tasks.cancel_scope.cancel()


class _Link:
    """What one connection has open, and what goes back on it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self._open, self._arrays = writer, Open(), arrays.Arrays()

    async def taken(self, line: bytes | None) -> list[tuple[types.JSONRPCMessage, int]]:
        """Gives the messages of a line, with their sizes; what is no message is answered with an error."""
        if line is None:
            await self._say(
                _error(None, types.INVALID_REQUEST, f"a message is longer than {LINE_LIMIT} bytes")
            )
        elif line.lstrip()[:1] == b"[":
            return await self._array(line)
        elif line.strip():
            message = _message_in(line)
            if not isinstance(message, bytes):
                return [(message, len(line))]
            await self._say(message)
        return []

    async def _array(self, line: bytes) -> list[tuple[types.JSONRPCMessage, int]]:
        try:
            entries = json.loads(line)
        except (ValueError, RecursionError):
            await self._say(_refused(line))
            return []
        if fault := arrays.fault_of(entries):
            await self._say(_error(None, types.INVALID_REQUEST, fault))
            return []
        parts = arrays.parts(entries, in_use=self._open, is_message=_is_message)
        await self._say(self._arrays.begin(parts))
        size = len(line) // len(entries)
        return [(_as_alone(each), size) for each in parts.messages]

    async def counted(self, message: types.JSONRPCMessage, size: int) -> SessionMessage:
        """Gives a message as the SDK takes it; a request waits here until there is room for it."""
        if not isinstance(message, types.JSONRPCRequest):
            return SessionMessage(message)
        number = message.id
        await self._open.add(number, size)

        async def never_answered() -> None:
            self._open.done(number)
            await self._give(number, None)

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=never_answered))

    async def answer(self, message: types.JSONRPCMessage) -> None:
        """Sends what the server says; the answer to a message of an array waits for those to the others."""
        if isinstance(message, types.JSONRPCError) and message.error.code == types.CONNECTION_CLOSED:
            return  # an owner that ends says nothing: the relay asks the next one
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            await self._give(message.id, line)
            self._open.done(message.id)
        else:
            await self._say(line)

    async def _give(self, number: object, answer: bytes | None) -> None:
        key = arrays.key_of(number)
        await self._say(self._arrays.answered(key, answer) if self._arrays.holds(key) else answer)

    async def _say(self, line: bytes | None) -> None:
        if line is not None:
            self._writer.write(line + b"\n")
            await self._writer.drain()


def _is_message(entry: arrays.Message) -> bool:
    try:
        _as_alone(entry)
    except (ValueError, RecursionError):
        return False
    return True


def _as_alone(entry: arrays.Message) -> types.JSONRPCMessage:
    """Gives a message of an array as if it had come alone: half of a surrogate pair is not taken there either."""
    return types.jsonrpc_message_adapter.validate_json(json.dumps(entry), by_name=False)


def _message_in(line: bytes) -> types.JSONRPCMessage | bytes:
    """Gives a line's message, or the error to answer with."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _refused(line)
    if isinstance(message, types.JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        # A request whose id is none: the SDK takes it for a notification, and never answers.
        return _refused(line)
    return message


def _refused(line: bytes) -> bytes:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "not JSON in UTF-8")
    number = value.get("id") if isinstance(value, dict) else None
    return _error(
        number if arrays.is_id(number) else None, types.INVALID_REQUEST, "not a JSON-RPC 2.0 message"
    )


def _error(number: object, code: int, message: str) -> bytes:
    return json.dumps(arrays.error(number, message, code)).encode()


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    """A peer that goes away ends the connection, and is no error."""
    with suppress(ConnectionError, EOFError, ClosedResourceError, anyio.BrokenResourceError):
        await work()

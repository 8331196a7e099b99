"""JSON arrays of messages over HTTP: each message is asked like one that came alone, and all have one answer."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import mcp_types as types

from pcpd.gate import arrays

BYTES = 2 * 1024 * 1024
"""Of an array: larger messages are sent alone."""
AT_A_TIME = 8

_ARRAY = re.compile(rb"[ \t\r\n]*\[")

Ask = Callable[[arrays.Message], Awaitable[bytes | None]]


def is_batch(body: bytes) -> bool:
    """Tells whether a body is a JSON array, if it is JSON at all."""
    return _ARRAY.match(body) is not None


async def answered(body: bytes, ask: Ask) -> tuple[int, bytes]:
    """Gives the HTTP status and body that answer an array; the body is empty where nothing in it asks.

    `ask` has one message served and gives its answer as JSON, or None for what has none.
    """
    if len(body) > BYTES:
        return 413, _whole(f"an array has {BYTES} bytes at most: send large messages alone")
    try:
        entries = json.loads(body)
    except (ValueError, RecursionError):
        return 400, _whole("not JSON in UTF-8", types.PARSE_ERROR)
    if fault := arrays.fault_of(entries):
        return 400, _whole(fault)
    taken = arrays.parts(entries)
    turns = asyncio.Semaphore(AT_A_TIME)

    async def asked(message: arrays.Message) -> bytes | None:
        async with turns:
            return await ask(message)

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(asked(message)) for message in taken.messages]
    answers = [json.dumps(each).encode() for each in taken.errors]
    answers += [answer for each in asking if (answer := each.result())]
    return (200, arrays.joined(answers)) if answers else (202, b"")


def _whole(message: str, code: int = types.INVALID_REQUEST) -> bytes:
    return json.dumps(arrays.error(None, message, code)).encode()

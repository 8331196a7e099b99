"""The least that uvicorn can serve: an empty answer to everybody, or another app. Owners are measured beside it."""

import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from benchmark.machine import until

Messages = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: dict[str, Any], receive: Messages, send: Send) -> None:
    """Answers every request with nothing."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
    elif scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


@contextmanager
def serving(what: str = "benchmark.bare:app") -> Iterator[tuple[int, str]]:
    """Runs an app in a process of its own; gives the process and its address, once it answers.

    With the parser and the event loop that pcpd has, whatever else is installed here.
    """
    # Not a socket that is handed over: uvicorn then does not know it for TCP, and answers wait 40 ms for each other.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--log-level", "critical", "--no-access-log", "--http", "h11", "--loop", "asyncio"]
    server = subprocess.Popen([sys.executable, "-m", "uvicorn", *options, "--port", str(port), what])
    try:
        until(lambda: _listens(port), timeout_s=30)
        yield server.pid, f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False

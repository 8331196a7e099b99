"""The least that uvicorn can serve: an empty answer to everybody. Owners are measured beside it."""

import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
def serving() -> Iterator[tuple[int, str]]:
    """Runs it in a process of its own; gives the process and its address, once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--log-level",
            "critical",
            "--fd",
            str(listening.fileno()),
        ]
        server = subprocess.Popen([*command, "benchmark.bare:app"], pass_fds=[listening.fileno()])
    try:
        yield server.pid, address
    finally:
        server.terminate()
        server.wait()

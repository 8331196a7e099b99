"""The least that uvicorn can serve: an empty answer to everybody, or another app. Owners are measured beside it."""

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
def serving(what: str = "benchmark.bare:app") -> Iterator[tuple[int, str]]:
    """Runs an app in a process of its own; gives the process and its address, once it answers.

    With the parser and the event loop that pcpd has, whatever else is installed here.
    """
    # With its protocol named, as asyncio sends at once only then: answers in two writes would wait 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--log-level",
            "critical",
            "--no-access-log",
            "--http",
            "h11",
            "--loop",
            "asyncio",
            "--fd",
            str(listening.fileno()),
        ]
        server = subprocess.Popen([*command, what], pass_fds=[listening.fileno()])
    try:
        yield server.pid, address
    finally:
        server.terminate()
        server.wait()

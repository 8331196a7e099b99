"""The least that uvicorn can serve: nothing. The idle owner is measured beside it."""

from collections.abc import Awaitable, Callable
from typing import Any


async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], _send: object) -> None:
    """Answers no request; only the server's own idling costs anything."""
    if scope["type"] == "lifespan":
        await receive()

"""Cursors: where an answer ended, as text that a client hands back. They hold values of the last row shown."""

import base64
import binascii
import json
from typing import Any

from pcpd.errors import Usage


def write(values: tuple[Any, ...]) -> str:
    """Gives the cursor for what follows the row with these values."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str | None, types: tuple[type, ...]) -> tuple[Any, ...] | None:
    """Gives the values that a cursor holds, or None without one. Raises `Usage` (`index.cursor`)."""
    if cursor is None:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (binascii.Error, UnicodeError, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or [type(value) for value in values] != list(types):
        raise Usage("index.cursor", "that cursor is none of ours", hint="leave it out to begin at the start")
    return tuple(values)

"""Cursors of lists that go on after a row: they hold the values that order it, and nothing that hangs on time."""

from typing import Any

from pcpd.index import cursors


def write(query: str, values: tuple[Any, ...]) -> str:
    """Gives the cursor for what follows the row with these values in the list of that name."""
    return cursors.encode(query, {"after": list(values)})


def read(query: str, cursor: str | None, start: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gives the values that a cursor holds, of the types of `start`, or `start` without one.

    Raises `Invalid` (`cursor.invalid`) unless `write` made it for the same list.
    """
    if cursor is None:
        return start
    values = cursors.decode(query, cursor).get("after")
    if not isinstance(values, list) or [type(value) for value in values] != [type(value) for value in start]:
        cursors.refuse()
    return tuple(values)

"""Reads what clients send as a tool's arguments: what is plausible is taken, what is not is refused with a hint.

Models send numbers as text, text as numbers, lists as JSON text, and null for what they leave out. A name that the
tool does not have is refused, because what it was meant to say would be lost.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from pcpd.errors import Usage

Arguments = Mapping[str, Any]

_HINT = "see the tool's input schema"
_LARGEST = 2**53


def check_names(arguments: Arguments, known: Collection[str]) -> None:
    """Raises `Usage` (`tool.argument`) for an argument that the tool does not have."""
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise Usage(
            "tool.argument",
            f"the tool has no argument `{unknown[0][:60]}`",
            hint=f"it has: {', '.join(known)}",
        )


def text(arguments: Arguments, name: str) -> str:
    """Gives an argument that must be there."""
    value = optional(arguments, name)
    if value is None:
        raise Usage("tool.argument", f"`{name}` is missing", hint=_HINT)
    return value


def optional(arguments: Arguments, name: str) -> str | None:
    """Gives a text, or None where there is none. A number is taken as it is written."""
    value = arguments.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    if value is not None and not isinstance(value, str):
        raise Usage("tool.argument", f"`{name}` must be a string", hint=_HINT)
    return value


def number(arguments: Arguments, name: str, default: int, *, least: int = 0, most: int = _LARGEST) -> int:
    """Gives a whole number, at most `most`; text and decimals that say one are taken."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    whole = _whole(value)
    if whole is None or whole < least:
        raise Usage("tool.argument", f"`{name}` must be a whole number, at least {least}", hint=_HINT)
    return min(whole, most)


def texts(arguments: Arguments, name: str) -> list[str] | None:
    """Gives a list of texts: also from one text with commas, or from JSON text."""
    value = arguments.get(name)
    if value is None:
        return None
    found = _listed(value) if isinstance(value, str) else value
    if not isinstance(found, list) or not all(_is_plain(item) for item in found):
        raise Usage(
            "tool.argument", f"`{name}` must be a list of strings", hint='such as ["heating", "house"]'
        )
    said = [item if isinstance(item, str) else json.dumps(item) for item in found]
    return [item.strip() for item in said if item.strip()]


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.strip()
        digits = value.removesuffix(".0").removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
            return None
        return int(value.removesuffix(".0"))
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _is_plain(item: object) -> bool:
    return isinstance(item, str | int | float) and not isinstance(item, bool)


def _listed(said: str) -> object:
    try:
        return json.loads(said) if said.lstrip().startswith("[") else said.split(",")
    except (ValueError, RecursionError):
        return said.split(",")

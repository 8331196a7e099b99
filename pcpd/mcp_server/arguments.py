"""Reads what clients send as a tool's arguments: what is plausible is taken, what is not is refused with a hint.

Models send numbers as text, text as numbers, lists as JSON text, and null for what they leave out. A name that the
tool does not have is refused, because what it was meant to say would be lost; a few that can mean but one are taken.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pcpd.errors import Usage
from pcpd.mcp_server.uris import PAGES, path_of

Arguments = Mapping[str, Any]

_HINT = "see the tool's input schema"
_LARGEST = 2**53
_LONGEST_NAME = 60

_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "query": ("q",),
    "path": ("page", "file", "uri"),
    "content": ("text", "body", "new_text"),
    "old_text": ("old", "old_str"),
}
"""Other names under which models send an argument, and which could mean nothing else."""

_NEAR: Mapping[str, str] = {
    "max_results": "limit",
    "top_k": "limit",
    "count": "limit",
    "directory": "folder",
    "version": "if_version",
    "revision": "rev",
    "operation": "op",
    "new_path": "to",
    "destination": "to",
}
"""What may have been meant by names that are refused: not the same thing everywhere, or too different."""

_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}


def named(arguments: Arguments, known: Collection[str]) -> dict[str, Any]:
    """Gives the arguments under the tool's own names.

    Raises `Usage` (`tool.argument`) for one that the tool does not have; names it, and what may have been meant.
    """
    given = dict(arguments)
    for name in known:
        for other in _OTHER_NAMES.get(name, ()):
            if other in given and other not in known and given.get(name) is None:
                given[name] = given.pop(other)
    for name in given:
        if name not in known:
            raise Usage(
                "tool.argument",
                f"the tool has no argument `{name[:_LONGEST_NAME]}`",
                hint=f"{_meant(name[:_LONGEST_NAME], known)}it has: {', '.join(known)}",
            )
    return given


def text(arguments: Arguments, name: str) -> str:
    """Gives an argument that must be there; it may be empty."""
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


def page(arguments: Arguments, name: str = "path") -> str:
    """Gives the path of a page that must be named."""
    path = optional_page(arguments, name)
    if path is None:
        raise Usage("tool.argument", f"`{name}` is missing", hint="such as notes/boiler")
    return path


def optional_page(arguments: Arguments, name: str = "path") -> str | None:
    """Gives the path of a page, or None. Taken too: `/a/b`, `[[a/b|words]]`, `pcp://page/a/b`; acts take `a/b.md`."""
    said = (optional(arguments, name) or "").strip()
    link = _WIKI_LINK.fullmatch(said)
    if link:
        said = link[1].strip()
    elif said[: len(PAGES)].lower() == PAGES:
        said = path_of(said) or ""
    return said.removeprefix("/") or None


def version(arguments: Arguments, name: str = "if_version") -> str | None:
    """Gives the version that a change is based on, or None; quotes around it are left off."""
    return _unless_null((optional(arguments, name) or "").strip().strip('"'))


def cursor_of(arguments: Arguments) -> str | None:
    """Gives where a list goes on, or None for its beginning."""
    return _unless_null((optional(arguments, "cursor") or "").strip())


def number(arguments: Arguments, name: str, default: int, *, least: int = 0, most: int = _LARGEST) -> int:
    """Gives a whole number, at most `most`; text and decimals that say one are taken."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    whole = _whole(value)
    if whole is None or whole < least:
        raise Usage("tool.argument", f"`{name}` must be a whole number, at least {least}", hint=_HINT)
    return min(whole, most)


def truth(arguments: Arguments, name: str) -> bool:
    """Gives a truth value, false where there is none; text and numbers that say one are taken."""
    value = arguments.get(name)
    said = _TRUTHS.get(str(value).strip().lower()) if isinstance(value, bool | str | int) else None
    if value is not None and said is None:
        raise Usage("tool.argument", f"`{name}` must be true or false", hint=_HINT)
    return bool(said)


def choice(arguments: Arguments, name: str, options: Sequence[str]) -> str:
    """Gives one of the options, which must be named; case and hyphens do not matter."""
    said = text(arguments, name).strip().lower().replace("-", "_")
    if said not in options:
        raise Usage("tool.argument", f"`{name}` must be one of {', '.join(options)}", hint=_HINT)
    return said


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


def _unless_null(said: str) -> str | None:
    """Gives a text; None where it is empty, or where null was written as a word."""
    return None if said.lower() in {"", "null", "none"} else said


def _meant(name: str, known: Collection[str]) -> str:
    """Gives the question whether an argument of a similar name was meant, if there is one."""
    near = _NEAR.get(name.lower())
    found = [near] if near in known else get_close_matches(name.lower(), known, n=1)
    return f"did you mean `{found[0]}`? " if found else ""


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

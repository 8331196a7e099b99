"""Digests by which a proposal is known again: what a page says, whoever says it and when.

Source: pages.md §5 (what was rejected does not come back).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from pcpd.errors import Invalid
from pcpd.pages import frontmatter
from pcpd.pages.values import Plain, Value

Op: TypeAlias = Literal["change", "move", "remove"]

VOLATILE_KEYS = frozenset({"updated", "recorded_at", "source", "review"})
"""Keys that differ each time the same is proposed: who did it, and when."""


def digest_of(
    op: Op, target: str, *, page: bytes | None = None, to: str | None = None, base: str = ""
) -> str:
    """Gives the SHA-256 (hex) by which a proposal is known again, whoever makes it.

    It covers what is to be done to which page and, for a change, what the page would say, without its
    `VOLATILE_KEYS`. The version that a change is made over does not count; that of a move or a removal does,
    since it is all that they were judged by.
    """
    said = ["change", target, page_digest(page or b"")] if op == "change" else [op, target, to or "", base]
    return hashlib.sha256(json.dumps(said).encode("utf-8", "surrogatepass")).hexdigest()


def page_digest(data: bytes) -> str:
    """Gives the SHA-256 (hex) of what a page says, without `VOLATILE_KEYS`, BOM, line ends and YAML's layout."""
    try:
        keys = frontmatter.read(data)
        body = frontmatter.split(data).body.replace("\r\n", "\n")
    except Invalid:
        return hashlib.sha256(b"raw\n" + data).hexdigest()
    kept = {key: _typed(value) for key, value in keys.items() if key not in VOLATILE_KEYS}
    text = json.dumps([kept, body], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _typed(value: Value) -> object:
    """Gives a value in which what stands without quotes is no string, as in YAML."""
    if isinstance(value, Plain):
        return {"\0": str(value)}
    if isinstance(value, Mapping):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_typed(item) for item in value]
    return value

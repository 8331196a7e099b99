"""Where a list of results goes on: opaque to callers, checked when it comes back.

A cursor freezes what the order hangs on beside the pages themselves: statistics, bounds and thresholds. So a page that
is not edited meanwhile keeps its place, and none comes twice or is left out, whatever happens to others.
"""

import base64
import binascii
import hashlib
import json
import zlib
from typing import NoReturn

from pcpd.errors import Invalid

_BYTES = 8_192
_TEXT = 65_536


def encode(query: str, state: dict[str, object]) -> str:
    """Gives the cursor of a query's state (JSON values)."""
    record = json.dumps([_digest(query), state], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(zlib.compress(record.encode(), 6)).decode().rstrip("=")


def decode(query: str, cursor: str) -> dict[str, object]:
    """Gives the state back. Raises `Invalid` (`cursor.invalid`) unless it was made for this query."""
    if len(cursor) > _BYTES or not cursor.isascii():
        refuse()
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _TEXT)
        record = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        refuse()
    if unpacker.unconsumed_tail or not isinstance(record, list) or len(record) != 2:
        refuse()
    digest, state = record
    if digest != _digest(query) or not isinstance(state, dict):
        refuse()
    return state


def refuse() -> NoReturn:
    """Says that a cursor cannot be used."""
    raise Invalid(
        "cursor.invalid",
        "the cursor does not belong to this query, or was changed",
        hint="leave the cursor out to begin with the first results again",
    )


def _digest(query: str) -> str:
    return hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:16]

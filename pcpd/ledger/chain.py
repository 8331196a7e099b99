"""The keyed chain of the audit trail, as arithmetic: what a row's mac covers and how the end is sealed.

`mac(n) = HMAC-SHA256(key, mac(n-1) ‖ columns of row n)`; the first row follows a mac over the trail's id. The
seal covers the number of rows and the last mac, so that rows cut off the end show.
"""

import hmac
import json
from collections.abc import Sequence

Column = str | int | float

_payload = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def first_head(key: bytes, trail_id: str) -> bytes:
    """Gives the mac that the first row of a trail follows."""
    return hmac.digest(key, b"pcpd trail\0" + trail_id.encode(), "sha256")


def mac_of(key: bytes, before: bytes, columns: Sequence[Column]) -> bytes:
    """Gives a row's mac; `columns` are all others as they are stored, in the table's order."""
    return hmac.digest(key, before + _payload(columns).encode(), "sha256")


def seal_of(key: bytes, rows: int, head: bytes) -> bytes:
    """Gives the seal of a trail that ends after `rows` rows with the mac `head`."""
    return hmac.digest(key, b"pcpd seal\0" + rows.to_bytes(8, "big") + head, "sha256")


def equal(a: bytes, b: bytes) -> bool:
    """Compares two macs in constant time."""
    return hmac.compare_digest(a, b)

"""Cursors of a search, sealed for the one who gets them: they hold numbers of rows, which tell of hidden pages.

A cursor is put under a key of this device and of its reader, with a fresh nonce, so that neither what it holds nor
whether two are the same can be seen, and none can be made up or used by somebody else.
"""

import base64
import binascii
import hashlib
import hmac

from pcpd.index import cursors
from pcpd.ledger import keys
from pcpd.memory.memory import Caller, Memory

_KEY = "cursors"
_NONCE = 12
_MAC = 12
_LONGEST = 16_384
_BLOCK = 64
"""Bytes: cursors are filled up to a multiple of these, since a length tells something too."""


def seal(memory: Memory, caller: Caller, cursor: str | None) -> str | None:
    """Gives a cursor of the index as the caller gets it; None at the end of a list."""
    if cursor is None:
        return None
    key, nonce = _key_of(memory, caller), memory.ledger.entropy(_NONCE)
    hidden = _mixed(key, nonce, _filled(_bytes(cursor)))
    return _text(nonce + _mac(key, nonce, hidden) + hidden)


def unseal(memory: Memory, caller: Caller, cursor: str | None) -> str | None:
    """Gives the index's cursor back. Raises `Invalid` (`cursor.invalid`) unless `seal` made it for this caller."""
    if cursor is None:
        return None
    if len(cursor) > _LONGEST or not cursor.isascii():
        cursors.refuse()
    try:
        sealed = _bytes(cursor)
    except (binascii.Error, ValueError):
        cursors.refuse()
    nonce, mac, hidden = sealed[:_NONCE], sealed[_NONCE : _NONCE + _MAC], sealed[_NONCE + _MAC :]
    key = _key_of(memory, caller)
    if not hmac.compare_digest(mac, _mac(key, nonce, hidden)):
        cursors.refuse()
    filled = _mixed(key, nonce, hidden)
    return _text(filled[2 : 2 + int.from_bytes(filled[:2], "big")])


def _key_of(memory: Memory, caller: Caller) -> bytes:
    device = memory.ledger.known_keys.get(_KEY) or keys.get_or_create(memory.ledger, _KEY)
    return hashlib.blake2b(caller.principal.name.encode("utf-8", "surrogatepass"), key=device).digest()


def _filled(data: bytes) -> bytes:
    told = len(data).to_bytes(2, "big") + data
    return told + bytes(-len(told) % _BLOCK)


def _mixed(key: bytes, nonce: bytes, data: bytes) -> bytes:
    stream = hashlib.shake_256(b"hide" + key + nonce).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))


def _mac(key: bytes, nonce: bytes, hidden: bytes) -> bytes:
    return hmac.digest(b"seal" + key, nonce + hidden, "sha256")[:_MAC]


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

"""Opaque ids for places in a numbered sequence (changes, audit rows): a reader sends one back to go on from there.

An id is the number, with the epoch of its sequence and a digest of who reads and what they may see, encrypted as one
block of 128 bits under a key of this device. So a reader cannot see gaps between numbers, which would tell of what
they may not see, and cannot make ids up. An id of another index, another reader or other grants is recognised as such.
"""

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass

from pcpd.policy.decide import Principal, Visibility

_ROUNDS = 4  # makes a pseudorandom function a strong pseudorandom permutation (Luby and Rackoff, 1988)
_HALF = 8
_BLOCK = struct.Struct(">I4sQ")
_LENGTH = 22


@dataclass(frozen=True, slots=True)
class Positions:
    """The ids of one reader in one index."""

    key: bytes
    epoch: int
    reader: bytes

    @classmethod
    def of(cls, key: bytes, epoch: int, principal: Principal, visible: Visibility) -> "Positions":
        """Gives the ids of a principal who may see just that."""
        slices = sorted(
            (each.partition, each.category, each.sensitive, each.hidden) for each in visible.slices
        )
        text = repr((principal.name, principal.is_controller, visible.everything, visible.hidden, slices))
        return cls(key, epoch, hashlib.blake2b(text.encode(), key=key, digest_size=4).digest())

    def write(self, seq: int) -> str:
        """Gives the id of a number."""
        block = _BLOCK.pack(self.epoch, self.reader, seq)
        left, right = block[:_HALF], block[_HALF:]
        for number in range(_ROUNDS):
            left, right = right, _mixed(left, self._round(number, right))
        return base64.urlsafe_b64encode(left + right).decode().rstrip("=")

    def read(self, text: str) -> int | None:
        """Gives the number of an id; None for one that is none of these."""
        if len(text) != _LENGTH or not text.isascii():
            return None
        try:
            block = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
        except binascii.Error:
            return None
        left, right = block[:_HALF], block[_HALF:]
        for number in reversed(range(_ROUNDS)):
            left, right = _mixed(right, self._round(number, left)), left
        epoch, reader, seq = _BLOCK.unpack(left + right)
        return seq if (epoch, reader) == (self.epoch, self.reader) else None

    def _round(self, number: int, half: bytes) -> bytes:
        return hmac.digest(self.key, bytes([number]) + half, "sha256")[:_HALF]


def _mixed(half: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(half, mask, strict=True))

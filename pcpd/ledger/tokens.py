"""Tokens: 256 random bits that prove a principal, shown once, kept as an Argon2id hash.

`pcp_<8 hex digits>_<43 URL-safe characters>`: the digits find the row and may be shown, the rest is secret. A
check takes about 20 ms and 19 MiB, so one runs at a time, only after the digits matched, and a token that
passed is remembered by its SHA-256 in memory until it is revoked.
"""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from pcpd.errors import Broken
from pcpd.ledger.issued import Issued
from pcpd.ledger.ledger import Ledger
from pcpd.policy.principals import check_principal

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SECRET_BYTES = 32
PREFIX_BYTES = 4
MEMORY_KIB = 19 * 1024
PASSES = 2
LANES = 1

_TOKEN = re.compile(r"pcp_([0-9a-f]{8})_[A-Za-z0-9_-]{43}", re.ASCII)
_COLUMNS = "id, principal, label, created_at, revoked_at"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made: the only time that it is seen."""

    token: str = field(repr=False)
    id: str


def create(ledger: Ledger, principal: str, *, label: str = "") -> NewToken:
    """Makes a token for a principal; `label` says to people what it is for.

    Raises `Invalid` (`principal.invalid`).
    """
    check_principal(principal)
    secret = base64.urlsafe_b64encode(ledger.entropy(SECRET_BYTES)).rstrip(b"=").decode()
    prefix = _free_prefix(ledger)
    made = NewToken(token=f"pcp_{prefix}_{secret}", id=f"tok_{prefix}")
    with ledger.verified.checking:
        digest = _hasher().hash(made.token, salt=ledger.entropy(16))
    with ledger.transaction() as tx:
        tx.execute(
            "INSERT INTO tokens (id, prefix, hash, principal, label, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (made.id, prefix, digest, principal, label, ledger.stamp()),
        )
    return made


def verify(ledger: Ledger, token: str) -> str | None:
    """Gives the principal that a token proves; None for one that is malformed, unknown, wrong or revoked."""
    issued = recognise(ledger, token)
    return None if issued is None or issued.revoked_at is not None else issued.principal


def remembered(ledger: Ledger, token: str) -> Issued | None:
    """Gives what is known of a token that passed the slow check since this process began; takes microseconds."""
    return ledger.verified.recall(hashlib.sha256(token.encode("utf-8", "replace")).digest())


def recognise(ledger: Ledger, token: str) -> Issued | None:
    """Gives what the ledger knows of a token that is right, also when it was revoked; else None.

    The time it takes tells at most whether the 8 digits, which are no secret, are known.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    digest = hashlib.sha256(token.encode()).digest()
    issued = ledger.verified.recall(digest)
    if issued is not None:
        return issued
    with ledger.reading() as connection:
        row = connection.execute("SELECT id, hash FROM tokens WHERE prefix = ?", (match[1],)).fetchone()
    if row is None:
        return None
    with ledger.verified.checking:
        issued = ledger.verified.recall(digest)  # the one that waited for us may have had the same token
        if issued is not None:
            return issued
        return _remember(ledger, row["id"], digest) if _matches(row["hash"], token) else None


def revoke(ledger: Ledger, id_or_principal: str) -> int:
    """Revokes a token by its id, or all of a principal; gives how many were good until now."""
    with ledger.lock:
        with ledger.transaction() as tx:
            done = tx.execute(
                "UPDATE tokens SET revoked_at = ? WHERE (id = ? OR principal = ?) AND revoked_at IS NULL",
                (ledger.stamp(), id_or_principal, id_or_principal),
            ).rowcount
        ledger.verified.forget()
    return done


def listing(ledger: Ledger) -> list[Issued]:
    """Gives every token that was ever issued, oldest first, without anything secret."""
    with ledger.reading() as connection:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created_at, rowid").fetchall()  # noqa: S608
    return [Issued(*row) for row in rows]


def _remember(ledger: Ledger, id_: str, digest: bytes) -> Issued | None:
    # Read again under the lock that `revoke` holds: it may have come while the hash was computed.
    with ledger.reading() as connection:
        row = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (id_,)).fetchone()  # noqa: S608
        if row is None:
            return None
        issued = Issued(*row)
        ledger.verified.remember(digest, issued)
    return issued


def _matches(digest: str, token: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(digest, token)
    except (VerificationError, InvalidHashError):
        return False


def _free_prefix(ledger: Ledger) -> str:
    for _ in range(16):
        prefix = ledger.entropy(PREFIX_BYTES).hex()
        with ledger.reading() as connection:
            taken = connection.execute("SELECT 1 FROM tokens WHERE prefix = ?", (prefix,)).fetchone()
        if taken is None:
            return prefix
    raise Broken("ledger.prefix", "no free prefix for a token was found", hint="try again")


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)

"""Ids: one type each, so that a page's id is never taken for a context's. Source: pages.md §3 and §4."""

import re
from datetime import datetime
from typing import Self

from pcpd.errors import Invalid

_CONTEXT = re.compile(r"ctx_\d{1,12}_[0-9a-f]{8}", re.ASCII)
_PROPOSAL = re.compile(r"[0-9a-f]{20}", re.ASCII)


class ContextId(str):
    """The id of a context, `ctx_<unix seconds>_<8 hex digits>`: names the device-local folders of a vault.

    Raises `Invalid` (`id.invalid`) for anything else.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Checks and wraps `text`."""
        if not _CONTEXT.fullmatch(text):
            raise Invalid(
                "id.invalid",
                f"{text[:80]!r} is not the id of a context",
                hint="it looks like ctx_1763000000_a3f2b1c4",
            )
        return super().__new__(cls, text)


class PageId(str):
    """The stable id of a page, as its front matter says: any text of 1 to 255 characters on one line.

    Raises `Invalid` (`id.invalid`).
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Checks and wraps `text`."""
        if not 1 <= len(text) <= 255 or not text.isprintable() or text != text.strip():
            raise Invalid("id.invalid", f"{text[:80]!r} cannot be the id of a page")
        return super().__new__(cls, text)


class ProposalId(str):
    """The id of a proposal: the first 20 hex digits of the digest of what it proposes.

    Raises `Invalid` (`id.invalid`).
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Checks and wraps `text`."""
        if not _PROPOSAL.fullmatch(text):
            raise Invalid(
                "id.invalid", f"{text[:80]!r} is not the id of a proposal", hint="it is 20 hex digits"
            )
        return super().__new__(cls, text)


def new_context_id(now: datetime, entropy: bytes) -> ContextId:
    """Makes the id of a new context from the moment `now` (aware) and four random bytes."""
    return ContextId(f"ctx_{int(now.timestamp())}_{entropy[:4].hex()}")

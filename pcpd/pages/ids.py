"""Ids: one type each, so that a page's id is never taken for a token's. Source: pages.md §3 and §4."""

import re
from datetime import datetime
from typing import ClassVar, Self

from pcpd.errors import Invalid


class _Stamped(str):
    """An id `<prefix>_<unix seconds>_<8 hex digits>`. Raises `Invalid` (`id.invalid`) for anything else."""

    __slots__ = ()
    prefix: ClassVar[str]

    def __new__(cls, text: str) -> Self:
        """Checks and wraps `text`."""
        if not re.fullmatch(cls.prefix + r"_\d{1,12}_[0-9a-f]{8}", text, re.ASCII):
            raise Invalid(
                "id.invalid",
                f"{text[:80]!r} is not a {cls.__name__}",
                hint=f"it looks like {cls.prefix}_1763000000_a3f2b1c4",
            )
        return super().__new__(cls, text)

    @classmethod
    def new(cls, now: datetime, entropy: bytes) -> Self:
        """Makes one from the moment `now` (aware) and four random bytes."""
        return cls(f"{cls.prefix}_{int(now.timestamp())}_{entropy[:4].hex()}")


class ContextId(_Stamped):
    """The id of a context: names the device-local folders of a vault."""

    __slots__ = ()
    prefix = "ctx"


class TokenId(_Stamped):
    """The id of a credential; not secret."""

    __slots__ = ()
    prefix = "tok"


class ProposalId(_Stamped):
    """The id of a proposal, which names its file."""

    __slots__ = ()
    prefix = "prp"


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


def new_context_id(now: datetime, entropy: bytes) -> ContextId:
    """Makes the id of a new context, `ctx_<unix>_<8 hex>`, from the moment and four random bytes."""
    return ContextId.new(now, entropy)

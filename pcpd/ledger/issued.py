"""A token as the ledger knows it, and the memory of those that were checked."""

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issued:
    """A token that was issued. Times are RFC 3339 UTC; `revoked_at` is None while it is good."""

    id: str
    principal: str
    label: str
    created_at: str
    revoked_at: str | None


class Verified:
    """Tokens that passed the slow check, by their SHA-256; lost with the process. Any thread may use it.

    `checking` is held by the one slow check that may run at a time.
    """

    def __init__(self) -> None:
        """Begins empty."""
        self.checking = threading.Lock()
        self._known: dict[bytes, Issued] = {}

    def recall(self, digest: bytes) -> Issued | None:
        """Gives the token with that SHA-256, if it was checked."""
        return self._known.get(digest)

    def remember(self, digest: bytes, issued: Issued) -> None:
        """Keeps a checked token. As many as were issued at most: only right ones come here."""
        self._known[digest] = issued

    def forget(self) -> None:
        """Lets all be checked again, as after a revocation."""
        self._known = {}

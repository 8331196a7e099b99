"""The brakes: a pause cuts every agent off at once, or one of them, until the person ends it.

A pause is in force before it is written down, so that a full disk cannot keep it from working, and is read again at
the owner's start. It takes no grant and no token away.
"""

import threading

from pcpd.errors import Denied
from pcpd.ledger import pauses
from pcpd.ledger.ledger import Ledger
from pcpd.ledger.pauses import EVERYBODY
from pcpd.policy import principals


class PausedError(Denied):
    """A call of one who is paused, `principal`."""

    def __init__(self, principal: str) -> None:
        super().__init__(
            "access.paused",
            f"the person has paused {principal}: nothing is read or written until they end that",
            hint="the person can with `pcpd resume`; then ask again",
        )
        self.principal = principal


class Brakes:
    """Who is paused now. Any thread may use it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._paused = pauses.listing(ledger)

    @property
    def paused(self) -> dict[str, str]:
        """Who is paused, `*` for everybody with a token, and since when."""
        return dict(self._paused)

    def since(self, principal: str) -> str | None:
        """Gives since when a principal is cut off; None where it is not."""
        paused = self._paused
        found = [at for each, at in paused.items() if each == EVERYBODY or principals.covers(each, principal)]
        return min(found, default=None)

    def check(self, principal: str) -> None:
        """Raises `PausedError` (`access.paused`) for one who is paused."""
        if self._paused and self.since(principal) is not None:
            raise PausedError(principal)

    def pause(self, principal: str, at: str) -> None:
        """Cuts a principal off, or everybody. Raises `Broken` when the pause holds only until this owner ends."""
        with self._lock:
            self._paused = {principal: at} | self._paused
            pauses.begin(self._ledger, principal, at)

    def resume(self, principal: str | None) -> int:
        """Ends a principal's pause, or every one with None; gives how many there were."""
        with self._lock:
            ended = pauses.end(self._ledger, principal)
            self._paused = pauses.listing(self._ledger)
        return ended

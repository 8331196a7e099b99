"""Where news of the vault come from: the contract of the three ways to watch, by events or by polling."""

from typing import Protocol

from pcpd.vault.ignore import Ignore


class WatchFailed(Exception):
    """The system refuses events: a limit is reached, or it has none. The text says which, and what to do."""


class Source(Protocol):
    """Notes in a `Pending` what happens in the vault. Only `start` and `stop` are called by other threads."""

    def start(self) -> None:
        """Begins to watch; what happens after it returned is noted. Raises `WatchFailed`, or OSError."""

    def stop(self) -> None:
        """Ends all threads. May be called twice."""

    def trouble(self) -> str:
        """Says why nothing is noted any more, as a clause; empty while all is well."""

    def watch_all(self, ignore: Ignore) -> None:
        """Looks again which folders there are under these rules. Raises `WatchFailed`."""

    def watch_below(self, folder: str) -> None:
        """Watches a folder that appeared, with all that is below and not ignored. Raises `WatchFailed`."""

    def unwatch(self, folder: str) -> None:
        """Forgets a folder that went away, with all that was below."""

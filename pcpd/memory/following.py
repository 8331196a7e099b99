"""The acts by which a caller follows changes: a stream of events, and change notices of single pages.

What changed is found by `subscribe`; here it is decided whether the caller may follow at all, and audit rows are
written. A stream has two rows, one when it is opened and one when it is closed; a subscription has one, and so has
each look that gave its caller notices.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pcpd.errors import Denied
from pcpd.memory import subscribe
from pcpd.memory.account import audited
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.subscribe import Event, News

PATHS_NOTED = 1000
"""Pages that the audit row of a closed stream names; the events of all are counted."""


@dataclass
class Given:
    """What a stream has given to its caller so far, for the audit row that is written when it is closed."""

    counts: Counter[str] = field(default_factory=Counter)
    categories: set[str] = field(default_factory=set)
    paths: dict[str, None] = field(default_factory=dict)

    def add(self, news: News) -> None:
        """Counts what one look gave."""
        self.counts["resets"] += news.is_reset
        self.counts["events"] += len(news.events)
        self.categories.update(event.category for event in news.events)
        for event in news.events[: max(0, PATHS_NOTED - len(self.paths))]:
            self.paths[event.path] = None


def open_stream(memory: Memory, caller: Caller, cursor: str | None, *, limit: int) -> News:
    """Gives the first news of a stream. Raises `Denied` (`access.denied`) for a caller that may read nothing."""
    with audited(memory, caller, "open_events"):
        news = next_news(memory, caller, cursor, limit=limit)
        if news is None:
            raise Denied(
                "access.denied",
                f"{caller.principal.name} may not read anything here",
                hint="the person can give a grant with `pcpd grant`",
            )
        return news


def next_news(memory: Memory, caller: Caller, cursor: str | None, *, limit: int) -> News | None:
    """Gives what is new on an open stream; None when its caller may not read anything any more."""
    if memory.visible_to(caller).is_empty:
        return None
    return subscribe.since(memory, caller, cursor, limit=limit)


def close_stream(memory: Memory, caller: Caller, given: Given, *, seconds: float) -> None:
    """Writes the audit row of a stream that was open for so long."""
    with audited(memory, caller, "close_events") as note:
        note.counts = {**given.counts, "seconds": int(seconds)}
        note.categories = frozenset(given.categories)
        note.paths = tuple(given.paths)


def note_subscription(memory: Memory, caller: Caller, *, resources: int) -> None:
    """Writes the audit row of a subscription to so many resources. Which ones is not written down: an agent may
    subscribe to any name, also to one of a page that it may not see."""
    with audited(memory, caller, "subscribe") as note:
        note.counts = {"resources": resources}


def note_notices(memory: Memory, caller: Caller, events: Sequence[Event]) -> None:
    """Writes the audit row of change notices, for the changes that they tell; none where they tell none."""
    if not events:
        return
    with audited(memory, caller, "resource_updated") as note:
        note.paths = tuple(dict.fromkeys(event.path for event in events))
        note.categories = frozenset(event.category for event in events)
        note.counts = {"results": len(note.paths)}

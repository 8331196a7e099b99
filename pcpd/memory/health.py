"""How a run is: what `status` tells, long work under way, losses that wait for a person, strangers that knocked."""

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

WINDOW_S = 10.0


@dataclass(frozen=True, slots=True)
class Work:
    """Long work under way: what, how much is done and how much there is, in pages or files."""

    what: str
    done: int
    total: int


@dataclass
class Health:
    """What `status` tells of the run: when the index was last proved complete, and what needs a person.

    `committed_at` is this run's last commit.
    """

    ready: bool = False
    proved_at: datetime | None = None
    in_step: bool = False
    committed_at: datetime | None = None
    notices: dict[str, str] = field(default_factory=dict)
    work: Work | None = None

    def notice(self, topic: str, text: str | None) -> None:
        """Says something under a topic, or takes it back with None or an empty text."""
        if text:
            self.notices[topic] = text
        else:
            self.notices.pop(topic, None)


@dataclass
class Losses:
    """Removals of the last seconds, as (monotonic seconds, count), and the files kept back."""

    recent: deque[tuple[float, int]] = field(default_factory=deque)
    held: frozenset[str] = frozenset()

    def in_window(self, now: float) -> int:
        """Counts the removals that passed within the last 10 s."""
        while self.recent and self.recent[0][0] < now - WINDOW_S:
            self.recent.popleft()
        return sum(count for _, count in self.recent)


Kind = tuple[str, str, str]
"""What refused knocks are told apart by: the refusal's code, the principal, the channel."""


@dataclass
class Gathered:
    """Refused knocks of one kind that no audit row tells yet. `first` and `next_row` in monotonic seconds."""

    next_row: float
    waiting: int = 0
    first: float = 0.0
    last: float = 0.0
    last_at: str = ""


@dataclass
class Knocks:
    """Refused knocks by kind. `lock` is held by whoever looks at them or changes them, and never for long."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    kinds: dict[Kind, Gathered] = field(default_factory=dict)

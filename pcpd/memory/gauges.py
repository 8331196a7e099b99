"""The vault in numbers, for whoever watches the owner over time."""

from dataclasses import dataclass

from pcpd.index import outbox, tables
from pcpd.ledger import trail
from pcpd.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class Gauges:
    """Numbers of one vault now. `oldest_s` is how long the first change waits for its commit.

    `committed_at`: this run's last commit, in seconds since 1970; None before the first.
    """

    pages: int
    attachments: int
    problems: int
    proposed: int
    index_bytes: int
    waiting: int
    oldest_s: float
    committed_at: float | None
    audit_rows: int
    in_step: bool
    held: int
    notices: int


def gauges(memory: Memory) -> Gauges:
    """Reads the numbers; takes about a millisecond."""
    with memory.index.reader() as conn:
        counts, due = tables.counts(conn), outbox.waiting(conn)
    now_ns, committed = memory.clock.now_ns(), memory.health.committed_at
    return Gauges(
        pages=counts.pages,
        attachments=counts.attachments,
        problems=counts.problems,
        proposed=counts.hidden,
        index_bytes=memory.index.size_bytes(),
        waiting=len(due),
        oldest_s=max(0, now_ns - min((each.first_ns for each in due), default=now_ns)) / 1e9,
        committed_at=committed.timestamp() if committed else None,
        audit_rows=trail.end(memory.ledger)[1],
        in_step=memory.health.in_step and not memory.watch_trouble(),
        held=len(memory.losses.held),
        notices=len(memory.health.notices),
    )

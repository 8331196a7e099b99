"""Refused knocks and greetings in the audit trail, gathered so that a flood of them cannot fill the ledger.

The first of a kind (code, principal, channel) is a row at once; those that follow within a minute are one row,
which tells how many, over how long, and when the last one came. Source: pages.md §4 and §6.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pcpd.errors import PcpError
from pcpd.ledger.audit import AuditRow
from pcpd.memory.health import Gathered, Kind
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z

ACTION = "knock"
UNKNOWN = "unknown"
"""The principal of whoever proved none. What a stranger calls itself is never written down."""
EVERY_S = 60.0
MOST_KINDS = 256

log = logging.getLogger("pcpd")


@dataclass(frozen=True, slots=True)
class _Due:
    kind: Kind
    gathered: Gathered

    def row(self) -> AuditRow:
        code, principal, channel = self.kind
        return AuditRow(
            at=self.gathered.last_at,
            principal=principal,
            action=ACTION,
            channel=channel,
            outcome=code,
            counts={"refused": self.gathered.waiting},
            duration_ms=round((self.gathered.last - self.gathered.first) * 1000, 3),
        )


def note(memory: Memory, code: str, *, principal: str = "", channel: str) -> None:
    """Notes one refused knock. Waits for the row's commit where one is due, and takes microseconds where not.

    `code` is the refusal's; `principal` is one that a token proved, such as a revoked one. Not for an event
    loop. A ledger that cannot be written raises nothing, since the caller is refused all the same: it is logged,
    and counted again for the next row.
    """
    now = memory.clock.monotonic()
    with memory.knocks.lock:
        gathered = _of_kind(memory, (code, principal or UNKNOWN, channel), now)
        if not gathered.waiting:
            gathered.first = now
        gathered.waiting += 1
        gathered.last, gathered.last_at = now, to_z(memory.clock.now())
        due = _taken(memory, now, lambda each: each.next_row <= now)
    _write(memory, due)


def write_due(memory: Memory) -> None:
    """Writes the rows whose minute has passed, for whoever is about to look at the trail."""
    now = memory.clock.monotonic()
    with memory.knocks.lock:
        due = _taken(memory, now, lambda each: each.next_row <= now)
    _write(memory, due)


def write_all(memory: Memory) -> None:
    """Writes every row that waits, at the owner's end."""
    with memory.knocks.lock:
        due = _taken(memory, memory.clock.monotonic(), lambda _each: True)
    _write(memory, due)


def _of_kind(memory: Memory, kind: Kind, now: float) -> Gathered:
    """Gives the gathering of a kind. Over the bound the principal is not told apart any more."""
    kinds = memory.knocks.kinds
    if kind not in kinds and len(kinds) >= MOST_KINDS:
        for stale in [each for each, seen in kinds.items() if not seen.waiting and seen.next_row <= now]:
            del kinds[stale]
        if len(kinds) >= MOST_KINDS:
            kind = (kind[0], UNKNOWN, kind[2])
    return kinds.setdefault(kind, Gathered(next_row=now))


def _taken(memory: Memory, now: float, is_due: Callable[[Gathered], bool]) -> list[_Due]:
    """Takes what is due out of the gathering; the next row of these kinds is a minute away."""
    kinds = memory.knocks.kinds
    due = [_Due(kind, seen) for kind, seen in kinds.items() if seen.waiting and is_due(seen)]
    for each in due:
        kinds[each.kind] = Gathered(next_row=now + EVERY_S)
    return due


def _write(memory: Memory, due: Iterable[_Due]) -> None:
    for each in due:
        try:
            memory.trail.write(each.row())
        except PcpError as error:
            log.error("%s: refused knocks could not be written down: %s", error.code, error.message)
            _give_back(memory, each)


def _give_back(memory: Memory, due: _Due) -> None:
    """Lets what could not be written wait for the next row of its kind."""
    lost = due.gathered
    with memory.knocks.lock:
        now = memory.knocks.kinds.setdefault(due.kind, Gathered(next_row=lost.next_row + EVERY_S))
        if not now.waiting:
            now.last, now.last_at = lost.last, lost.last_at
        now.first = lost.first
        now.waiting += lost.waiting

"""How much each agent may write within an hour, so that one that runs wild is held before it has filled the vault.

Counted in memory, and read again from the audit trail at the owner's start, so that a restart gives nothing back. The
person has no quota.
"""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pcpd.errors import Unavailable
from pcpd.ledger.audit import AuditRow
from pcpd.pages.times import parse_time, to_z

HOUR = timedelta(hours=1)
PROPOSE = "propose"
"""The audit rows of proposals."""
KINDS = {"writes": "writes", "proposals": "proposals", "bytes": "bytes written"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one principal may do within an hour; 0: as much as it likes."""

    writes: int = 2_000
    proposals: int = 500
    bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Use:
    """One act: when it began, and what it counts for."""

    at: datetime
    writes: int = 0
    proposals: int = 0
    bytes: int = 0


@dataclass
class Quotas:
    """What each principal did within the last hour. Any thread may use it."""

    limits: Limits = field(default_factory=Limits)
    _used: dict[str, deque[Use]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, principal: str, use: Use) -> None:
        """Counts an act that is about to be done.

        Raises `Unavailable` (`quota.reached`), with the time from which on it fits in `details` (`until`).
        """
        with self._lock:
            mine = self._used.setdefault(principal, deque())
            while mine and not use.at - HOUR < mine[0].at:
                mine.popleft()
            for kind in KINDS:
                self._check(principal, mine, use, kind)
            mine.append(use)

    def give_back(self, principal: str, use: Use) -> None:
        """Forgets an act that was counted and not done."""
        with self._lock:
            mine = self._used.get(principal, deque())
            if use in mine:
                mine.remove(use)

    def recall(self, rows: Iterable[AuditRow]) -> None:
        """Counts what an earlier owner's audit rows tell, oldest first; one that was lost counts as a write."""
        for row in rows:
            is_lost, size = row.outcome == "owner.lost", row.counts.get("bytes", 0)
            is_proposal = row.action == PROPOSE and size > 0
            is_write = not is_proposal and (size > 0 or row.counts.get("changed", 0) > 0 or is_lost)
            if is_write or is_proposal:
                use = Use(parse_time(row.at), int(is_write), int(is_proposal), size)
                self._used.setdefault(row.principal, deque()).append(use)

    def _check(self, principal: str, mine: deque[Use], use: Use, kind: str) -> None:
        limit, wanted = getattr(self.limits, kind), getattr(use, kind)
        if not limit or not wanted:
            return
        used = sum(getattr(each, kind) for each in mine)
        if used + wanted <= limit:
            return
        if wanted > limit:
            raise Unavailable(
                "quota.reached",
                f"{principal} may have {limit:,} {KINDS[kind]} within an hour, and this alone is {wanted:,}",
                hint=f"write less at once; the person can raise `quota_{kind}` in config.toml",
            )
        until, left = use.at, used + wanted - limit
        for each in mine:
            left -= getattr(each, kind)
            if left <= 0:
                until = each.at + HOUR
                break
        raise Unavailable(
            "quota.reached",
            f"{principal} has had {used:,} {KINDS[kind]} within the last hour, of {limit:,} that are allowed",
            hint=f"it is possible again at {to_z(until)}; the person can raise `quota_{kind}` in config.toml",
            details={"until": to_z(until)},
        )

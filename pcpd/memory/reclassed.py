"""Tells when git brought other facts to pages: whoever can push to the vault's remote decides what agents may see.

A page whose partition, category, sensitivity or review changed on disk is noted in the index. When its version is
to be committed and HEAD has it already, it came by git (a pull, a merge, a checkout, a commit of the person's own):
that is a row of the audit trail, and a notice in `status` for a week. Source: pages.md §4.
"""

import hashlib
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pcpd.errors import PcpError
from pcpd.index import events, outbox
from pcpd.index.events import State
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.memory.identity import CONTEXT_FILE
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy.decide import Facts, Principal, decide
from pcpd.sqlite import Reads, Transaction

KIND = "reclassed"
ACTION = "reclassify"
CHANNEL = "disk"
SHOWN_FOR = timedelta(days=7)
NAMED = 5
MOST = 1_000
"""Pages that one row names."""
ALL = 1_000_000

log = logging.getLogger("pcpd")


@dataclass(frozen=True, slots=True)
class Reclassed:
    """A page whose facts git changed."""

    before: Facts
    after: Facts


def note(memory: Memory, tx: Transaction, before: Mapping[str, State], after: Mapping[str, State]) -> None:
    """Notes what the facts of pages were that differ now. The cause is the page's file, or else the context's."""
    if memory.history is None:
        return
    by_context: dict[str, Sequence[object]] = {}
    at_ns = memory.clock.now_ns()
    for path, was in before.items():
        now = after.get(path)
        if now is None or now.facts == was.facts:
            continue
        if now.version != was.version:
            outbox.add(tx, KIND, {"cause": f"{path}.md", "before": {path: was.facts}, "at": at_ns})
        else:
            by_context[path] = was.facts
    if by_context:
        outbox.add(tx, KIND, {"cause": CONTEXT_FILE, "before": by_context, "at": at_ns})


def tell(memory: Memory, unchanged: Collection[str]) -> None:
    """Writes an audit row of the pages that these files reclassified, which HEAD had already when they were looked at.

    Done again after a kill, it is the same row.
    """
    with memory.index.reader() as conn:
        found, notes = _found(conn, set(unchanged))
    if not found:
        return
    paths = [each.after.path for each in found][:MOST]
    row = AuditRow(
        at=to_z(memory.clock.now()),
        principal="unknown",
        action=ACTION,
        channel=CHANNEL,
        outcome="ok",
        categories=tuple(sorted({facts.category for each in found for facts in (each.before, each.after)})),
        object_ids=tuple(audit.object_numbers(memory.ledger, paths)),
        counts={"pages": len(found), "opened": sum(_is_opened(memory, each) for each in found)},
        id=f"git_{hashlib.sha256(json.dumps(notes).encode()).hexdigest()[:24]}",
    )
    try:
        memory.trail.write(row)
    except PcpError as error:
        # Tried again, it would take the person's own edits, which are in HEAD by now, for git's.
        log.error("%s: what git reclassified could not be written down: %s", error.code, error.message)


def settle(tx: Transaction, files: Collection[str]) -> None:
    """Forgets the notes of files whose versions are in git now."""
    gone = set(files)
    outbox.done(tx, [each.id for each in outbox.pending(tx, KIND, ALL) if _read(each.payload)[0] in gone])


def notice(memory: Memory) -> str | None:
    """Gives what a person must know of the last week; None where git reclassified nothing."""
    since = to_z(memory.clock.now() - SHOWN_FOR)
    rows = audit.rows(memory.ledger, Filter(action=ACTION, channel=CHANNEL, since=since), limit=MOST)
    if not rows:
        return None
    numbers = list(dict.fromkeys(number for row in rows for number in row.object_ids))
    named = audit.object_paths(memory.ledger, numbers[:NAMED])
    few = ", ".join(named.values()) + (", …" if len(numbers) > NAMED else "")
    pages, opened = (sum(row.counts[key] for row in rows) for key in ("pages", "opened"))
    return (
        f"git brought another partition, type, sensitivity or review to {pages} pages in the last 7 days ({few}); "
        f"{opened} of them were opened to agents by that. Who did it: `pcpd log PAGE`"
    )


def _found(reads: Reads, files: set[str]) -> tuple[list[Reclassed], list[object]]:
    """Gives the pages whose facts these files changed, and the notes that say so."""
    found: dict[str, Reclassed] = {}
    notes: list[object] = []
    for each in outbox.pending(reads, KIND, ALL):
        cause, before = _read(each.payload)
        if cause not in files:
            continue
        now = events.states(reads, [f"{path}.md" for path in before])
        for path, facts in before.items():
            if path in now and list(now[path].facts) != facts and path not in found:
                found[path] = Reclassed(_facts(path, facts), _facts(path, now[path].facts))
        notes.append(each.payload)
    return list(found.values()), notes


def _is_opened(memory: Memory, page: Reclassed) -> bool:
    """Tells whether some agent may read the page now that its facts did not let read it before."""
    access, now = memory.grants(), memory.clock.now()
    return any(
        decide(access, who, "read", page.after, now).allowed
        and not decide(access, who, "read", page.before, now).allowed
        for who in {Principal(grant.principal) for grant in access.grants}
    )


def _facts(path: str, facts: Sequence[object]) -> Facts:
    partition, category, sensitivity, hidden = facts
    return Facts(path, str(partition), str(category), str(sensitivity), bool(hidden))


def _read(payload: Any) -> tuple[str, dict[str, list[object]]]:
    """Gives a note's cause, and the facts of each page before."""
    return payload["cause"], payload["before"]

"""The audit trail as a person sees it, and what an agent may see of it: its own acts.

The person gets every row, with paths beside the opaque numbers. An agent gets its own rows, with the paths of
pages that it may see today, and without numbers, from which it could tell how much others do.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pcpd.errors import Conflict, Denied, Usage
from pcpd.index import cursors, listing
from pcpd.ledger import audit, proof, retention, trail
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.ledger.proof import Proof
from pcpd.ledger.trail import Activity
from pcpd.memory import strangers
from pcpd.memory.account import ABOUT, MANAGEMENT, audited, managed
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import present_page
from pcpd.memory.positions import Positions
from pcpd.pages.times import normal_time, to_z

ACTION = "read_audit"
YOUNGEST = timedelta(days=1)
CHANGES = frozenset({"write_page", "edit_page", "move_page", "remove_page", "restore"})
"""The acts that change pages."""


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which rows are wanted: those to which every value that is given here applies.

    `page` names a page by path, name or id. Times are written as in pages.

    The outcome `refused` is every one but ok. `since` is inclusive, `until` exclusive.
    """

    principal: str | None = None
    action: str | None = None
    channel: str | None = None
    outcome: str | None = None
    category: str | None = None
    page: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of the trail as it is shown.

    `paths` has the path of each page that the row names, or None for one that was erased.

    For an agent `object_ids` are left out, and `paths` has only those of pages that it may see today: a row of a
    refusal may name a page that is there and that the agent was not told of. `about` names the principals and tokens
    that a decision of the person is about.
    """

    id: str
    at: str
    principal: str
    action: str
    channel: str
    categories: tuple[str, ...]
    outcome: str
    object_ids: tuple[int, ...]
    paths: tuple[str | None, ...]
    counts: Mapping[str, int]
    duration_ms: float
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditList:
    """Some rows; the cursor for older ones, or None at the beginning; the position from which to follow."""

    rows: tuple[AuditEntry, ...]
    cursor: str | None
    position: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What each principal did, in numbers."""

    principals: tuple[Activity, ...]


def rows(
    memory: Memory,
    caller: Caller,
    asked: AuditQuery,
    *,
    cursor: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> AuditList:
    """Gives rows, newest first, older ones with a `cursor`; or those that came `after` a position, oldest first.

    An empty `after` is the trail's beginning. Raises `Usage` (`audit.both-ways`), `Invalid` (`cursor.invalid` for a
    cursor or position of another trail, `time.invalid`).
    """
    with audited(memory, caller, ACTION) as note:
        if cursor is not None and after is not None:
            raise Usage(
                "audit.both-ways",
                "`cursor` leads to older rows and `after` to newer ones, so they cannot be sent together",
                hint="send one of them",
            )
        if caller.principal.is_controller:
            strangers.write_due(memory)
            memory.grants()  # an edit of access.yaml that nobody looked at yet has its row now
        positions, end = _positions(memory, caller)
        before, later = _number(positions, cursor), _number(positions, after)
        wanted = _wanted(memory, caller, asked)
        found = (
            audit.rows(memory.ledger, wanted, before=before, after=later, limit=limit + 1) if wanted else []
        )
        shown, is_cut = found[:limit], len(found) > limit
        if later is not None:
            end = shown[-1].number if is_cut else max([end, later, *(row.number for row in shown)])
        told = _told(memory, caller, positions, shown)
        note.paths = tuple({path: None for row in told for path in row.paths if path is not None})
        note.categories = frozenset(category for row in told for category in row.categories)
        note.counts = {"results": len(told)}
    older = positions.write(shown[-1].number) if is_cut and later is None else None
    return AuditList(tuple(told), older, positions.write(end))


def summary(memory: Memory, caller: Caller, asked: AuditQuery) -> Summary:
    """Gives what each principal did, in sum. For the person. Raises as `rows` does."""
    if not caller.principal.is_controller:
        raise Denied(
            "access.denied",
            "only the person may see what everybody did",
            hint="list your own rows instead: GET /vault/v1/audit",
        )
    strangers.write_due(memory)
    wanted = _wanted(memory, caller, asked)
    if wanted is not None and asked.channel is None:
        # What the person decides neither reads nor writes pages.
        wanted = replace(wanted, not_channel=MANAGEMENT)
    return Summary(tuple(trail.activity(memory.ledger, wanted, writes=CHANGES)) if wanted else ())


def verify(memory: Memory) -> Proof:
    """Checks the trail against its chain, and names each row that was edited, put in or cut.

    What is wrong stands in `status` until a check finds the trail whole.
    """
    found = proof.verify_chain(memory.ledger)
    memory.health.notice(
        "audit",
        None if found.ok else "the audit trail was tampered with: `pcpd audit --verify` names each row",
    )
    return found


def prune(memory: Memory, before: str) -> int:
    """Removes rows older than a time for good; gives how many. What is left stays provable, and says what went.

    Raises `Invalid` (`time.invalid`), `Usage` (`audit.too-young` for rows of the last day),
    `Conflict` (`audit.tampered`).
    """
    with managed(memory, "prune_audit") as note:
        moment = normal_time(before)
        if moment > to_z(memory.clock.now() - YOUNGEST):
            raise Usage(
                "audit.too-young",
                "rows of the last day are kept: what agents did in it is counted against their quotas",
                hint="name a time that is longer ago",
            )
        if not verify(memory).ok:
            raise Conflict(
                "audit.tampered",
                "the trail was tampered with: what shows that is not removed",
                hint="`pcpd audit --verify` names each row",
            )
        removed = retention.prune(memory.ledger, moment)
        note.counts = {"removed": removed}
    return removed


def listen(memory: Memory, wake: Callable[[], None]) -> Callable[[], None]:
    """Has `wake` called when rows were added, on any thread; gives what ends that."""
    return memory.trail.listeners.add(wake)


def _positions(memory: Memory, caller: Caller) -> tuple[Positions, int]:
    """Gives the caller's names for places in the trail, and the number of its last row."""
    name, number = trail.end(memory.ledger)
    who = repr(("audit", caller.principal.name, caller.principal.is_controller)).encode()
    reader = hashlib.blake2b(who, digest_size=4).digest()
    return Positions(memory.events_key, int(name or "0", 16), reader), number


def _number(positions: Positions, text: str | None) -> int | None:
    if not text:
        return None if text is None else 0
    number = positions.read(text)
    if number is None and replace(positions, epoch=0).read(text) == 0:
        return 0  # a position from before the first row
    return cursors.refuse() if number is None else number


def _wanted(memory: Memory, caller: Caller, asked: AuditQuery) -> Filter | None:
    """Gives what to look for in the ledger; None where nothing can be found."""
    number = None if asked.page is None else _object_number(memory, caller, asked.page)
    if asked.page is not None and number is None:
        return None
    principal = asked.principal
    is_person = caller.principal.is_controller
    if not is_person:
        if principal not in {None, caller.principal.name}:
            return None
        principal = caller.principal.name
    return Filter(
        principal=principal,
        action=asked.action,
        channel=asked.channel,
        outcome=asked.outcome,
        category=asked.category,
        object_id=number,
        since=None if asked.since is None else normal_time(asked.since),
        until=None if asked.until is None else normal_time(asked.until),
        not_channel=None if is_person else MANAGEMENT,
    )


def _object_number(memory: Memory, caller: Caller, text: str) -> int | None:
    """Gives the number of the page that `text` names, as far as the caller may know; for the person also a past one."""
    page = str(present_page(memory, caller, text) or text.removesuffix(".md"))
    if not caller.principal.is_controller:
        with memory.index.reader() as conn:
            if page not in listing.among(conn, memory.visible_to(caller), [page]):
                return None
    return audit.object_number(memory.ledger, page)


def _told(
    memory: Memory, caller: Caller, positions: Positions, found: Sequence[AuditRow]
) -> list[AuditEntry]:
    paths = audit.object_paths(memory.ledger, {number for row in found for number in row.object_ids})
    is_person = caller.principal.is_controller
    about = {number: path.removeprefix(ABOUT) for number, path in paths.items() if path.startswith(ABOUT)}
    if not is_person:
        with memory.index.reader() as conn:
            seen = listing.among(conn, memory.visible_to(caller), paths.values())
        paths = {number: path for number, path in paths.items() if path in seen}
    return [
        AuditEntry(
            id=row.id if is_person else positions.write(row.number),
            at=row.at,
            principal=row.principal,
            action=row.action,
            channel=row.channel,
            categories=row.categories,
            outcome=row.outcome,
            object_ids=row.object_ids if is_person else (),
            paths=tuple(
                paths.get(number)
                for number in row.object_ids
                if number not in about and (is_person or number in paths)
            ),
            counts=row.counts,
            duration_ms=row.duration_ms,
            about=tuple(about[number] for number in row.object_ids if number in about),
        )
        for row in found
    ]

"""The acts of review: the queue of what waits, one proposal with what it would change, and what is decided about it.

For whoever may read and review what the page is and what it would become; the person always. What somebody may not
review does not exist for them. Source: pages.md §5.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Literal

from pcpd.errors import NotFound, PcpError, Usage
from pcpd.index import proposals
from pcpd.index.proposals import ProposalRow
from pcpd.memory import cases, verdicts
from pcpd.memory.account import audited
from pcpd.memory.carry_out import Doing, Written, once
from pcpd.memory.cases import Case, Sight
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.read import Fit
from pcpd.pages.merge import Clash
from pcpd.pages.times import to_z
from pcpd.pages.worddiff import Span, word_diff

Decision = Literal["approve", "reject", "expire"]
DECISIONS: tuple[Decision, ...] = ("approve", "reject", "expire")
STATES = {"open": ("open", "invalid"), "rejected": ("rejected",), "all": proposals.STATES}
"""What a queue can be asked for, and the states of the rows that are in it."""
KEPT = timedelta(days=90)
"""How long a proposal waits before it counts as expired; `expire` then takes it away."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One proposal. `op`: new, change, move, remove, or empty for a file that is none. `id` names it in acts.

    `path` is where the page is now, `to` where a move would bring it; `by` made it at `at` (RFC 3339 UTC), `also_by`
    proposed the same. `state`: open; stale (the page changed since; it merges); conflict (it does not merge, or the
    place is taken); orphan (the page is gone); invalid (the file is no proposal); rejected, by `decided_by`, for
    `reason`. `is_expired`: it has waited for too long.
    """

    id: str
    op: str
    path: str
    to: str
    by: str
    also_by: tuple[str, ...]
    at: str
    summary: str
    state: str
    category: str
    is_expired: bool = False
    decided_by: str = ""
    decided_at: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """Some of what waits, the oldest first, how many there are, and the cursor to go on with, or None."""

    items: tuple[Waiting, ...]
    total: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One proposal whole: the page before and after (None: there is none), what changes word by word, what clashes.

    Where it does not merge, `after` is what was proposed. `digest` names what was shown, for `if_digest`.
    """

    waiting: Waiting
    before: str | None
    after: str | None
    diff: tuple[Span, ...]
    clashes: tuple[Clash, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of one decision. `outcome`: approved, rejected, expired, or `refused`: `code` and `why` then say why.

    `path` is where the page is now, `version` the page's version, empty where there is none.
    """

    id: str
    outcome: str
    path: str = ""
    version: str = ""
    why: str = ""
    code: str = ""


def queue(
    memory: Memory,
    caller: Caller,
    *,
    limit: int = 50,
    cursor: str | None = None,
    state: str = "open",
    fit: Fit | None = None,
) -> Queue:
    """Lists what waits for review, the oldest first; with `state` what was rejected, or all.

    Raises `Usage` (`proposal.state`), `Invalid` (`cursor.invalid`).
    """
    states = _states(state)
    with audited(memory, caller, "list_proposals") as note:
        with memory.index.reader() as conn:
            sight = Sight(memory, caller)
            mine = (row for row in proposals.listed(conn, states, cursor) if sight.covers(conn, row))
            rows = list(islice(mine, limit + 1))
            total = sight.count(conn, states)
        seen = [_seen(memory, caller, row) for row in rows[:limit]]
        shown = rows[: limit if fit is None else min(limit, fit([each for each in seen if each]))]
        items = tuple(each for each in seen[: len(shown)] if each is not None)
        note.paths = tuple(dict.fromkeys(each.path for each in items))
        note.categories = frozenset(each.category for each in items if each.category)
        note.counts = {"results": len(items), "total": total}
    more = proposals.cursor_after(states, shown[-1]) if shown and len(rows) > len(shown) else None
    return Queue(items, total, more)


def show(memory: Memory, caller: Caller, id_: str) -> Shown:
    """Gives one proposal with what it would change. Raises `NotFound` (`proposal.not-found`)."""
    with audited(memory, caller, "show_proposal") as note:
        case = _case(memory, caller, id_)
        waiting = _waiting(memory, case)
        note.paths = (waiting.path,)
        note.categories = frozenset({waiting.category} - {""})
    before = _text(case.present.data) if case.present is not None and case.row.op != "new" else None
    after = _text(verdicts.outlook(case))
    return Shown(waiting, before, after, word_diff(before or "", after or ""), case.clashes, _digest(case))


def decide_all(
    memory: Memory,
    caller: Caller,
    ids: Sequence[str],
    decision: Decision,
    *,
    reason: str = "",
    page: bytes | None = None,
    if_digest: str | None = None,
) -> tuple[Decided, ...]:
    """Approves or rejects proposals, each with its own outcome; or takes away (`expire`) those that waited too long.

    Of a single one: `page` is the text that the page gets instead of the proposed one, and `if_digest` the digest of
    what was shown, so that nothing else is approved. A text for a page that changed since needs it. Raises `Usage`.
    """
    if (page is not None or if_digest is not None) and len(ids) != 1:
        raise Usage("proposal.one", "a text or a digest belongs to one proposal", hint="name one proposal")
    asked = _asked(verdicts.Asked(decision, reason, page, if_digest))

    def tried(id_: str) -> Decided:
        try:
            return _decided(memory, caller, id_, asked)
        except PcpError as error:
            return Decided(id_, "refused", why=error.message, code=error.code)

    return tuple(tried(each) for each in dict.fromkeys(ids))


def decide_one(memory: Memory, caller: Caller, id_: str, asked: verdicts.Asked) -> Decided:
    """Decides about one proposal, as `decide` does. Raises what keeps that from being done."""
    return _decided(memory, caller, id_, _asked(asked))


def expire(memory: Memory, caller: Caller) -> tuple[Decided, ...]:
    """Takes away all that has waited for longer than `KEPT`, as far as the caller may review it."""
    sight = Sight(memory, caller)
    with memory.index.reader() as conn:
        ids = [
            row.file
            for row in proposals.listed(conn, ("open",))
            if _is_expired(memory, row) and sight.covers(conn, row)
        ]
    return decide_all(memory, caller, ids, "expire")


def _asked(asked: verdicts.Asked) -> verdicts.Asked:
    """Gives what was asked, if it makes sense. Raises `Usage` (`proposal.decision`)."""
    if asked.decision not in DECISIONS:
        raise Usage(
            "proposal.decision", f"{asked.decision!r} is no decision", hint=f"one of: {', '.join(DECISIONS)}"
        )
    if asked.page is not None and asked.decision != "approve":
        raise Usage("proposal.decision", "only what is approved gets a text", hint="leave the text out")
    return asked


def _decided(memory: Memory, caller: Caller, id_: str, asked: verdicts.Asked) -> Decided:
    """Decides about one proposal. Raises what keeps that from being done."""
    one = replace(caller, key=f"{caller.key} {id_}") if caller.key else caller

    def act(doing: Doing) -> Written:
        attempts = verdicts.ATTEMPTS
        while True:
            attempts -= 1
            case = _case(memory, caller, id_)
            _check(memory, case, asked)
            try:
                return verdicts.carry(doing, case, asked)
            except PcpError as error:
                if error.code not in {"page.stale", "page.gone"}:
                    raise
                verdicts.refuse_decided(memory, case)
                if asked.if_digest is not None or not attempts:
                    raise

    written = once(memory, one, asked.decision, (id_, asked), act)
    return Decided(id_, written.outcome, written.path, written.version)


def _check(memory: Memory, case: Case, asked: verdicts.Asked) -> None:
    """Raises unless what is decided about is what the caller saw, and still waits."""
    if asked.if_digest is not None:
        if asked.if_digest != _digest(case):
            raise verdicts.changed(case)
    elif case.state == "rejected":
        raise verdicts.decided(case)
    if asked.decision == "expire" and not _is_expired(memory, case.row):
        raise verdicts.not_expired(case)


def _case(memory: Memory, caller: Caller, id_: str) -> Case:
    """Gives the proposal of that id, if the caller may review it."""
    with memory.index.reader() as conn:
        rows = proposals.find(conn, id_)
    found = [case for case in (cases.case_of(memory, row) for row in rows) if case is not None]
    mine = [case for case in found if cases.may_review(memory, caller, case)]
    if len(mine) > 1:
        raise Usage(
            "proposal.ambiguous",
            f"{len(mine)} proposals are called {id_[:80]!r}",
            hint="name one by its file, with `.md`",
        )
    if not mine:
        verdicts.refuse_past(memory, caller, id_)
        raise NotFound(
            "proposal.not-found",
            f"no proposal {id_[:200]!r} waits for review: there is none, or it was decided meanwhile",
            hint="the queue lists what waits",
        )
    return mine[0]


def _states(state: str) -> tuple[str, ...]:
    try:
        return STATES[state]
    except KeyError:
        raise Usage(
            "proposal.state", f"{state[:80]!r} is no state of a queue", hint=f"one of: {', '.join(STATES)}"
        ) from None


def _seen(memory: Memory, caller: Caller, row: ProposalRow) -> Waiting | None:
    case = cases.case_of(memory, row)
    if case is None or not cases.may_review(memory, caller, case):
        return None
    return _waiting(memory, case)


def _waiting(memory: Memory, case: Case) -> Waiting:
    row = case.row
    return Waiting(
        id=row.id,
        op=row.op,
        path=case.path,
        to=row.to,
        by=row.by,
        also_by=row.also_by,
        at=row.at,
        summary=row.summary or cases.title_of(case),
        state=case.state,
        category=cases.category_of(memory, case),
        is_expired=_is_expired(memory, row),
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        reason=row.reason,
    )


def _is_expired(memory: Memory, row: ProposalRow) -> bool:
    return row.state == "open" and row.at != "" and row.at < to_z(memory.clock.now() - KEPT)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _digest(case: Case) -> str:
    """Gives the digest of all that a decision is made by: the proposal, what is there now, and what would become."""
    parts = (
        case.file.version,
        case.present.version if case.present else "",
        case.path,
        case.row.to,
        case.state,
        hashlib.sha256(case.after or b"").hexdigest(),
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

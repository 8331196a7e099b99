"""How a decision about a proposal is carried out: page and proposal change together, in one act and one commit."""

from dataclasses import dataclass

from pcpd.errors import Conflict, Invalid, Usage
from pcpd.memory.carry_out import Doing, Step, Written, carry_out
from pcpd.memory.cases import Case, case_of, may_decide
from pcpd.memory.facts import facts_of
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import is_page
from pcpd.memory.propose import too_large
from pcpd.pages import proposal, reviewing
from pcpd.pages.ids import ProposalId
from pcpd.pages.page import SIZE_LIMIT, parse
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import parse_proposal, proposal_file
from pcpd.pages.times import to_z
from pcpd.vault.files import FileBytes
from pcpd.vault.inode import version_of

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: the decision, why, and for one alone the text instead and the digest of what was shown."""

    decision: str
    reason: str = ""
    page: bytes | None = None
    if_digest: str | None = None


def carry(doing: Doing, case: Case, asked: Asked) -> Written:
    """Does what was decided about a proposal. Raises `Conflict`, `Invalid`, `Usage`."""
    _note(doing, case)
    if asked.decision == "approve":
        return _approve(doing, case, asked)
    if asked.decision == "expire" or case.state == "invalid":
        return _take_away(doing, case, "expired" if asked.decision == "expire" else "rejected")
    return _reject(doing, case, asked.reason)


def outlook(case: Case) -> bytes | None:
    """Gives what the page would be, or what was proposed where that does not merge."""
    if case.after is None and case.row.op == "change":
        return parse_proposal(case.file.data).page
    return case.after


def refuse_decided(memory: Memory, case: Case) -> None:
    """Raises `Conflict` (`proposal.decided`) where somebody else decided while this was on its way."""
    now = case_of(memory, case.row)
    if now is None or (now.row.state != case.row.state):
        raise decided(now or case)


def refuse_past(memory: Memory, caller: Caller, id_: str) -> None:
    """Tells the person what became of a proposal that does not wait any more, as far as history knows."""
    if not caller.principal.is_controller or memory.history is None:
        return
    try:
        file = proposal_file(ProposalId(id_))
    except Invalid:
        return
    past = memory.history.log(file, limit=1)
    if past:
        # Right after the decision its commit is not there yet: the last version is then the proposal itself.
        is_told = past[0].change == "removed"
        who = f" by {past[0].principal} on {to_z(past[0].at)}" if is_told and past[0].principal else ""
        raise Conflict(
            "proposal.decided",
            f"the proposal {id_} does not wait any more: it was decided{who}",
            hint="`pcpd log` shows what became of the page",
        )


def decided(case: Case) -> Conflict:
    """Gives the error for what somebody else has decided."""
    row = case.row
    how = f"{row.decided_by} rejected it on {row.decided_at}" if row.state == "rejected" else "it was decided"
    return Conflict(
        "proposal.decided",
        f"the proposal for {case.path} does not wait any more: {how}",
        hint="look at it again; to decide anew, send the digest of what is shown",
    )


def changed(case: Case) -> Conflict:
    """Gives the error for what is not as it was shown any more."""
    return Conflict(
        "proposal.changed",
        f"the proposal for {case.path}, or the page, has changed since it was shown",
        hint="look at it again and decide on what it says now",
    )


def not_expired(case: Case) -> Conflict:
    """Gives the error for what has not waited long enough."""
    return Conflict(
        "proposal.not-expired",
        f"the proposal for {case.path} has not expired",
        hint="approve it or reject it",
    )


def _approve(doing: Doing, case: Case, asked: Asked) -> Written:
    if case.state == "invalid":
        raise Invalid("proposal.invalid", case.row.summary, hint="reject it: that removes the file")
    if case.page is None or case.present is None:
        raise Conflict(
            "proposal.orphan",
            f"the page {case.row.target} that this would change is gone",
            hint="reject it, or write the page anew",
        )
    if asked.page is not None and case.row.op not in {"new", "change"}:
        raise Usage("proposal.decision", "a move or a removal has no text", hint="leave the text out")
    if case.row.op == "move":
        return _approve_move(doing, case)
    if case.row.op == "remove":
        return _approve_removal(doing, case, asked)
    return _approve_text(doing, case, asked)


def _approve_text(doing: Doing, case: Case, asked: Asked) -> Written:
    """The page becomes what was proposed, or the text that came with the approval, marked as approved."""
    page, present = _there(case)
    is_blind = case.after is None or (asked.page is not None and case.is_stale)
    if is_blind and (asked.page is None or asked.if_digest is None):
        raise Conflict(
            "proposal.conflict",
            f"{page} has changed since this was proposed, and the two do not merge by themselves",
            hint="look at it, and approve it with the text that the page shall have",
            details={"clashes": sorted({clash.key for clash in case.clashes})},
        )
    data = _marked(doing, case, asked.page if asked.page is not None else (case.after or b""))
    _require_review(doing, case, data)
    meant = Written(str(page), version_of(data), "approved")
    steps = [Step(page.file, data, present), *_gone(case)]
    return carry_out(doing, steps, meant, _subject("Approve", case))


def _marked(doing: Doing, case: Case, data: bytes) -> bytes:
    """Writes the approval into the page; one whose front matter cannot be edited may be changed without."""
    if len(data) > SIZE_LIMIT:
        raise too_large(case.path)
    by, at = _who(doing)
    try:
        return reviewing.approved(data, by, at)
    except Invalid:
        if case.row.op == "new":
            raise
        return data


def _approve_move(doing: Doing, case: Case) -> Written:
    page, present = _there(case)
    to = PagePath(case.row.to)
    if case.state == "conflict" or not is_page(doing.memory, to):
        raise Conflict("page.exists", f"{page} cannot be moved: {to} is taken, or no place for a page")
    steps = [Step(to.file, present.data, None), Step(page.file, None, present), *_gone(case)]
    meant = Written(str(to), present.version, "approved")
    return carry_out(doing, steps, meant, _subject("Approve", case), move=True)


def _approve_removal(doing: Doing, case: Case, asked: Asked) -> Written:
    page, present = _there(case)
    if case.is_stale and asked.if_digest is None:
        raise Conflict(
            "proposal.stale",
            f"{page} has changed since its removal was proposed",
            hint="look at it again, and send the digest of what was shown",
        )
    meant = Written(str(page), "", "approved")
    return carry_out(doing, [Step(page.file, None, present), *_gone(case)], meant, _subject("Approve", case))


def _reject(doing: Doing, case: Case, reason: str) -> Written:
    """The text stays where it is, so that the same does not come back."""
    by, at = _who(doing)
    mark = reviewing.rejected if case.row.op == "new" else proposal.rejected
    data = mark(case.file.data, by, at, reason)
    version = version_of(data) if case.row.op == "new" else case.present.version if case.present else ""
    meant = Written(case.path, version, "rejected")
    return carry_out(doing, [Step(case.row.file, data, case.file)], meant, _subject("Reject", case))


def _take_away(doing: Doing, case: Case, outcome: str) -> Written:
    step = Step(case.row.file, None, case.file)
    return carry_out(doing, [step], Written(case.path, "", outcome), _subject("Take away", case))


def _there(case: Case) -> tuple[PagePath, FileBytes]:
    if case.page is None or case.present is None:
        raise decided(case)
    if case.present.stat.size > SIZE_LIMIT:
        raise too_large(case.page)
    return case.page, case.present


def _gone(case: Case) -> list[Step]:
    """The proposal's own file goes with what it asked for; history keeps it."""
    return [] if case.row.op == "new" else [Step(case.row.file, None, case.file)]


def _require_review(doing: Doing, case: Case, data: bytes) -> None:
    """Raises where an edited text would bring the page to where the caller may not review."""
    memory, caller = doing.memory, doing.caller
    facts = facts_of(memory.context, parse(PagePath(case.path), data))
    if not caller.principal.is_controller and not may_decide(memory, caller, facts):
        raise Conflict(
            "proposal.out-of-reach",
            f"{caller.principal.name} may not review what {case.path} would become",
            hint="the person can decide it",
        )


def _note(doing: Doing, case: Case) -> None:
    if case.page is not None and case.present is not None:
        doing.note.touched(facts_of(doing.memory.context, parse(case.page, case.present.data)))


def _subject(verb: str, case: Case) -> str:
    row = case.row
    what = {"new": row.target, "move": f"to move {case.path} to {row.to}", "remove": f"to remove {case.path}"}
    said = what.get(row.op, f"a change to {case.path}" if row.op else row.file)
    names = ", ".join(dict.fromkeys((row.by, *row.also_by)) if row.by else ())
    return f"{verb} {said}, proposed by {names}" if names else f"{verb} {said}"


def _who(doing: Doing) -> tuple[str, str]:
    return doing.caller.principal.name, to_z(doing.memory.clock.now())

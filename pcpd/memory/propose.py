"""What becomes of a write by a principal that may only propose: a page that is hidden, or a file beside the pages.

A new page lands at its path; a change, move or removal of one that is there in `.pcp/proposals/`. The same twice is one
proposal, and what was rejected is answered with the rejection. Source: pages.md §5.
"""

from dataclasses import replace

from pcpd.errors import Conflict, Denied, Invalid
from pcpd.index.proposals import ProposalRow, of_page
from pcpd.memory.carry_out import Doing, Step, Written, carry_out
from pcpd.memory.memory import Memory
from pcpd.pages import reviewing
from pcpd.pages.digest import digest_of
from pcpd.pages.ids import PageId
from pcpd.pages.page import SIZE_LIMIT, parse
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import (
    Act,
    Proposal,
    joined,
    parse_proposal,
    proposal_file,
    proposal_id,
    render_proposal,
)
from pcpd.pages.times import to_z
from pcpd.policy.decide import Facts
from pcpd.vault.files import FileBytes

ACTION = "propose"
FEATURE = "review"
ATTEMPTS = 3


def must_propose(doing: Doing, *sides: Facts, there: PagePath | None, wish: Facts | None = None) -> bool:
    """Tells whether an act on pages with these facts is a proposal, since the caller may not write on each of them.

    Notes what the act is about. A page that is `there` must be readable too: whoever may not read it learns by no
    answer that it exists. The hint of a refusal tells what grant would open a page with the facts of `wish`, by default
    the one that is refused; another one where the caller may not know that one's. Raises `Denied` (`access.denied`;
    `proposal.no-review` where nobody would review it).
    """
    memory, caller = doing.memory, doing.caller
    is_proposal = False
    for facts in sides:
        is_seen = there is None or memory.may(caller, "read", facts).allowed
        if not (is_seen and memory.may(caller, "write", facts).allowed):
            if not (is_seen and memory.may(caller, "propose", facts).allowed):
                raise _denied(doing, there, wish or facts)
            is_proposal = True
        doing.note.touched(facts)
    if is_proposal and FEATURE not in memory.context.features:
        name = caller.principal.name
        raise Denied(
            "proposal.no-review",
            f"{name} may only propose, and nobody reviews proposals in this vault",
            hint=f"the person can add `review` to `features` in .pcp/context.yaml, or `pcpd grant {name} --rights"
            " read,write`",
        )
    return is_proposal


def new_page(doing: Doing, page: PagePath, data: bytes) -> Written:
    """Proposes a new page: it lands at its path, hidden until it is approved.

    Where a page stands that the caller may not see, it is a proposal over that page, with the same answer. Raises
    `Denied` (`proposal.rejected`).
    """
    doing.note.action = ACTION
    digest = digest_of("change", page, page=data)
    meant = Written(str(page), "", "proposed", proposal=proposal_id(digest))
    present = read_file(doing.memory, page.file)
    if present is None:
        step = Step(page.file, reviewing.proposed(data, *_who(doing)), None)
        try:
            return carry_out(doing, [step], meant, f"Propose {page}")
        except Conflict:  # one that came at this moment tells no more than one that was there
            present = read_file(doing.memory, page.file)
            if present is None:
                raise
    known = of_page(parse(page, present.data), present.data)
    if known is not None and known.digest == digest:
        _refuse_rejected(known)
        return meant
    base = blob_of(doing.memory, page.file, present.data) if _is_own(doing, known) else ""
    proposal = _proposal(doing, Proposal("change", page, "", "", base=base, page=data))
    return replace(_propose(doing, proposal, present if base else None), version="")


def change(doing: Doing, page: PagePath, read: FileBytes, data: bytes) -> Written:
    """Proposes other bytes for a page. Raises `Denied` (`proposal.rejected`)."""
    return _over(doing, read, Proposal("change", page, "", "", page=data))


def move(doing: Doing, page: PagePath, to: PagePath, read: FileBytes) -> Written:
    """Proposes another path for a page. Raises as `change` does."""
    return _over(doing, read, Proposal("move", page, "", "", to=to))


def removal(doing: Doing, page: PagePath, read: FileBytes) -> Written:
    """Proposes that a page be removed. Raises as `change` does."""
    return _over(doing, read, Proposal("remove", page, "", ""))


def blob_of(memory: Memory, file: str, data: bytes) -> str:
    """Gives the id under which history has these bytes of a file; empty where none is kept."""
    return memory.history.store(file, data) if memory.history is not None else ""


def read_file(memory: Memory, file: str) -> FileBytes | None:
    """Gives a page's or a proposal's file as it is now, or None."""
    try:
        return memory.files.read(file, SIZE_LIMIT + 1)
    except FileNotFoundError:
        return None


def _over(doing: Doing, read: FileBytes, proposal: Proposal) -> Written:
    """Proposes something over the version of a page that was read."""
    page = proposal.target
    if read.stat.size > SIZE_LIMIT:
        raise too_large(page)
    base = blob_of(doing.memory, page.file, read.data)
    target_id = parse(page, read.data).id
    made = replace(proposal, base=base, target_id=_as_id(target_id))
    return replace(_propose(doing, _proposal(doing, made), read), version=read.version)


def _as_id(text: str | None) -> PageId | None:
    try:
        return PageId(text) if text else None
    except Invalid:  # what no proposal can hold finds nobody's page again
        return None


def _proposal(doing: Doing, proposal: Proposal) -> Proposal:
    by, at = _who(doing)
    return replace(proposal, by=by, at=at)


def _propose(doing: Doing, proposal: Proposal, over: FileBytes | None) -> Written:
    """Writes the file of a proposal, or adds one more name to it; what it is over must still be that."""
    doing.note.action = ACTION
    page = proposal.target
    meant = Written(str(page), "", "proposed", proposal=proposal.id)
    kept = [Step(page.file, over.data, over)] if over is not None else []
    attempts = ATTEMPTS
    while True:
        attempts -= 1
        step = _step(doing.memory, proposal)
        if step.is_kept:
            return meant
        try:
            return carry_out(doing, [step, *kept], meant, _subject(proposal))
        except Conflict as conflict:  # somebody proposed the same at this moment, unless it is the page
            if not attempts or conflict.details.get("file") == page.file:
                raise


def _step(memory: Memory, proposal: Proposal) -> Step:
    """Gives what becomes of the proposal's file. Raises `Denied` where the same was rejected."""
    file = proposal_file(proposal.id)
    known = read_file(memory, file)
    fresh = render_proposal(proposal)
    if len(fresh) > SIZE_LIMIT:
        raise too_large(proposal.target)
    if known is None:
        return Step(file, fresh, None)
    before = parse_proposal(known.data)
    if before.rejected is not None:
        raise rejected(before.rejected)
    if not before.is_open:
        return Step(file, fresh, known)
    return Step(file, joined(known.data, proposal.by, proposal.at), known)


def too_large(page: str) -> Invalid:
    """Gives the error for what is not read whole, and so cannot be kept whole."""
    return Invalid("proposal.too-large", f"{page}, or the proposal for it, has more than {SIZE_LIMIT} bytes")


def rejected(act: Act) -> Denied:
    """Gives the answer to what was rejected before: who rejected it, when, and why."""
    who = f"{act.by} rejected it on {act.at}" if act.by else "it was rejected"
    why = f": {act.reason}" if act.reason else ""
    return Denied(
        "proposal.rejected",
        f"the same was proposed before, and {who}{why}",
        hint="propose something else, or ask the person",
        details={"by": act.by, "at": act.at, "reason": act.reason},
    )


def _refuse_rejected(known: ProposalRow) -> None:
    if known.state == "rejected":
        raise rejected(Act(known.decided_by, known.decided_at, known.reason))


def _is_own(doing: Doing, known: ProposalRow | None) -> bool:
    """Tells whether the caller has proposed the page that stands there, and so knows what it says."""
    return known is not None and known.by == doing.caller.principal.name


def _denied(doing: Doing, there: PagePath | None, wish: Facts) -> Denied:
    if there is not None:
        doing.note.refused(there)
    name = doing.caller.principal.name
    return Denied(
        "access.denied",
        f"{name} may not write here: no grant gives {name} `write` here",
        hint=f"the person can allow it with `pcpd grant {name} --rights read,write{_where(doing, wish)}`",
    )


def _where(doing: Doing, facts: Facts) -> str:
    """Gives what a grant must name besides its rights to be for pages with these facts."""
    said = ""
    if facts.partition != doing.memory.context.default_partition:
        said += f" --partitions {facts.partition}"
    if facts.category == "conversation":
        said += " --categories conversation"
    if facts.sensitivity != "normal":
        said += " --sensitivity sensitive"
    return said


def _subject(proposal: Proposal) -> str:
    words = {"change": "a change to", "move": "to move", "remove": "to remove"}
    to = f" to {proposal.to}" if proposal.to else ""
    return f"Propose {words[proposal.op]} {proposal.target}{to}"


def _who(doing: Doing) -> tuple[str, str]:
    return doing.caller.principal.name, to_z(doing.memory.clock.now())

"""Reviews by hand: the person sets `review.state` of a proposed page in an editor, and that is their decision.

What agents see follows at once. A row of the audit trail says so when the page's version is committed, unless git
brought it (`reclassed` tells that); the page itself gets `verified` with the next act on it, since nobody's file is
touched behind their back. Source: pages.md §5.
"""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pcpd.errors import Invalid, PcpError
from pcpd.index import outbox, tables
from pcpd.index.proposals import ProposalRow
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.memory.memory import Memory
from pcpd.pages import frontmatter, reviewing
from pcpd.pages.page import Page, parse
from pcpd.pages.paths import PagePath
from pcpd.pages.times import to_z
from pcpd.sqlite import Reads, Transaction

KIND = "reviewed"
CHANNEL = "disk"
ALL = 1_000_000

log = logging.getLogger("pcpd")


class Approval(NamedTuple):
    """Who approved a page in an editor, and when (RFC 3339 UTC)."""

    by: str
    at: str


def note(
    memory: Memory, tx: Transaction, before: Mapping[str, ProposalRow], after: Mapping[str, tuple[Page, str]]
) -> bool:
    """Notes which of the pages that were proposed or rejected are decided now; tells whether some are.

    `after` has page and version of the files that changed. Keeper only.
    """
    did = False
    for file, (page, version) in after.items():
        decision = _decision(before.get(file), page)
        if decision:
            at = to_z(memory.clock.now())
            said = {"file": file, "decision": decision, "at": at, "version": version}
            outbox.add(tx, KIND, said)
            did = True
    return did


def tell(memory: Memory, files: Collection[str], by_git: Collection[str] = ()) -> None:
    """Writes the audit rows of what was decided in these files, but for those whose version came by git.

    Done again after a kill, they are the same rows.
    """
    with memory.index.reader() as conn:
        notes = [said for _, said in _pending(conn, set(files) - set(by_git))]
        named = {said["file"]: tables.categories(conn, [_path(said)]) for said in notes}
    try:
        for said in notes:
            memory.trail.write(_row(memory, said, named[said["file"]]))
    except PcpError as error:
        log.error("%s: a review in an editor could not be written down: %s", error.code, error.message)


def settle(tx: Transaction, files: Collection[str]) -> None:
    """Forgets the notes of these files."""
    outbox.done(tx, [number for number, _ in _pending(tx, set(files))])


def signed(memory: Memory, page: PagePath, data: bytes) -> bytes:
    """Gives a page that an act is about to write with `verified`, where the person approved it in an editor."""
    if parse(page, data).review_state != "approved":
        return data
    try:
        review = frontmatter.read(data).get("review")
        if not isinstance(review, dict) or "generated" not in review or review.get("verified"):
            return data
        approval = approval_of(memory, page)
        return reviewing.approved(data, *approval) if approval is not None else data
    except Invalid:
        return data


def approval_of(memory: Memory, page: PagePath) -> Approval | None:
    """Gives who approved the page in an editor last, if anybody did."""
    with memory.index.reader() as conn:
        noted = [said for _, said in _pending(conn, {page.file}) if said["decision"] == "approve"]
    if noted:
        return Approval(memory.context.controller, noted[-1]["at"])
    number = audit.object_number(memory.ledger, page)
    if number is None:
        return None
    wanted = Filter(action="approve", channel=CHANNEL, object_id=number)
    rows = audit.rows(memory.ledger, wanted, limit=1)
    return Approval(rows[0].principal, rows[0].at) if rows else None


def _decision(before: ProposalRow | None, page: Page) -> str:
    """Tells what the person decided: one who takes the key `review` away takes the page as it is."""
    if before is None or before.op != "new":
        return ""
    if page.review_state == "rejected":
        return "reject" if before.state == "open" else ""
    is_taken = page.review_state == "approved" or (page.review_state is None and not page.problems)
    return "approve" if is_taken else ""


def _pending(reads: Reads, files: Collection[str]) -> Sequence[tuple[int, Any]]:
    owed = outbox.pending(reads, KIND, ALL) if files else []
    said: list[tuple[int, Any]] = [(each.id, each.payload) for each in owed]
    return [(number, payload) for number, payload in said if payload["file"] in files]


def _path(said: Any) -> str:
    return PagePath.of_file(said["file"])


def _row(memory: Memory, said: Any, categories: frozenset[str]) -> AuditRow:
    digest = hashlib.sha256(f"{said['file']}\0{said['version']}\0{said['at']}".encode()).hexdigest()
    return AuditRow(
        at=said["at"],
        principal=memory.context.controller,
        action=said["decision"],
        channel=CHANNEL,
        outcome="ok",
        categories=tuple(sorted(categories)),
        object_ids=tuple(audit.object_numbers(memory.ledger, [_path(said)])),
        counts={"changed": 1},
        id=f"rev_{digest[:24]}",
    )

"""A proposal as it stands now: where its target is, what would become of it, and whether that still can be done.

Looked at on disk each time: what the index has of it only finds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pcpd.errors import PcpError
from pcpd.index import proposals
from pcpd.index.proposals import ProposalRow
from pcpd.index.rows import Declared
from pcpd.memory.facts import facts_of, facts_under
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import is_page
from pcpd.memory.propose import blob_of, read_file
from pcpd.pages.merge import Clash, merge
from pcpd.pages.page import SIZE_LIMIT, parse
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import parse_proposal
from pcpd.policy.decide import Facts
from pcpd.sqlite import Reads
from pcpd.vault.files import FileBytes

UNKNOWN_BASE = Clash("", None, None, None)
"""Two texts of which nobody knows the version that they were made from."""


@dataclass(frozen=True, slots=True)
class Case:
    """One proposal, looked at. `file` is what holds it, `present` the page that it is about, at `page` now.

    `after` are the bytes that the page would get: None for a removal, and where a clash is not decided. `state`: open;
    stale (the page changed since, and it still can be done); conflict (it cannot, as it is); orphan (the page is gone);
    invalid (the file is no proposal); rejected.
    """

    row: ProposalRow
    file: FileBytes
    page: PagePath | None
    present: FileBytes | None
    after: bytes | None
    state: str
    clashes: tuple[Clash, ...] = ()
    is_stale: bool = False

    @property
    def path(self) -> str:
        """The page's path now, or the one that the proposal names."""
        return str(self.page or self.row.target)


def case_of(memory: Memory, row: ProposalRow) -> Case | None:
    """Looks at the proposal in a file; None where the file holds none any more."""
    file = read_file(memory, row.file)
    if file is None:
        return None
    if row.op == "new":
        return _new(row.file, file)
    now = proposals.of_file(row.file, file.data)
    if now is None or now.state == "invalid":
        return Case(now or row, file, None, None, None, "invalid")
    page = _target(memory, now)
    present = read_file(memory, page.file) if page is not None else None
    if page is None or present is None:
        return _told(Case(now, file, None, None, parse_proposal(file.data).page, "orphan"))
    return _told(_over(memory, Case(now, file, page, present, None, "open")))


def may_review(memory: Memory, caller: Caller, case: Case) -> bool:
    """Tells whether the caller may read and review what the page is and what it would become."""
    if caller.principal.is_controller:
        return True
    sides = _sides(memory, case)
    return bool(sides) and all(may_decide(memory, caller, facts) for facts in sides)


def may_decide(memory: Memory, caller: Caller, facts: Facts) -> bool:
    """Tells whether the caller may read and review pages with these facts."""
    return all(memory.may(caller, right, facts).allowed for right in ("read", "review"))


class Sight:
    """What a caller may review, as far as the index tells; for lists and counts. Each class of facts is judged once."""

    def __init__(self, memory: Memory, caller: Caller) -> None:
        self._memory = memory
        self._caller = caller
        self._judged: dict[tuple[str, str, str, bool], bool] = {}

    def covers(self, reads: Reads, row: ProposalRow) -> bool:
        """Tells whether the caller may review this. One whose page is gone is the person's alone."""
        if self._caller.principal.is_controller:
            return True
        sides = self._sides(reads, row)
        return bool(sides) and all(map(self._may, sides))

    def count(self, reads: Reads, states: Sequence[str]) -> int:
        """Counts what the caller may review."""
        if self._caller.principal.is_controller:
            return proposals.count(reads, states)
        return sum(self.covers(reads, row) for row in proposals.listed(reads, states))

    def _may(self, facts: Facts) -> bool:
        key = (facts.partition, facts.category, facts.sensitivity, facts.hidden)
        if key not in self._judged:
            self._judged[key] = may_decide(self._memory, self._caller, facts)
        return self._judged[key]

    def _sides(self, reads: Reads, row: ProposalRow) -> list[Facts]:
        context, sides = self._memory.context, []
        if row.becomes is not None:
            state = "proposed" if row.op == "new" else None
            sides.append(facts_under(context, row.becomes._replace(review_state=state)))
        if row.op == "new":
            return sides
        target = proposals.target_of(reads, row)
        if target is None:
            return []
        sides.append(target.facts)
        if row.op == "move":
            said: Declared = target.said._replace(path=row.to)
            sides.append(facts_under(context, said))
        return sides


def category_of(memory: Memory, case: Case) -> str:
    """Gives the category of the page that the proposal is about; empty where nothing is known of it."""
    sides = _sides(memory, case)
    return sides[0].category if sides else ""


def title_of(case: Case) -> str:
    """Gives the page's title, as it is or would be; empty where there is no page."""
    if case.row.op == "new":
        return case.row.summary
    data = case.present.data if case.present is not None else case.after
    return parse(PagePath(case.path), data).title if data is not None else ""


def _new(file: str, read: FileBytes) -> Case | None:
    path = PagePath.of_file(file)
    row = proposals.of_page(parse(path, read.data), read.data)
    return _told(Case(row, read, path, read, read.data, "open")) if row is not None else None


def _told(case: Case) -> Case:
    """What was rejected is that, whatever else it is."""
    return case if case.row.state == "open" else replace(case, state=case.row.state)


def _target(memory: Memory, row: ProposalRow) -> PagePath | None:
    """Finds the page that a proposal means: by its path, its id, and by the version that it was made over."""
    direct = PagePath(row.target)
    if is_page(memory, direct) and memory.files.stat(direct.file) is not None:
        return direct
    with memory.index.reader() as conn:
        known = proposals.target_of(conn, row)
    if known is not None and is_page(memory, PagePath(known.path)):
        return PagePath(known.path)
    return _with_base(memory, row.base)


def _with_base(memory: Memory, base: str) -> PagePath | None:
    """Gives the only page whose committed version is the one with this blob's id, such as one that was moved."""
    if not base or memory.history is None:
        return None
    found = [
        PagePath.of_file(file)
        for file, oid in memory.history.head_files().items()
        if oid == base and file.endswith(".md") and is_page(memory, PagePath.of_file(file))
    ]
    there = [page for page in found if memory.files.stat(page.file) is not None]
    return there[0] if len(there) == 1 else None


def _over(memory: Memory, case: Case) -> Case:
    """Says what would become of the page that is there."""
    row, page, present = case.row, case.page, case.present
    if page is None or present is None:
        return case
    is_stale = not row.base or not _is_blob(memory, page, present.data, row.base)
    case = replace(case, is_stale=is_stale, state="stale" if is_stale else "open")
    if row.op == "remove":
        return case
    if row.op == "move":
        is_taken = row.to.casefold() != page.casefold() and _is_taken(memory, PagePath(row.to))
        return replace(case, after=present.data, state="conflict" if is_taken else case.state)
    proposed = parse_proposal(case.file.data).page or b""
    if not is_stale:
        return replace(case, after=proposed)
    base = _base(memory, row.base)
    if base is None:
        return replace(case, state="conflict", clashes=(UNKNOWN_BASE,))
    merged = merge(base, present.data, proposed)
    state = "conflict" if merged.data is None else "stale"
    return replace(case, after=merged.data, state=state, clashes=merged.clashes)


def _is_taken(memory: Memory, to: PagePath) -> bool:
    return not is_page(memory, to) or memory.files.stat(to.file) is not None


def _is_blob(memory: Memory, page: PagePath, data: bytes, base: str) -> bool:
    if memory.history is None:
        return False
    return memory.history.blob_id(data) == base or blob_of(memory, page.file, data) == base


def _base(memory: Memory, base: str) -> bytes | None:
    """Gives the version that a change was made over, if history still has it."""
    if not base or memory.history is None:
        return None
    try:
        return memory.history.blob(base, SIZE_LIMIT)
    except (PcpError, OSError):
        return None


def _sides(memory: Memory, case: Case) -> list[Facts]:
    """Gives the facts of the page as it is, and as it would be, as far as there is one."""
    row, sides = case.row, []
    if row.op == "new" and row.becomes is not None:
        return [facts_under(memory.context, row.becomes)]
    if case.page is None or case.present is None:
        return []
    sides.append(facts_of(memory.context, parse(case.page, case.present.data)))
    if row.op == "move":
        sides.append(facts_of(memory.context, parse(PagePath(row.to), case.present.data)))
    if row.op == "change":
        sides += [
            facts_of(memory.context, parse(case.page, data))
            for data in (parse_proposal(case.file.data).page, case.after)
            if data is not None
        ]
    return sides

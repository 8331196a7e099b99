"""The rows of what waits for review, and of what was rejected: made from files' bytes, and found again.

A rebuild makes the same rows. What a proposal's target is now is not kept: it is looked up when somebody asks.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pcpd.errors import Invalid
from pcpd.index import bookmarks
from pcpd.index.rows import PAGE_COLUMNS, PAGE_TABLES, Declared, PageRow, page_row
from pcpd.pages import frontmatter
from pcpd.pages.digest import digest_of
from pcpd.pages.page import Page, parse
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import Proposal, parse_proposal, proposal_of_file
from pcpd.pages.times import normal_time
from pcpd.pages.values import Value
from pcpd.sqlite import Reads, Transaction

DIGITS = 20
"""Of a digest, in an id."""
STATES = ("open", "rejected", "approved", "invalid")


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """One proposal as its file says it. `op`: new, change, move, remove, or empty for a file that is none.

    `becomes` is what the page would declare of itself, None where it says nothing new. Times as in the file.
    """

    file: str
    id: str
    op: str
    target: str
    to: str = ""
    target_id: str = ""
    base: str = ""
    by: str = ""
    at: str = ""
    also_by: tuple[str, ...] = ()
    summary: str = ""
    state: str = "open"
    digest: str = ""
    decided_by: str = ""
    decided_at: str = ""
    reason: str = ""
    becomes: Declared | None = None


@dataclass(frozen=True, slots=True)
class ProposalList:
    """Some rows, oldest first, and the cursor to go on with, or None at the end."""

    rows: tuple[ProposalRow, ...]
    cursor: str | None


def of_file(file: str, data: bytes) -> ProposalRow | None:
    """Gives the row of a file of `.pcp/proposals/`; None for any other file."""
    name = proposal_of_file(file)
    if name is None:
        return None
    try:
        proposal = parse_proposal(data)
    except Invalid as error:
        return ProposalRow(file, name, "", "", summary=error.message, state="invalid")
    decided = proposal.rejected or proposal.approved
    return ProposalRow(
        file=file,
        id=name,
        op=proposal.op,
        target=proposal.target,
        to=proposal.to or "",
        target_id=proposal.target_id or "",
        base=proposal.base,
        by=proposal.by,
        at=proposal.at,
        also_by=tuple(act.by for act in proposal.also_by),
        summary=proposal.summary,
        state="rejected" if proposal.rejected else "approved" if proposal.approved else "open",
        digest=proposal.digest,
        decided_by=decided.by if decided else "",
        decided_at=decided.at if decided else "",
        reason=decided.reason if decided else "",
        becomes=_becomes(proposal),
    )


def of_page(page: Page, data: bytes) -> ProposalRow | None:
    """Gives the row of a page that is proposed or was rejected; None for any other page."""
    if page.review_state not in {"proposed", "rejected"}:
        return None
    review = _review(data)
    generated, rejected = _map(review.get("generated")), _map(review.get("rejected"))
    is_rejected = page.review_state == "rejected"
    return ProposalRow(
        file=page.path.file,
        id=page.path,
        op="new",
        target=page.path,
        by=_line(generated.get("by")) or page.author or "",
        at=_time(generated.get("at")) or page.recorded_at or page.updated or "",
        summary=page.title,
        state="rejected" if is_rejected else "open",
        digest=digest_of("change", page.path, page=data),
        decided_by=_line(rejected.get("by")) if is_rejected else "",
        decided_at=_time(rejected.get("at")) if is_rejected else "",
        reason=_line(rejected.get("reason")) if is_rejected else "",
        becomes=Declared.of(page),
    )


def put(tx: Transaction, files: Iterable[str], rows: Iterable[ProposalRow]) -> None:
    """Puts what these files hold now, in place of whatever was known of them."""
    tx.executemany("DELETE FROM proposals WHERE file = ?", [(file,) for file in files])
    tx.executemany(
        f"INSERT INTO proposals VALUES ({', '.join('?' * 20)})",  # noqa: S608 - only question marks
        [_values(row) for row in rows],
    )


def of_files(reads: Reads, files: Iterable[str]) -> dict[str, ProposalRow]:
    """Gives the rows of those of these files that hold a proposal."""
    rows = reads.execute(
        f"SELECT {_COLUMNS} FROM proposals WHERE file IN (SELECT value FROM json_each(?))",  # noqa: S608
        (json.dumps(list(files)),),
    )
    return {row.file: row for row in map(_row, rows)}


def find(reads: Reads, id_: str) -> list[ProposalRow]:
    """Gives what an id means: a file, what its file is called, a new page by its path or its digest's beginning.

    A page's path may be chosen to look like another's id: then there are two.
    """
    ways: list[tuple[str, tuple[str, ...]]] = [("file = ?", (id_,)), ("id = ?", (id_,))]
    if len(id_) == DIGITS:
        ways.append(("op = 'new' AND digest >= ? AND digest < ?", (id_, f"{id_}g")))
    for condition, values in ways:
        rows = reads.execute(
            f"SELECT {_COLUMNS} FROM proposals WHERE {condition} ORDER BY file",  # noqa: S608
            values,
        ).fetchall()
        if rows:
            return [_row(row) for row in rows]
    return []


def count(reads: Reads, states: Sequence[str]) -> int:
    """Counts the rows in these states."""
    marks = ", ".join("?" * len(states))
    row = reads.execute(f"SELECT count(*) FROM proposals WHERE state IN ({marks})", tuple(states))  # noqa: S608
    return int(row.fetchone()[0])


def listed(reads: Reads, states: Sequence[str], cursor: str | None = None) -> Iterator[ProposalRow]:
    """Gives the rows in these states, the oldest first, from the one behind the cursor on.

    Raises `Invalid` (`cursor.invalid`).
    """
    marks = ", ".join("?" * len(states))
    after = bookmarks.read(_list_name(states), cursor, ("", ""))
    rows = reads.execute(
        f"SELECT {_COLUMNS} FROM proposals WHERE state IN ({marks}) AND (at, id) > (?, ?)"  # noqa: S608
        " ORDER BY at, id",
        (*states, *after),
    )
    return map(_row, rows)


def cursor_after(states: Sequence[str], row: ProposalRow) -> str:
    """Gives the cursor for what follows this row in `listed`."""
    return bookmarks.write(_list_name(states), (row.at, row.id))


def target_of(reads: Reads, row: ProposalRow) -> PageRow | None:
    """Gives the page that a proposal means: the one at its path, else the only one with its id."""
    ways: list[tuple[str, tuple[str, ...]]] = [
        ("p.key = ? AND p.path = ?", (PagePath(row.target).key, row.target))
    ]
    if row.target_id:
        ways.append(("p.own_id = ?", (row.target_id,)))
    for condition, values in ways:
        found = reads.execute(
            f"SELECT {PAGE_COLUMNS} FROM {PAGE_TABLES} WHERE {condition} LIMIT 2",  # noqa: S608
            values,
        ).fetchall()
        if len(found) == 1:
            return page_row(found[0])
    return None


def dump(reads: Reads) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Gives every row, for comparing an index with a rebuild."""
    for row in reads.execute(f"SELECT {_COLUMNS} FROM proposals ORDER BY file"):  # noqa: S608
        yield "proposals", tuple(row)


_COLUMNS = (
    "file, id, op, target, moved_to, target_id, base, by, at, also_by, summary, state, digest, decided_by,"
    " decided_at, reason, type, declared, sensitivity, is_conversation"
)
_BEFORE_DECLARED = len(fields(ProposalRow)) - 1


def _list_name(states: Sequence[str]) -> str:
    return f"proposals {' '.join(states)}"


def _values(row: ProposalRow) -> tuple[object, ...]:
    said = row.becomes
    plain = [getattr(row, each.name) for each in fields(row)[:_BEFORE_DECLARED]]
    values = [json.dumps(value) if isinstance(value, tuple) else value for value in plain]
    if said is None:
        return (*values, "", None, "", 0)
    return (*values, said.type, said.partition, said.sensitivity, int(said.is_conversation))


def _row(row: Any) -> ProposalRow:
    file, id_, op, target, to, target_id, base, by, at, also_by, *rest = row
    summary, state, digest, decided_by, decided_at, reason, type_, declared, sensitivity, is_conversation = (
        rest
    )
    said = (
        Declared(to or target, type_, declared, sensitivity, None, bool(is_conversation)) if type_ else None
    )
    return ProposalRow(
        file, id_, op, target, to, target_id, base, by, at, tuple(json.loads(also_by)),
        summary, state, digest, decided_by, decided_at, reason, said,
    )  # fmt: skip


def _becomes(proposal: Proposal) -> Declared | None:
    if proposal.page is None:
        return None
    return Declared.of(parse(proposal.target, proposal.page))._replace(review_state=None)


def _review(data: bytes) -> dict[str, Value]:
    try:
        return _map(frontmatter.read(data).get("review"))
    except Invalid:
        return {}


def _map(value: Value) -> dict[str, Value]:
    return value if isinstance(value, dict) else {}


def _line(value: Value) -> str:
    """Gives a text of a file of anybody's, on one line and of bounded length."""
    text = " ".join(value.split())[:1000] if isinstance(value, str) else ""
    return text if text.isprintable() else ""


def _time(value: Value) -> str:
    try:
        return normal_time(_line(value))
    except Invalid:
        return ""

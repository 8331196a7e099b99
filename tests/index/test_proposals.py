"""The rows of proposals follow from files alone: whatever the order of changes, a rebuild gives the same."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.index import proposals
from pcpd.index.proposals import ProposalRow
from pcpd.index.store import Index
from pcpd.pages import proposal as files
from pcpd.pages import reviewing
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import Act, Proposal
from tests.index.samples import fill

AT = "2026-01-05T10:00:00Z"
CHANGE = Proposal(
    "change",
    PagePath("a/b"),
    "agent:x",
    AT,
    base="0" * 40,
    summary="why",
    page=b"---\npartition: work\n---\nnew\n",
)
MOVE = Proposal("move", PagePath("a/b"), "agent:y", AT, to=PagePath("c"), also_by=(Act("agent:z", AT),))


def row_of(proposal: Proposal, data: bytes | None = None) -> ProposalRow:
    """What the index has of a proposal's file."""
    row = proposals.of_file(files.proposal_file(proposal.id), data or files.render_proposal(proposal))
    assert row is not None
    return row


def page_row_of(path: str, data: bytes) -> ProposalRow | None:
    """What the index has of a page that waits."""
    return proposals.of_page(parse(PagePath(path), data), data)


def test_a_row_says_what_the_file_says() -> None:
    """Also what the page would declare of itself, by which it is decided who may review it."""
    row = row_of(CHANGE)
    assert (row.id, row.op, row.target, row.by, row.state) == (CHANGE.id, "change", "a/b", "agent:x", "open")
    assert row.becomes is not None
    assert (row.becomes.path, row.becomes.partition) == ("a/b", "work")
    assert (row_of(MOVE).to, row_of(MOVE).also_by, row_of(MOVE).becomes) == ("c", ("agent:z",), None)


def test_decisions_are_read_from_the_file() -> None:
    """Who, when and why."""
    data = files.rejected(files.render_proposal(CHANGE), "human:sam", AT, "no")
    row = row_of(CHANGE, data)
    assert (row.state, row.decided_by, row.decided_at, row.reason) == ("rejected", "human:sam", AT, "no")
    assert row_of(CHANGE, files.approved(files.render_proposal(CHANGE), "human:sam", AT)).state == "approved"


def test_a_new_page_waits_by_what_it_says_itself() -> None:
    """Proposed and rejected pages have a row, approved ones and all others have none."""
    data = reviewing.proposed(b"text\n", "agent:x", AT)
    row = page_row_of("n", data)
    assert row is not None
    assert (row.id, row.op, row.by, row.at, row.state) == ("n", "new", "agent:x", AT, "open")
    rejected = page_row_of("n", reviewing.rejected(data, "human:sam", AT, "no"))
    assert rejected is not None
    assert (rejected.state, rejected.reason, rejected.digest) == ("rejected", "no", row.digest)
    assert page_row_of("n", reviewing.approved(data, "human:sam", AT)) is None
    assert page_row_of("n", b"text\n") is None


@pytest.mark.parametrize(
    "data", [b"", b"---\n", b"\xff\xfe", b"---\nop: delete\n---\n", b"---\nop: [\n---\n"]
)
def test_a_file_that_is_no_proposal_has_a_row_that_says_so(data: bytes) -> None:
    """It is shown, not dropped."""
    row = proposals.of_file(f".pcp/proposals/{'0' * 20}.md", data)
    assert row is not None
    assert (row.state, bool(row.summary)) == ("invalid", True)
    assert proposals.of_file("notes/a.md", data) is None
    assert proposals.of_file(".pcp/proposals/README.md", data) is None


@pytest.mark.parametrize(
    "review",
    ["proposed", "{state: proposed, generated: [1]}", "{state: proposed, generated: {by: {a: 1}, at: never}}",
     '{state: proposed, generated: {by: "a\\u0007b", at: 1}, rejected: x}'],
)  # fmt: skip
def test_what_strangers_write_under_review_is_taken_as_far_as_it_goes(review: str) -> None:
    """No value of any kind is an exception."""
    data = f"---\nreview: {review}\n---\ntext".encode()
    row = page_row_of("n", data)
    assert row is None or (row.by, row.at) == ("", "")


def test_rows_come_back_as_they_were_put(tmp_path: Path) -> None:
    """Every column, and the newest version of a file alone."""
    index = Index.open(tmp_path)
    rows = [row_of(CHANGE), row_of(MOVE)]
    with index.transaction() as tx:
        proposals.put(tx, [], [ProposalRow(rows[0].file, "old", "change", "x")])
        proposals.put(tx, [row.file for row in rows], rows)
    with index.reader() as conn:
        assert sorted(proposals.listed(conn, ("open",)), key=lambda row: row.id) == sorted(
            rows, key=lambda row: row.id
        )
        assert proposals.find(conn, CHANGE.id) == [rows[0]]
        assert proposals.count(conn, ("open",)) == 2
        assert proposals.of_files(conn, [rows[1].file]) == {rows[1].file: rows[1]}
    index.close()


def test_a_target_is_found_by_its_path_and_then_by_its_id(tmp_path: Path) -> None:
    """An id that several pages have finds none of them."""
    index = Index.open(tmp_path)
    fill(index, {"a.md": "---\nid: one\n---\n", "b.md": "---\nid: two\n---\n", "c.md": "---\nid: two\n---\n"})
    with index.reader() as conn:
        assert proposals.target_of(conn, ProposalRow("f", "i", "change", "b", target_id="one")).path == "b"  # type: ignore[union-attr]
        assert proposals.target_of(conn, ProposalRow("f", "i", "change", "x", target_id="one")).path == "a"  # type: ignore[union-attr]
        assert proposals.target_of(conn, ProposalRow("f", "i", "change", "x", target_id="two")) is None
        assert proposals.target_of(conn, ProposalRow("f", "i", "change", "x")) is None
    index.close()


STATES = st.sampled_from([None, "open", "rejected", "nonsense"])


@given(st.lists(st.tuples(st.sampled_from([CHANGE, MOVE]), STATES), max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_order_of_changes_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[Proposal, str | None]]
) -> None:
    """After any history the rows are those of the files as they are."""
    folder = tmp_path_factory.mktemp("history")
    index = Index.open(folder)
    now: dict[str, bytes] = {}
    for proposal, state in history:
        file, data = files.proposal_file(proposal.id), files.render_proposal(proposal)
        now.pop(file, None)
        if state is not None:
            now[file] = {"open": data, "rejected": files.rejected(data, "human:sam", AT), "nonsense": b"?"}[
                state
            ]
        row = proposals.of_file(file, now[file]) if file in now else None
        with index.transaction() as tx:
            proposals.put(tx, [file], [row] if row else [])
    with index.reader() as conn:
        found = {row.file: row for row in proposals.listed(conn, proposals.STATES)}
    index.close()
    assert found == {file: proposals.of_file(file, data) for file, data in now.items()}

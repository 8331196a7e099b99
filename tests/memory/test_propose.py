"""What becomes of writes by a principal that may only propose."""

import pytest

from pcpd.errors import Denied, NotFound
from pcpd.memory import read, review, write
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened


def test_a_new_page_waits_at_its_path_and_is_hidden(opened: Opened) -> None:
    """The proposer is told that it waits, and does not see it; the person does."""
    agent = opened.agent("agent:claude", "read", "propose")
    written = write.write_page(opened.memory, agent, "notes/pump", Proposed("# Pump\n\nNew\n"))
    assert (written.outcome, written.path) == ("proposed", "notes/pump")
    with pytest.raises(NotFound):
        read.read_page(opened.memory, agent, "notes/pump")
    assert b"state: proposed" in (opened.root / "notes/pump.md").read_bytes()
    (waiting,) = review.queue(opened.memory, opened.person).items
    assert (waiting.id, waiting.op, waiting.by, waiting.state) == (
        "notes/pump",
        "new",
        "agent:claude",
        "open",
    )
    (done,) = review.decide(opened.memory, opened.person, [waiting.id], "approve")
    assert (done.outcome, done.path) == ("approved", "notes/pump")
    page = read.read_page(opened.memory, agent, "notes/pump")
    assert page.review == "approved"
    assert b"verified:" in page.data


def test_a_change_waits_beside_the_pages(opened: Opened) -> None:
    """The page stays as it is until somebody approves; then it has the text and the name of who approved."""
    agent = opened.agent("agent:claude", "read", "propose")
    person = write.write_page(opened.memory, opened.person, "note", Proposed("# Note\n\nold\n"))
    edit = [Edit("replace_text", "old", "new")]
    written = write.edit_page(opened.memory, agent, "note", edit, if_version=person.version)
    assert written.outcome == "proposed"
    assert (opened.root / "note.md").read_text() == "# Note\n\nold\n"
    shown = review.show(opened.memory, opened.person, written.proposal)
    assert shown.before == "# Note\n\nold\n"
    assert "new" in (shown.after or "")
    (done,) = review.decide(opened.memory, opened.person, [written.proposal], "approve")
    assert done.outcome == "approved"
    assert "new" in (opened.root / "note.md").read_text()
    assert not list((opened.root / ".pcp/proposals").iterdir())
    assert review.queue(opened.memory, opened.person).total == 0


def test_what_was_rejected_is_answered_with_the_rejection(opened: Opened) -> None:
    """Whoever proposes it again."""
    write.write_page(opened.memory, opened.person, "note", Proposed("# Note\n\nold\n"))
    edit = [Edit("replace_text", "old", "new")]
    one, two = (opened.agent(f"agent:{name}", "read", "propose") for name in ("one", "two"))
    written = write.edit_page(opened.memory, one, "note", edit)
    review.decide(opened.memory, opened.person, [written.proposal], "reject", reason="not so")
    with pytest.raises(Denied) as refused:
        write.edit_page(opened.memory, two, "note", edit)
    assert refused.value.code == "proposal.rejected"
    assert refused.value.details["reason"] == "not so"

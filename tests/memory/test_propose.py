"""What becomes of writes by a principal that may only propose."""

import contextlib
import random
from collections.abc import Callable

import pytest

from pcpd.errors import Conflict, Denied, Invalid, NotFound, PcpError
from pcpd.memory import propose, read, review, upkeep, write
from pcpd.memory.doctor import compare
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.pages.page import SIZE_LIMIT
from pcpd.policy.grants import CATEGORIES, Grant
from tests.vaults import Opened
from tests.waiting import until


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
    (done,) = review.decide_all(opened.memory, opened.person, [waiting.id], "approve")
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
    (done,) = review.decide_all(opened.memory, opened.person, [written.proposal], "approve")
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
    review.decide_all(opened.memory, opened.person, [written.proposal], "reject", reason="not so")
    with pytest.raises(Denied) as refused:
        write.edit_page(opened.memory, two, "note", edit)
    assert refused.value.code == "proposal.rejected"
    assert refused.value.details["reason"] == "not so"


def test_the_same_from_two_agents_is_one_proposal(opened: Opened) -> None:
    """Both are named, each once."""
    write.write_page(opened.memory, opened.person, "note", Proposed("# Note\n\nold\n"))
    edit = [Edit("replace_text", "old", "new")]
    one, two = (opened.agent(f"agent:{name}", "read", "propose") for name in ("one", "two"))
    ids = {write.edit_page(opened.memory, who, "note", edit).proposal for who in (one, two, two, one)}
    (waiting,) = review.queue(opened.memory, opened.person).items
    assert {waiting.id} == ids
    assert (waiting.by, waiting.also_by) == ("agent:one", ("agent:two",))


def test_the_same_new_page_twice_is_one_proposal(opened: Opened) -> None:
    """And a rejected one is answered with the rejection, also to who had nothing to do with it."""
    one, two = (opened.agent(f"agent:{name}", "read", "propose") for name in ("one", "two"))
    first = write.write_page(opened.memory, one, "page", Proposed("text"))
    assert write.write_page(opened.memory, two, "page", Proposed("text")) == first
    assert review.queue(opened.memory, opened.person).total == 1
    review.decide_all(opened.memory, opened.person, ["page"], "reject", reason="not needed")
    with pytest.raises(Denied) as refused:
        write.write_page(opened.memory, two, "page", Proposed("text"))
    assert refused.value.code == "proposal.rejected"
    assert refused.value.details["by"] == opened.memory.context.controller
    assert b"not needed" in (opened.root / "page.md").read_bytes()
    with pytest.raises(NotFound):
        read.read_page(opened.memory, two, "page")


def test_what_stands_there_and_is_hidden_changes_no_answer(opened: Opened) -> None:
    """A free place, one with a hidden page and one outside the grant answer alike; nothing is overwritten."""
    agent = opened.agent("agent:claude", "read", "propose")
    other = opened.agent("agent:other", "read", "propose")
    write.write_page(opened.memory, other, "hidden", Proposed("theirs"))
    opened.save("closed.md", "---\npartition: work\n---\nsecret\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    answers = [
        write.write_page(opened.memory, agent, path, Proposed("mine"))
        for path in ("free", "hidden", "closed")
    ]
    assert {(each.outcome, each.version, len(each.proposal), each.broken_links) for each in answers} == {
        ("proposed", "", 20, ())
    }
    assert b"theirs" in (opened.root / "hidden.md").read_bytes()
    assert b"secret" in (opened.root / "closed.md").read_bytes()
    states = {
        each.path: (each.op, each.state)
        for each in review.queue(opened.memory, opened.person).items
        if each.by == "agent:claude"
    }
    assert states == {
        "free": ("new", "open"),
        "hidden": ("change", "conflict"),
        "closed": ("change", "conflict"),
    }
    for answer in answers:
        assert review.show(opened.memory, opened.person, answer.proposal).waiting.by == "agent:claude"


def test_a_page_that_comes_at_the_same_moment_changes_no_answer(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents propose the same new page, or others, at once."""
    agent, other = (opened.agent(f"agent:{name}", "read", "propose") for name in ("one", "two"))
    plain = propose.read_file
    for number, text in enumerate(("same", "another")):
        write.write_page(opened.memory, other, f"page{number}", Proposed("same"))
        misses = iter([None])
        monkeypatch.setattr(write, "_read_at", lambda *_: None)
        monkeypatch.setattr(propose, "read_file", lambda *given, misses=misses: next(misses, plain(*given)))
        written = write.write_page(opened.memory, agent, f"page{number}", Proposed(text))
        monkeypatch.undo()
        assert (written.outcome, written.version, len(written.proposal)) == ("proposed", "", 20)
    assert sorted(each.op for each in review.queue(opened.memory, opened.person).items) == [
        "change",
        "new",
        "new",
    ]


def test_what_is_too_large_to_be_read_whole_is_not_proposed_over(opened: Opened) -> None:
    """Its version could not be kept whole; nothing is half stored."""
    opened.save("big.md", b"x" * (SIZE_LIMIT + 1))
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    opened.memory.access.grant(Grant("agent:a", ("personal",), CATEGORIES, ("read", "propose"), "sensitive"))
    agent = opened.agent("agent:a")
    with pytest.raises(Invalid) as refused:
        write.move_page(opened.memory, agent, "big", "small")
    assert refused.value.code == "proposal.too-large"
    assert review.queue(opened.memory, opened.person).total == 0


def test_an_agent_may_propose_another_text_for_its_own_page(opened: Opened) -> None:
    """It waits over the first, and brings the page with it when it is approved."""
    agent = opened.agent("agent:claude", "read", "propose")
    write.write_page(opened.memory, agent, "page", Proposed("first"))
    second = write.write_page(opened.memory, agent, "page", Proposed("second"))
    assert review.show(opened.memory, opened.person, second.proposal).waiting.state == "open"
    review.decide_all(opened.memory, opened.person, [second.proposal], "approve")
    page = read.read_page(opened.memory, agent, "page")
    assert (page.page.body.strip(), page.review) == ("second", "approved")
    assert review.queue(opened.memory, opened.person).total == 0


def test_a_grant_that_writes_here_and_proposes_there_proposes_across(opened: Opened) -> None:
    """Both sides of a change must be open for it to be done at once."""
    agent = opened.agent("agent:claude", "read", "write")
    opened.memory.access.grant(Grant("agent:claude", ("work",), CATEGORIES, ("read", "propose")))
    made = write.write_page(opened.memory, agent, "note", Proposed("text"))
    assert made.outcome == "created"
    across = write.edit_page(opened.memory, agent, "note", [Edit("set", "partition", "work")])
    assert across.outcome == "proposed"
    assert write.edit_page(opened.memory, agent, "note", [Edit("append", value="x\n")]).outcome == "replaced"
    # A partition where the agent has no right at all is refused as ever.
    with pytest.raises(Denied) as refused:
        write.edit_page(opened.memory, agent, "note", [Edit("set", "partition", "elsewhere")])
    assert refused.value.code == "access.denied"


def test_a_page_that_names_no_partition_goes_where_the_agent_may_propose(opened: Opened) -> None:
    """As it does for who may write."""
    agent = opened.agent("agent:claude", "read", "propose", partition="work")
    write.write_page(opened.memory, agent, "page", Proposed("text"))
    assert b"partition: work" in (opened.root / "page.md").read_bytes()


def test_a_stale_base_is_refused_as_for_a_write(opened: Opened) -> None:
    """A proposal is based on what its maker has read."""
    made = write.write_page(opened.memory, opened.person, "note", Proposed("one\n"))
    agent = opened.agent("agent:claude", "read", "propose")
    write.edit_page(opened.memory, opened.person, "note", [Edit("append", value="two\n")])
    acts: tuple[Callable[[], object], ...] = (
        lambda: write.write_page(opened.memory, agent, "note", Proposed("x"), if_version=made.version),
        lambda: write.write_page(opened.memory, agent, "note", Proposed("x")),
        lambda: write.remove_page(opened.memory, agent, "note", if_version=made.version),
        lambda: write.move_page(opened.memory, agent, "note", "b", if_version=made.version),
    )
    for act in acts:
        with pytest.raises(Conflict):
            act()
    assert review.queue(opened.memory, opened.person).total == 0


def test_a_repeated_proposal_is_answered_again(opened: Opened) -> None:
    """Under its key, also after somebody decided about it."""
    write.write_page(opened.memory, opened.person, "note", Proposed("one\n"))
    agent = opened.agent("agent:claude", "read", "propose", key="k")
    edit = [Edit("append", value="two\n")]
    first = write.edit_page(opened.memory, agent, "note", edit)
    review.decide_all(opened.memory, opened.person, [first.proposal], "reject")
    assert write.edit_page(opened.memory, agent, "note", edit) == first


def test_what_a_proposal_is_over_is_kept_in_history(make_opened: Callable[..., Opened]) -> None:
    """A save that no commit has yet is committed before, so that a merge finds it whatever comes after."""
    opened = make_opened(ahead_s=3600, quiet_s=3600).open()
    opened.save("note.md", "# Note\n\none\n\ntwo\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    agent = opened.agent("agent:claude", "read", "propose")
    written = write.edit_page(opened.memory, agent, "note", [Edit("replace_text", "two", "2")])
    until(lambda: "note.md" in opened.memory.require_history().head_files())
    assert {each.principal for each in opened.memory.require_history().log("note.md")} == {""}
    opened.save("note.md", "# Note\n\n1\n\ntwo\n")
    until(lambda: review.show(opened.memory, opened.person, written.proposal).waiting.state == "stale")
    review.decide_all(opened.memory, opened.person, [written.proposal], "approve")
    assert (opened.root / "note.md").read_text().endswith("# Note\n\n1\n\n2\n")


def test_an_approval_that_a_kill_cut_in_two_is_completed_by_the_next(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has the text, the proposal still waits: approving it again changes nothing but that."""

    class Died(Exception):
        """Stands for the end of the owner in the middle of an act."""

    def dies(*_: object, **__: object) -> None:
        raise Died

    opened = make_opened().open()
    write.write_page(opened.memory, opened.person, "note", Proposed("one\n"))
    agent = opened.agent("agent:claude", "read", "propose")
    written = write.edit_page(opened.memory, agent, "note", [Edit("append", value="two\n")])
    with monkeypatch.context() as patch:
        patch.setattr(type(opened.memory.files), "remove", dies)
        with pytest.raises(Died):
            review.decide_all(opened.memory, opened.person, [written.proposal], "approve")
    opened.restart()
    assert (opened.root / "note.md").read_text().endswith("one\ntwo\n")
    assert review.queue(opened.memory, opened.person).total == 1
    (done,) = review.decide_all(opened.memory, opened.person, [written.proposal], "approve")
    assert done.outcome == "approved"
    assert (opened.root / "note.md").read_text().endswith("one\ntwo\n")
    assert review.queue(opened.memory, opened.person).total == 0
    assert compare(opened.memory) == []


def test_a_file_of_strangers_leads_nowhere(opened: Opened) -> None:
    """What a pull brings into `.pcp/proposals` changes nothing by itself, and reaches nothing but pages."""
    opened.save(".gitignore", "private/\n")
    opened.save("private/x.md", "private\n")
    opened.save("note.md", "text\n")
    head = "---\nop: {}\ntarget: {}\n{}by: agent:evil\nat: 2026-01-05T10:00:00Z\nreview: {{state: approved}}\n---\n{}"
    files = {
        "a" * 20: head.format("change", "private/x", "", "taken\n"),
        "b" * 20: head.format("move", "note", "to: private/y\n", ""),
        "c" * 20: head.format("move", "note", "to: ../../out\n", ""),
        "d" * 20: head.format("change", ".pcp/context", "", "taken\n"),
        "e" * 20: head.format("change", "note", "", "taken\n"),
    }
    for name, text in files.items():
        opened.save(f".pcp/proposals/{name}.md", text)
    until(lambda: review.queue(opened.memory, opened.person).total == len(files))
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    done = review.decide_all(opened.memory, opened.person, list(files), "approve")
    assert [each.code for each in done] == [
        "proposal.orphan", "page.exists", "proposal.invalid", "proposal.invalid", "proposal.conflict",
    ]  # fmt: skip
    assert (opened.root / "private/x.md").read_text() == "private\n"
    assert (opened.root / "note.md").read_text() == "text\n"
    assert compare(opened.memory) == []


def test_index_and_rebuild_agree_after_any_acts_of_review(opened: Opened) -> None:
    """Proposals, decisions, saves and removals by hand, in any order."""
    chance = random.Random(4)  # noqa: S311 - no secret
    agent = opened.agent("agent:claude", "read", "propose")
    for number in range(40):
        path = f"p{chance.randrange(4)}"
        ids = [each.id for each in review.queue(opened.memory, opened.person, state="all").items]
        with contextlib.suppress(PcpError, FileNotFoundError):
            match chance.randrange(7):
                case 0:
                    text = Proposed(f"text {chance.randrange(3)}")
                    base = opened.version(path) if (opened.root / f"{path}.md").exists() else None
                    write.write_page(opened.memory, agent, path, text, if_version=base)
                case 1:
                    write.edit_page(opened.memory, agent, path, [Edit("append", value=f"{number}\n")])
                case 2:
                    write.remove_page(opened.memory, agent, path, if_version=opened.version(path))
                case 3:
                    write.move_page(opened.memory, agent, path, f"p{chance.randrange(6)}")
                case 4 if ids:
                    review.decide_all(
                        opened.memory, opened.person, ids[:2], chance.choice(["approve", "reject"])
                    )
                case 5:
                    opened.save(
                        f"{path}.md",
                        f"---\nreview: {{state: {chance.choice(['proposed', 'approved'])}}}\n---\n{number}\n",
                    )
                case 6 if ids:
                    for file in list((opened.root / ".pcp/proposals").glob("*.md"))[:1]:
                        file.unlink()
    until(lambda: compare(opened.memory) == [])
    upkeep.rebuild(opened.memory)
    before = [each.id for each in review.queue(opened.memory, opened.person, state="all").items]
    assert compare(opened.memory) == []
    assert [each.id for each in review.queue(opened.memory, opened.person, state="all").items] == before

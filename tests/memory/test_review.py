"""The acts of review: the queue, what is shown, and what decisions come to."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pcpd.errors import Denied, NotFound, Usage
from pcpd.index import proposals
from pcpd.ledger import audit
from pcpd.memory import read, review, verdicts, versions, write
from pcpd.memory.carry_out import Doing, Written
from pcpd.memory.cases import Case
from pcpd.memory.doctor import compare
from pcpd.memory.memory import Caller
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.policy.decide import Principal
from pcpd.policy.grants import CATEGORIES, Grant
from tests.vaults import Opened
from tests.waiting import until


def note_of(opened: Opened, text: str = "# Note\n\none\n\ntwo\n\nthree\n", path: str = "note") -> Written:
    """A page of the person's."""
    return write.write_page(opened.memory, opened.person, path, Proposed(text))


def change_of(opened: Opened, old: str, new: str, *, by: str = "agent:claude", path: str = "note") -> str:
    """Proposes to put a word in another's place; gives the id."""
    agent = opened.agent(by, "read", "propose")
    return write.edit_page(opened.memory, agent, path, [Edit("replace_text", old, new)]).proposal


def text_of(opened: Opened, path: str = "note") -> str:
    """What a page says on disk."""
    return (opened.root / f"{path}.md").read_text()


def decide(
    opened: Opened, id_: str, decision: review.Decision = "approve", **options: object
) -> review.Decided:
    """The person's decision about one proposal."""
    (done,) = review.decide_all(opened.memory, opened.person, [id_], decision, **options)  # type: ignore[arg-type]
    return done


def state_of(opened: Opened, id_: str) -> str:
    """How a proposal stands."""
    return review.show(opened.memory, opened.person, id_).waiting.state


def test_an_approval_is_one_commit_with_the_names_of_both(opened: Opened) -> None:
    """The approver is in the trailer, who proposed it in the words; page and proposal change together."""
    note_of(opened)
    done = decide(opened, change_of(opened, "two", "2"))
    until(lambda: len(versions.log(opened.memory, opened.person, "note")) == 2)
    last = versions.log(opened.memory, opened.person, "note")[0]
    assert (last.principal, last.subject) == (
        opened.memory.context.controller,
        "Approve a change to note, proposed by agent:claude",
    )
    assert done.version == read.read_page(opened.memory, opened.person, "note").version
    (gone, made) = opened.memory.require_history().log(".pcp/proposals", limit=3)
    assert (gone.rev, gone.change) == (last.rev, "removed")
    assert (made.principal, made.subject) == ("agent:claude", "Propose a change to note")
    assert "verified:" in text_of(opened)


def test_a_page_that_changed_elsewhere_since_is_merged(opened: Opened) -> None:
    """What the person wrote since stays."""
    note_of(opened)
    id_ = change_of(opened, "three", "3")
    write.edit_page(opened.memory, opened.person, "note", [Edit("replace_text", "one", "1")])
    assert state_of(opened, id_) == "stale"
    shown = review.show(opened.memory, opened.person, id_)
    assert [span.text.strip() for span in shown.diff if span.op == "removed"] == ["three"]
    assert decide(opened, id_).outcome == "approved"
    assert text_of(opened).endswith("# Note\n\n1\n\ntwo\n\n3\n")


def test_a_change_that_clashes_is_never_applied_blindly(opened: Opened) -> None:
    """It is shown as a conflict, and approved only with a text, by who has seen what is there."""
    note_of(opened)
    id_ = change_of(opened, "two", "proposed")
    write.edit_page(opened.memory, opened.person, "note", [Edit("replace_text", "two", "mine")])
    shown = review.show(opened.memory, opened.person, id_)
    assert shown.waiting.state == "conflict"
    assert shown.clashes
    assert decide(opened, id_).code == "proposal.conflict"
    assert decide(opened, id_, page=b"blind\n").code == "proposal.conflict"
    assert "mine" in text_of(opened)
    done = decide(opened, id_, page=b"# Note\n\nboth\n", if_digest=shown.digest)
    assert done.outcome == "approved"
    assert text_of(opened).endswith("# Note\n\nboth\n")


def test_what_changed_since_it_was_shown_is_not_approved(opened: Opened) -> None:
    """The digest names what the reviewer saw: page and proposal."""
    note_of(opened)
    id_ = change_of(opened, "three", "3")
    seen = review.show(opened.memory, opened.person, id_).digest
    write.edit_page(opened.memory, opened.person, "note", [Edit("replace_text", "one", "1")])
    assert decide(opened, id_, if_digest=seen).code == "proposal.changed"
    assert "three" in text_of(opened)


def test_a_move_and_a_removal_wait_and_are_done(opened: Opened) -> None:
    """Nothing happens before the approval."""
    note_of(opened), note_of(opened, "# Other\n", "other")
    agent = opened.agent("agent:claude", "read", "propose")
    moved = write.move_page(opened.memory, agent, "note", "house/note")
    gone = write.remove_page(opened.memory, agent, "other", if_version=opened.version("other"))
    assert (moved.outcome, moved.path, gone.outcome) == ("proposed", "note", "proposed")
    assert (opened.root / "note.md").exists()
    waiting = {each.op: each for each in review.queue(opened.memory, opened.person).items}
    assert (waiting["move"].path, waiting["move"].to) == ("note", "house/note")
    done = review.decide_all(opened.memory, opened.person, [moved.proposal, gone.proposal], "approve")
    assert [(each.outcome, each.path) for each in done] == [("approved", "house/note"), ("approved", "other")]
    assert (opened.root / "house/note.md").exists()
    assert not (opened.root / "note.md").exists()
    assert not (opened.root / "other.md").exists()
    assert read.list_pages(opened.memory, opened.person).total == 1
    assert not opened.memory.losses.held
    assert compare(opened.memory) == []


def test_a_removal_of_a_page_that_changed_since_wants_a_second_look(opened: Opened) -> None:
    """Its text is another than the one that it was judged by."""
    note_of(opened)
    agent = opened.agent("agent:claude", "read", "propose")
    id_ = write.remove_page(opened.memory, agent, "note", if_version=opened.version("note")).proposal
    write.edit_page(opened.memory, opened.person, "note", [Edit("append", value="precious\n")])
    assert state_of(opened, id_) == "stale"
    assert decide(opened, id_).code == "proposal.stale"
    assert "precious" in text_of(opened)
    seen = review.show(opened.memory, opened.person, id_).digest
    assert decide(opened, id_, if_digest=seen).outcome == "approved"
    assert not (opened.root / "note.md").exists()


def test_a_move_to_a_place_that_was_taken_since_is_a_conflict(opened: Opened) -> None:
    """Nothing is overwritten."""
    note_of(opened)
    agent = opened.agent("agent:claude", "read", "propose")
    id_ = write.move_page(opened.memory, agent, "note", "place").proposal
    note_of(opened, "# Mine\n", "place")
    assert state_of(opened, id_) == "conflict"
    assert decide(opened, id_).code == "page.exists"
    assert text_of(opened, "place") == "# Mine\n"


def test_a_proposal_follows_its_page_by_id_and_by_version(opened: Opened) -> None:
    """A page that was moved meanwhile is found again."""
    note_of(opened, "---\nid: n1\n---\none\n", "a")
    note_of(opened, "plain\n", "b")
    first, second = (
        change_of(opened, "one", "1", path="a"),
        change_of(opened, "plain", "fancy", path="b"),
    )
    until(lambda: "b.md" in opened.memory.require_history().head_files())
    write.move_page(opened.memory, opened.person, "a", "x/a")
    write.move_page(opened.memory, opened.person, "b", "x/b")
    until(lambda: "x/b.md" in opened.memory.require_history().head_files())
    assert review.show(opened.memory, opened.person, first).waiting.path == "x/a"
    assert review.show(opened.memory, opened.person, second).waiting.path == "x/b"
    assert decide(opened, first).path == "x/a"
    assert decide(opened, second).outcome == "approved"
    assert "fancy" in text_of(opened, "x/b")


def test_a_proposal_for_a_page_that_is_gone_is_shown_as_orphan(opened: Opened) -> None:
    """It brings the page back in no case, and can be rejected."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    write.remove_page(opened.memory, opened.person, "note")
    (waiting,) = review.queue(opened.memory, opened.person).items
    assert waiting.state == "orphan"
    assert decide(opened, id_).code == "proposal.orphan"
    assert not (opened.root / "note.md").exists()
    assert decide(opened, id_, "reject").outcome == "rejected"
    assert review.queue(opened.memory, opened.person).total == 0


def test_two_people_approve_at_once_and_the_second_is_told(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One approval is done; the other is a conflict, whatever was proposed."""
    note_of(opened)
    change = change_of(opened, "two", "2")
    agent = opened.agent("agent:claude", "read", "propose")
    write.write_page(opened.memory, agent, "new", Proposed("fresh"))
    both = threading.Barrier(2, timeout=30)
    plain = verdicts.carry

    def together(*arguments: object) -> Written:
        if len(met) < 2:
            met.append(1)
            both.wait()
        return plain(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(verdicts, "carry", together)
    for id_ in (change, "new"):
        met: list[int] = []
        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda each: decide(opened, each), [id_, id_]))
        assert sorted((each.outcome, each.code) for each in done) == [
            ("approved", ""),
            ("refused", "proposal.decided"),
        ]
        both.reset()


@pytest.mark.parametrize("op", ["change", "move", "remove"])
def test_an_approval_that_a_rejection_overtakes_changes_nothing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    """Page and proposal change together, or not at all."""
    note_of(opened)
    agent = opened.agent("agent:claude", "read", "propose")
    acts = {
        "change": lambda: change_of(opened, "two", "2"),
        "move": lambda: write.move_page(opened.memory, agent, "note", "b").proposal,
        "remove": lambda: (
            write.remove_page(opened.memory, agent, "note", if_version=opened.version("note")).proposal
        ),
    }
    id_ = acts[op]()
    plain = verdicts.carry
    overtaken: list[review.Decided] = []

    def late(doing: Doing, case: Case, asked: verdicts.Asked) -> Written:
        if asked.decision == "approve" and not overtaken:
            overtaken.append(decide(opened, id_, "reject", reason="faster"))
        return plain(doing, case, asked)

    monkeypatch.setattr(verdicts, "carry", late)
    assert decide(opened, id_).code == "proposal.decided"
    assert overtaken[0].outcome == "rejected"
    assert text_of(opened) == "# Note\n\none\n\ntwo\n\nthree\n"
    assert not (opened.root / "b.md").exists()
    assert state_of(opened, id_) == "rejected"


def test_a_page_that_changes_during_an_approval_is_looked_at_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person saves at that very moment: both texts are there afterwards."""
    note_of(opened)
    id_ = change_of(opened, "three", "3")
    plain = verdicts.carry
    saved: list[int] = []

    def late(doing: Doing, case: Case, asked: verdicts.Asked) -> Written:
        if not saved:
            saved.append(1)
            opened.save("note.md", "# Note\n\n1\n\ntwo\n\nthree\n")
        return plain(doing, case, asked)

    monkeypatch.setattr(verdicts, "carry", late)
    assert decide(opened, id_).outcome == "approved"
    assert text_of(opened).endswith("# Note\n\n1\n\ntwo\n\n3\n")


def test_who_comes_later_is_told_who_decided(opened: Opened) -> None:
    """A change by the name of whom history has; a new page is not found to wait any more."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    decide(opened, id_)
    until(lambda: opened.memory.context.controller in decide(opened, id_).why)
    assert decide(opened, id_).code == "proposal.decided"
    assert decide(opened, "0" * 20).code == "proposal.not-found"


def test_what_was_rejected_is_approved_only_by_who_saw_that(opened: Opened) -> None:
    """A change of mind is possible, an approval by mistake is not."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    assert decide(opened, id_, "reject", reason="no\nreason ").outcome == "rejected"
    assert decide(opened, id_).code == "proposal.decided"
    shown = review.show(opened.memory, opened.person, id_)
    assert (shown.waiting.state, shown.waiting.reason) == ("rejected", "no reason")
    assert [each.id for each in review.queue(opened.memory, opened.person, state="rejected").items] == [id_]
    assert decide(opened, id_, if_digest=shown.digest).outcome == "approved"
    assert "2" in text_of(opened)


def test_many_are_decided_in_one_call_each_with_its_outcome(opened: Opened) -> None:
    """What cannot be done keeps nothing else from being done."""
    agent = opened.agent("agent:claude", "read", "propose")
    ids = [write.write_page(opened.memory, agent, f"p{n}", Proposed(f"text {n}")).path for n in range(12)]
    done = review.decide_all(opened.memory, opened.person, [*ids, "nothing", ids[0]], "approve")
    assert [each.outcome for each in done] == ["approved"] * 12 + ["refused"]
    assert read.list_pages(opened.memory, agent).total == 12
    with pytest.raises(Usage):
        review.decide_all(opened.memory, opened.person, ids, "approve", page=b"x")


def test_the_queue_goes_on_where_it_ended(opened: Opened) -> None:
    """Each proposal stands in it once, the oldest first."""
    agent = opened.agent("agent:claude", "read", "propose")
    for n in range(5):
        write.write_page(opened.memory, agent, f"p{n}", Proposed(f"text {n}"))
    seen: list[str] = []
    cursor = None
    while True:
        part = review.queue(opened.memory, opened.person, limit=2, cursor=cursor)
        assert part.total == 5
        seen += [each.id for each in part.items]
        cursor = part.cursor
        if cursor is None:
            break
    assert seen == [f"p{n}" for n in range(5)]


def test_a_reviewer_decides_where_it_may_read_and_review_on_both_sides(opened: Opened) -> None:
    """What it may not review does not exist for it, in no count either."""
    proposer = opened.agent("agent:claude", "read", "propose")
    opened.memory.access.grant(Grant("agent:claude", ("work",), CATEGORIES, ("read", "propose")))
    note_of(opened)
    here = write.write_page(opened.memory, proposer, "here", Proposed("mine"))
    there = write.write_page(opened.memory, proposer, "there", Proposed("other", partition="work"))
    across = write.edit_page(opened.memory, proposer, "note", [Edit("set", "partition", "work")])
    reviewer = opened.agent("agent:editor", "read", "review")
    queue = review.queue(opened.memory, reviewer)
    assert ([each.id for each in queue.items], queue.total) == (["here"], 1)
    for id_ in (there.path, across.proposal):
        with pytest.raises(NotFound):
            review.show(opened.memory, reviewer, id_)
        (done,) = review.decide_all(opened.memory, reviewer, [id_], "approve")
        assert done.code == "proposal.not-found"
    (done,) = review.decide_all(opened.memory, reviewer, [here.path], "approve")
    assert done.outcome == "approved"
    (out,) = review.decide_all(
        opened.memory,
        reviewer,
        [write.write_page(opened.memory, proposer, "next", Proposed("text")).path],
        "approve",
        page=b"---\npartition: work\n---\n",
    )
    assert out.code == "proposal.out-of-reach"
    assert review.queue(opened.memory, proposer).total == 0


def test_each_decision_has_its_row_in_the_trail_the_persons_too(opened: Opened) -> None:
    """As the proposal itself has."""
    note_of(opened)
    decide(opened, change_of(opened, "two", "2"))
    decide(opened, change_of(opened, "three", "3"), "reject")
    until(lambda: len(audit.rows(opened.memory.ledger)) >= 4)
    rows = [(row.principal, row.action, row.outcome) for row in reversed(audit.rows(opened.memory.ledger))]
    person = opened.memory.context.controller
    assert [row for row in rows if row[1] in {"propose", "approve", "reject"}] == [
        ("agent:claude", "propose", "ok"),
        (person, "approve", "ok"),
        ("agent:claude", "propose", "ok"),
        (person, "reject", "ok"),
    ]


def test_a_repeated_decision_is_answered_again(opened: Opened) -> None:
    """Under its key; another request under the same key is refused."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    person = Caller(opened.person.principal, "cli", key="k")
    first = review.decide_all(opened.memory, person, [id_], "approve")
    assert review.decide_all(opened.memory, person, [id_], "approve") == first
    assert review.decide_all(opened.memory, person, [id_], "reject")[0].code == "write.key-reused"


def test_a_state_set_in_an_editor_is_a_decision(make_opened: Callable[..., Opened]) -> None:
    """Agents see the page at once; the trail says that the person approved it; the next act writes it down."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    agent = opened.agent("agent:claude", "read", "propose", "write")
    opened.memory.access.grant(Grant("agent:shy", ("personal",), CATEGORIES, ("read", "propose")))
    shy = Caller(Principal("agent:shy"), "mcp")
    write.write_page(opened.memory, shy, "page", Proposed("text"))
    opened.save("page.md", text_of(opened, "page").replace("state: proposed", "state: approved"))
    until(lambda: read.list_pages(opened.memory, agent).total == 1)
    until(lambda: any(row.channel == "disk" for row in audit.rows(opened.memory.ledger)))
    row = next(row for row in audit.rows(opened.memory.ledger) if row.channel == "disk")
    assert (row.principal, row.action) == (opened.memory.context.controller, "approve")
    assert "verified" not in text_of(opened, "page")
    write.edit_page(opened.memory, agent, "page", [Edit("append", value="more\n")])
    assert f"by: {opened.memory.context.controller}" in text_of(opened, "page").replace('"', "")
    assert row.at in text_of(opened, "page")
    assert review.queue(opened.memory, opened.person).total == 0


def test_a_rejection_in_an_editor_answers_the_same_proposal(opened: Opened) -> None:
    """The page stays hidden, and the same is not taken again."""
    agent = opened.agent("agent:claude", "read", "propose")
    write.write_page(opened.memory, agent, "page", Proposed("text"))
    opened.save("page.md", text_of(opened, "page").replace("state: proposed", "state: rejected"))
    until(lambda: review.queue(opened.memory, opened.person, state="rejected").total == 1)
    with pytest.raises(Denied, match="rejected"):
        write.write_page(opened.memory, agent, "page", Proposed("text"))


def test_proposals_expire_by_an_act_alone(make_opened: Callable[..., Opened]) -> None:
    """After 90 days they are shown as expired; `expire` takes those away, and no others."""
    opened = make_opened().open()
    agent = opened.agent("agent:claude", "read", "propose")
    note_of(opened)
    change_of(opened, "two", "2")
    write.write_page(opened.memory, agent, "old", Proposed("text"))
    assert review.expire(opened.memory, opened.person) == ()
    opened.close()
    opened.ahead_s = 91 * 24 * 3600
    opened.open()
    write.write_page(opened.memory, agent, "young", Proposed("text"))
    waiting = review.queue(opened.memory, opened.person).items
    assert {each.path: each.is_expired for each in waiting} == {"note": True, "old": True, "young": False}
    assert decide(opened, "young", "expire").code == "proposal.not-expired"
    assert {each.outcome for each in review.expire(opened.memory, opened.person)} == {"expired"}
    assert [each.id for each in review.queue(opened.memory, opened.person).items] == ["young"]
    assert not (opened.root / "old.md").exists()


def test_a_file_that_is_no_proposal_is_shown_and_removed_by_a_rejection(opened: Opened) -> None:
    """Whoever put it there."""
    opened.save(f".pcp/proposals/{'a' * 20}.md", "nonsense")
    until(lambda: review.queue(opened.memory, opened.person).total == 1)
    assert state_of(opened, "a" * 20) == "invalid"
    assert decide(opened, "a" * 20).code == "proposal.invalid"
    assert decide(opened, "a" * 20, "reject").outcome == "rejected"
    assert review.queue(opened.memory, opened.person).total == 0


def test_a_page_cannot_pass_for_anothers_proposal(opened: Opened) -> None:
    """A path that looks like an id is told apart by the file's name."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    agent = opened.agent("agent:claude", "read", "propose")
    write.write_page(opened.memory, agent, id_, Proposed("evil"))
    assert decide(opened, id_).code == "proposal.ambiguous"
    assert decide(opened, f".pcp/proposals/{id_}.md").outcome == "approved"
    assert "2" in text_of(opened)


def test_a_proposal_is_in_the_queue_when_the_act_answers(opened: Opened) -> None:
    """And its row is gone when the decision answers; a rebuild finds the same."""
    note_of(opened)
    id_ = change_of(opened, "two", "2")
    with opened.memory.index.reader() as conn:
        assert [row.id for row in proposals.listed(conn, ("open",))] == [id_]
    assert compare(opened.memory) == []
    decide(opened, id_)
    with opened.memory.index.reader() as conn:
        assert list(proposals.listed(conn, proposals.STATES)) == []
    assert compare(opened.memory) == []


def test_removals_that_were_approved_are_no_mass_loss(opened: Opened) -> None:
    """What was asked of pcpd is meant, however much it is."""
    agent = opened.agent("agent:claude", "read", "propose")
    for n in range(3):
        note_of(opened, f"text {n}\n", f"p{n}")
    until(lambda: len(opened.memory.require_history().head_files()) >= 3)
    ids = [
        write.remove_page(opened.memory, agent, f"p{n}", if_version=opened.version(f"p{n}")).proposal
        for n in range(3)
    ]
    assert {each.outcome for each in review.decide_all(opened.memory, opened.person, ids, "approve")} == {
        "approved"
    }
    assert not opened.memory.losses.held
    assert read.list_pages(opened.memory, opened.person).total == 0

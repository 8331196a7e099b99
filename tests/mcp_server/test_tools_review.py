"""The tools of review: what waits, what it would change, and deciding it; and writes that wait."""

from typing import Any

import pytest

from tests.doors import Doors, Relayed
from tests.mcp_server.asked import agent, called, data, refusal, texts

OLD, NEW = "Gas or heat pump?", "A heat pump."


@pytest.fixture
def proposer(doors: Doors) -> Relayed:
    """An agent that may only propose."""
    return agent(doors, "agent:proposer", "read", "propose")


@pytest.fixture
def reviewer(doors: Doors) -> Relayed:
    """An agent that may review."""
    return agent(doors, "agent:reviewer", "read", "review")


def proposed(proposer: Relayed) -> str:
    """A change of the page boiler that waits; gives its id."""
    arguments = {"path": "boiler", "op": "replace_text", "old_text": OLD, "content": NEW}
    answer = data(proposer, "edit_page", **arguments)
    assert answer["outcome"] == "proposed"
    return str(answer["proposal"])


def test_a_write_that_waits_says_so_in_words(doors: Doors, proposer: Relayed) -> None:
    """Each tool that changes: nothing has changed, there is no version to go on from, and the person is to be told."""
    version = data(proposer, "read_page", path="boiler")["version"]
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("write_page", {"path": "new", "content": "Heat."}),
        ("edit_page", {"path": "boiler", "op": "append", "content": "More."}),
        ("move_page", {"path": "boiler", "to": "heating"}),
        ("remove_page", {"path": "boiler", "if_version": version}),
    )
    for tool, arguments in calls:
        result = called(proposer, tool, **arguments)
        answer = result["structuredContent"]
        assert answer["outcome"] == "proposed", tool
        assert answer["proposal"] in texts(result)
        assert "waits for the person's review" in texts(result)
        assert answer.get("version") is answer.get("edit_version") is None
    assert data(proposer, "read_page", path="boiler")["version"] == version
    assert doors.vault("GET", "proposals").json()["total"] == len(calls)


def test_one_who_may_review_sees_the_words_that_change_and_approves(
    doors: Doors, proposer: Relayed, reviewer: Relayed
) -> None:
    """In the list, whole with its digest, and then as a page."""
    id_ = proposed(proposer)
    (row,) = data(reviewer, "list_proposals")["proposals"]
    assert (row["id"], row["op"], row["path"], row["by"], row["state"]) == (
        id_, "change", "boiler", "agent:proposer", "open",
    )  # fmt: skip
    shown = data(reviewer, "list_proposals", id=id_)
    assert "[-" in shown["content"]
    assert "{+" in shown["content"]
    decided = data(reviewer, "review_proposal", id=id_, decision="approve", if_digest=shown["digest"])
    assert (decided["outcome"], decided["path"]) == ("approved", "boiler")
    assert NEW.encode() in doors.vault("GET", "pages/boiler").data
    assert data(reviewer, "list_proposals")["total"] == 0


def test_another_text_may_be_approved_in_its_place(
    doors: Doors, proposer: Relayed, reviewer: Relayed
) -> None:
    """`content` becomes the page; a rejection takes none."""
    id_ = proposed(proposer)
    refused = refusal(reviewer, "review_proposal", id=id_, decision="reject", content="x")
    assert refused["code"] == "tool.argument"
    data(reviewer, "review_proposal", id=id_, decision="approve", content="Wood.\n")
    assert b"Wood." in doors.vault("GET", "pages/boiler").data


def test_a_rejection_is_told_to_who_proposes_the_same_again(proposer: Relayed, reviewer: Relayed) -> None:
    """With its reason."""
    data(reviewer, "review_proposal", id=proposed(proposer), decision="reject", reason="Not so.")
    arguments = {"path": "boiler", "op": "replace_text", "old_text": OLD, "content": NEW}
    refused = refusal(proposer, "edit_page", **arguments)
    assert refused["code"] == "proposal.rejected"
    assert "Not so." in refused["message"]


def test_for_all_others_nothing_waits_and_no_proposal_exists(doors: Doors, proposer: Relayed) -> None:
    """Not even the one who proposed it: the same answers as where there is none."""
    id_ = proposed(proposer)
    for one in (proposer, agent(doors, "agent:writer", "read", "write")):
        assert data(one, "list_proposals") == {**data(one, "list_proposals"), "total": 0, "proposals": []}
        for tool, more in (("list_proposals", {}), ("review_proposal", {"decision": "approve"})):
            real = refusal(one, tool, id=id_, **more)
            none = refusal(one, tool, id="f" * len(id_), **more)
            assert real["code"] == none["code"] == "proposal.not-found"
            assert real["message"].replace(id_, "") == none["message"].replace("f" * len(id_), "")


def test_what_changed_since_it_was_shown_is_not_decided(
    doors: Doors, proposer: Relayed, reviewer: Relayed
) -> None:
    """The page changed in between: the digest is another one."""
    id_ = proposed(proposer)
    digest = data(reviewer, "list_proposals", id=id_)["digest"]
    doors.vault("PATCH", "pages/boiler", body={"edits": [{"op": "append", "value": "Adler asks for more."}]})
    refused = refusal(reviewer, "review_proposal", id=id_, decision="approve", if_digest=digest)
    assert refused["code"] == "proposal.changed"
    assert data(reviewer, "list_proposals")["total"] == 1


@pytest.mark.parametrize("text", ["\x1b[2J\x07", "漢字かな交じり文。" * 9000, "word " * 60_000, "\u202egnp"])
def test_hostile_proposals_are_shown_in_parts_that_fit(
    proposer: Relayed, reviewer: Relayed, text: str
) -> None:
    """Escapes, megabytes, scripts without blanks: each part is within the budget, and all parts are the whole."""
    data(proposer, "write_page", path="big", content=f"{text}\nend\n")
    offset, whole = 0, ""
    while True:
        shown = data(reviewer, "list_proposals", id="big", offset=offset)
        whole += shown["content"]
        if shown["next_offset"] is None:
            break
        offset = shown["next_offset"]
    assert len(whole) == shown["characters"]
    assert text in whole

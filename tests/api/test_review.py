"""The routes of review: for the person and for agents that may review; for all others nothing waits."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.doors import Answer, Doors

OLD = "Gas or heat pump?"


class Agent:
    """An agent on the TCP door."""

    def __init__(self, doors: Doors, name: str, *rights: str) -> None:
        doors.opened.agent(name, *rights)
        self._doors, self._headers = doors, {"Authorization": f"Bearer {doors.token(name)}"}

    def ask(self, method: str, route: str, body: Any = None) -> Answer:
        """Asks the API."""
        return self._doors.ask(method, f"/vault/v1/{route}", body=body, headers=self._headers, tcp=True)

    def propose(self, new: str) -> str:
        """Proposes a change of the page boiler; gives its id."""
        edits = [{"op": "replace_text", "where": OLD, "value": new}]
        answer = self.ask("PATCH", "pages/boiler", {"edits": edits})
        said = answer.json()
        assert (answer.status, said["outcome"], said["version"]) == (202, "proposed", None)
        assert "etag" not in answer.headers
        return str(said["proposal"])


@pytest.fixture
def proposer(doors: Doors) -> Agent:
    """An agent that may only propose."""
    return Agent(doors, "agent:proposer", "read", "propose")


def test_what_is_shown_is_what_is_decided(doors: Doors, proposer: Agent) -> None:
    """Before, after, the words; a digest that is not of today is refused, and nothing has changed."""
    id_ = proposer.propose("A heat pump.")
    shown = doors.vault("GET", f"proposals/{id_}").json()
    assert OLD in shown["before"]
    assert "A heat pump." in shown["after"]
    assert "".join(span["text"] for span in shown["diff"] if span["op"] != "added") == shown["before"]
    assert "".join(span["text"] for span in shown["diff"] if span["op"] != "removed") == shown["after"]
    stale = doors.vault("POST", f"proposals/{id_}", body={"decision": "approve", "if_digest": "x"})
    assert (stale.status, stale.code) == (409, "proposal.changed")
    assert OLD.encode() in doors.vault("GET", "pages/boiler").data
    body = {"decision": "approve", "if_digest": shown["digest"]}
    done = doors.vault("POST", f"proposals/{id_}", body=body)
    assert (done.status, done.json()["outcome"]) == (200, "approved")
    assert b"A heat pump." in doors.vault("GET", "pages/boiler").data


def test_several_are_decided_each_for_itself(doors: Doors, proposer: Agent) -> None:
    """One that is not there keeps no other from being rejected."""
    ids = [proposer.propose("A heat pump."), "f" * 20, proposer.propose("Gas.")]
    body = {"ids": ids, "decision": "reject", "reason": "No."}
    decided = doors.vault("POST", "proposals", body=body).json()["decided"]
    assert [(each["id"], each["outcome"], each["code"]) for each in decided] == [
        (ids[0], "rejected", ""),
        (ids[1], "refused", "proposal.not-found"),
        (ids[2], "rejected", ""),
    ]
    assert doors.vault("GET", "proposals").json()["total"] == 0
    assert doors.vault("GET", "proposals?state=rejected").json()["total"] == 2


def test_who_may_not_review_finds_nothing_waiting(doors: Doors, proposer: Agent) -> None:
    """The one who proposed it, a writer, a reviewer of another partition: as if there were none."""
    id_ = proposer.propose("A heat pump.")
    doors.opened.agent("agent:else", "read", "review", partition="work")
    others = proposer, Agent(doors, "agent:writer", "read", "write"), Agent(doors, "agent:else")
    for other in others:
        assert other.ask("GET", "proposals").json() == {"items": [], "total": 0, "cursor": None}
        for method, body in (("GET", None), ("POST", {"decision": "approve"})):
            answer, none = (other.ask(method, f"proposals/{each}", body) for each in (id_, "f" * 20))
            assert (answer.status, answer.code) == (none.status, none.code) == (404, "proposal.not-found")
        (decided,) = other.ask("POST", "proposals", {"ids": [id_], "decision": "reject"}).json()["decided"]
        assert (decided["outcome"], decided["code"]) == ("refused", "proposal.not-found")
    assert doors.vault("GET", "proposals").json()["total"] == 1


def test_a_page_of_any_path_is_a_proposals_id(make_doors: Callable[..., Doors]) -> None:
    """Folders, blanks, other scripts."""
    paths = "notes/deep/pump", "漢 字", "a%b"
    doors = make_doors({f"{path}.md": "---\nreview: {state: proposed}\n---\nNew.\n" for path in paths})
    for path in paths:
        route = f"proposals/{quote(path)}"
        assert doors.vault("GET", route).json()["waiting"]["id"] == path
        assert doors.vault("POST", route, body={"decision": "approve"}).json()["outcome"] == "approved"

"""The routes of the audit trail: all of it for the person, its own acts for an agent."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from pcpd.memory import read
from tests.doors import Answer, Doors
from tests.waiting import until


@pytest.fixture
def bearer(doors: Doors) -> Mapping[str, str]:
    """The headers of an agent with a grant to read."""
    doors.opened.agent("agent:claude", "read")
    return {"Authorization": f"Bearer {doors.token()}"}


def rows(answer: Answer) -> list[dict[str, Any]]:
    """The rows of an answer."""
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


def test_the_person_sees_what_an_agent_did(doors: Doors, bearer: Mapping[str, str]) -> None:
    """Who, what, when, how, the category, and the page by path beside its opaque number."""
    assert doors.vault("GET", "pages/boiler", headers=bearer, tcp=True).status == 200
    assert doors.vault("GET", "pages/absent", headers=bearer, tcp=True).status == 404
    answer = doors.vault("GET", "audit")
    assert set(answer.json()) == {"rows", "cursor", "position"}
    refused, read_ = rows(answer)
    assert (refused["outcome"], refused["paths"]) == ("page.not-found", [])
    assert {key: read_[key] for key in ("principal", "action", "channel", "outcome", "categories", "paths")} == {
        "principal": "agent:claude", "action": "read_page", "channel": "http", "outcome": "ok",
        "categories": ["semantic"], "paths": ["boiler"],
    }  # fmt: skip
    assert set(read_) >= {"id", "at", "object_ids", "counts", "duration_ms"}
    assert read_["object_ids"] == [1]


def test_an_agent_sees_its_own_acts(doors: Doors, bearer: Mapping[str, str]) -> None:
    """Not those of another, not a sum, and not the proof."""
    read.list_pages(doors.opened.memory, doors.opened.agent("agent:other", "read"))
    doors.vault("GET", "recent", headers=bearer, tcp=True)
    mine = rows(doors.vault("GET", "audit", headers=bearer, tcp=True))
    assert [(row["principal"], row["action"], row["object_ids"]) for row in mine] == [
        ("agent:claude", "recent_pages", [])
    ]
    for route in ("audit/summary", "audit/proof"):
        assert doors.vault("GET", route, headers=bearer, tcp=True).code == "http.person-only"
        assert doors.vault("GET", route, headers=bearer).code == "http.person-only"
        assert doors.vault("GET", route, tcp=True).status == 401
    assert doors.vault("GET", "audit", tcp=True).status == 401


def test_rows_are_filtered_and_paged(doors: Doors, bearer: Mapping[str, str]) -> None:
    """By every name of the query."""
    for _ in range(3):
        doors.vault("GET", "pages/boiler", headers=bearer)
    doors.vault("GET", "search?q=heat", headers=bearer)
    first = doors.vault("GET", "audit?limit=2&action=read_page").json()
    second = doors.vault("GET", f"audit?limit=2&action=read_page&cursor={first['cursor']}").json()
    assert (len(first["rows"]), len(second["rows"]), second["cursor"]) == (2, 1, None)
    for query, count in {
        "principal=agent:claude": 4, "principal=unknown": 0, "action=search_memory": 1, "channel=http": 4,
        "channel=mcp": 0, "outcome=refused": 0, "outcome=ok": 4, "category=semantic": 4, "category=profile": 0,
        "page=boiler": 4, "page=boiler.md&action=read_page": 3, "since=2020-01-01": 4, "until=2020-01-01": 0,
        "since=2999-01-01T00:00:00Z": 0,
    }.items():  # fmt: skip
        assert len(rows(doors.vault("GET", f"audit?{query}"))) == count, query


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 400),
        ("limit=1001", 400),
        ("channel=smoke", 400),
        ("category=all", 400),
        ("wait=26&after=", 400),
        ("since=yesterday", 422),
        ("cursor=zzz", 422),
        ("after=zzz", 422),
        ("after=&cursor=x", 400),
        ("principal=" + "x" * 5000, 400),
    ],
)
def test_what_cannot_be_asked_is_refused(doors: Doors, query: str, status: int) -> None:
    """With a problem that says what."""
    answer = doors.vault("GET", f"audit?{query}")
    assert (answer.status, bool(answer.code)) == (status, True)


def test_a_person_waits_for_what_comes(doors: Doors, bearer: Mapping[str, str]) -> None:
    """The answer comes with the row, long before the wait is over; what does not match is waited past."""
    position = doors.vault("GET", "audit").json()["position"]
    found: list[Answer] = []

    def wait() -> None:
        found.append(doors.vault("GET", f"audit?after={position}&wait=25&action=recent_pages"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: doors.opened.memory.trail.listeners._wakes)
    doors.vault("GET", "pages/boiler", headers=bearer)
    doors.vault("GET", "recent", headers=bearer)
    waiting.join()
    assert [row["action"] for row in rows(found[0])] == ["recent_pages"]
    assert not doors.opened.memory.trail.listeners._wakes


def test_a_wait_ends_without_a_row(doors: Doors) -> None:
    """With the position to go on from."""
    position = doors.vault("GET", "audit").json()["position"]
    answer = doors.vault("GET", f"audit?after={position}&wait=1").json()
    assert (answer["rows"], answer["position"]) == ([], position)


def test_an_agents_look_never_waits(doors: Doors, bearer: Mapping[str, str]) -> None:
    """It leaves a row itself: whoever waited for rows would wake itself for ever."""
    position = doors.vault("GET", "audit", headers=bearer).json()["position"]
    assert len(rows(doors.vault("GET", f"audit?after={position}&wait=25", headers=bearer))) == 1


def test_old_rows_are_removed_for_the_person_alone(doors: Doors, bearer: dict[str, str]) -> None:
    """None here is old enough; an agent may not ask for it."""
    assert doors.vault("POST", "audit/prune", body={"before": "2020-01-01"}).json() == {"removed": 0}
    refused = doors.vault("POST", "audit/prune", body={"before": "2020-01-01"}, headers=bearer, tcp=True)
    assert refused.code == "http.person-only"


def test_sum_and_proof(doors: Doors, bearer: Mapping[str, str]) -> None:
    """What the person wants to know before they give more, and whether it can be believed."""
    doors.vault("GET", "pages/boiler", headers=bearer)
    (one,) = doors.vault("GET", "audit/summary?principal=agent:claude").json()["principals"]
    assert (one["reads"], one["writes"], one["refused"], one["pages"]) == (1, 0, 0, 1)
    proof = {"ok": True, "rows": 1, "faults": [], "pruned": 0, "pruned_before": None}
    assert doors.vault("GET", "audit/proof").json() == proof
    with doors.opened.memory.ledger.transaction() as tx:
        tx.execute("UPDATE audit SET outcome = 'denied'")
    told = doors.vault("GET", "audit/proof").json()
    assert (told["ok"], told["faults"]) == (
        False,
        [{"number": 1, "what": "row 1 was edited, or put in from elsewhere"}],
    )

"""What a grant hides does not exist: every answer is that of a vault in which the hidden pages never were."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.doors import Doors, Relayed
from tests.mcp_server.asked import called
from tests.waiting import until

OWN = "updated: 2026-01-05\n"
SEEN = {
    "house/boiler.md": f"---\n{OWN}title: Boiler\ntags: [heat]\n---\n# Boiler\nheat pump [[pump]] [[gone]] [[plan]]\n",
    "house/pump.md": f"---\n{OWN}---\nA heat pump. [[boiler]]\n",
    "notes.md": f"---\n{OWN}---\nheat, heat and heat.\n",
}
WORK = "partition: work\n"
TWINS = {
    "work/boiler.md": f"---\n{OWN}{WORK}---\nheat heat zyxtwin [[pump]] [[boiler]]\n",
    "work/pump.md": f"---\n{OWN}{WORK}---\n[[notes]] zyxtwin heat\n",
    "plan.md": f"---\n{OWN}{WORK}---\nzyxtwin [[notes]] [[house/boiler]]\n",
    "gone.md": f"---\n{OWN}sensitivity: sensitive\n---\nzyxtwin heat pump\n",
    "draft.md": f"---\n{OWN}review: {{state: proposed}}\naliases: [gone]\n---\nzyxtwin heat [[notes]]\n",
    "house/secret.md": f"---\n{OWN}{WORK}---\nzyxtwin heat [[nowhere-zyxtwin]]\n",
    "talk.md": f"---\n{OWN}x_session: s1\n---\nzyxtwin heat [[pump]]\n",
}
HIDDEN = [file.removesuffix(".md") for file in TWINS]


def narrow(doors: Doors) -> Relayed:
    """An agent that reads and writes the personal pages that are normal, and no conversations."""
    for name in ("agent:claude", "agent:worker"):
        doors.opened.agent(name)
    doors.vault("POST", "grants", body={
        "principal": "agent:claude", "rights": ["read", "write"], "partitions": ["personal"],
        "categories": ["semantic", "episodic", "procedural", "profile"],
    })  # fmt: skip
    doors.opened.agent("agent:worker", "read", "write", partition="work")
    relayed = doors.relay(principal="agent:claude", token=doors.token())
    relayed.begin()
    return relayed


def questions() -> list[tuple[str, dict[str, Any]]]:
    """Calls of every tool that reads, about pages that are seen, hidden, and absent."""
    every = [*HIDDEN, "house/boiler", "boiler", "pump", "notes", "absent", "twin"]
    asked: list[tuple[str, dict[str, Any]]] = [
        *(("search_memory", {"query": query}) for query in ("heat", "zyxtwin", "partition:work", "is:proposed", "")),
        ("search_memory", {"query": "heat", "limit": 1}), ("list_pages", {}), ("list_pages", {"folder": "work"}),
        ("list_pages", {"limit": 1}), ("recent_pages", {"limit": 2}), ("recent_pages", {"since": "2026-01-01"}),
        ("page_links", {"unresolved": True}), ("describe_context", {}), ("search", {"query": "zyxtwin or heat"}),
    ]  # fmt: skip
    for path in every:
        asked += [
            ("read_page", {"path": path}), ("read_page", {"path": path, "outline": True}),
            ("read_page", {"path": path, "section": "Boiler"}), ("page_links", {"path": path, "depth": 3}),
            ("page_history", {"path": path}), ("page_history", {"path": path, "rev": "0" * 40}),
            ("fetch", {"id": path}),
        ]  # fmt: skip
    return asked


def changes() -> list[tuple[str, dict[str, Any]]]:
    """Calls of every tool that changes, at hidden and absent pages; none may be done."""
    asked: list[tuple[str, dict[str, Any]]] = []
    for path in (*HIDDEN, "absent"):
        asked += [
            ("edit_page", {"path": path, "op": "append", "content": "x"}),
            ("remove_page", {"path": path, "if_version": "0" * 64}),
            ("move_page", {"path": path, "to": "elsewhere"}),
            ("write_page", {"path": path, "content": "x", "if_version": "part-0"}),
        ]
    return asked


def plain(result: Any) -> str:
    """An answer without what differs between any two: ids, times of commits, versions in history, a search's cursor."""
    text = json.dumps(result, sort_keys=True, ensure_ascii=False)
    text = re.sub(r"ctx_\d+_\w+", "CTX", text)
    text = re.sub(r"\b[0-9a-f]{40}\b", "REV", text)
    if "results" in text:
        text = re.sub(r'"cursor": "[^"]*"|cursor [\w-]+\]', "CURSOR", text)
    return re.sub(r'"at": "[^"]*"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ by|commit yet: \S+', "AT", text)


def answers(relayed: Relayed, asked: list[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """What each call is answered with."""
    return {f"{tool} {arguments}": plain(called(relayed, tool, **arguments)) for tool, arguments in asked}


def test_answers_are_those_of_a_vault_without_the_hidden_pages(make_doors: Callable[..., Doors]) -> None:
    """Results, counts, scores, links, neighbours, histories, names, errors: word for word."""
    found = []
    for pages in (SEEN, {**SEEN, **TWINS}):
        doors = make_doors(pages)
        relayed = narrow(doors)
        for file in SEEN:
            until(lambda file=file, doors=doors: is_committed(doors, file))  # type: ignore[misc]
        found.append(answers(relayed, [*questions(), *changes()]))
    without, with_twins = found
    for question, answer in without.items():
        assert with_twins[question] == answer, question
    assert "zyxtwin" not in "".join(
        answer for question, answer in with_twins.items() if "zyxtwin" not in question
    )


def is_committed(doors: Doors, file: str) -> bool:
    """Tells whether a page has a version in history."""
    return bool(doors.vault("GET", f"history/{file.removesuffix('.md')}").json().get("versions"))


def test_a_grant_that_ends_is_as_none(make_doors: Callable[..., Doors]) -> None:
    """At the next call of the same connection."""
    doors = make_doors(SEEN)
    relayed = narrow(doors)
    assert called(relayed, "search_memory", query="heat")["structuredContent"]["total"] == 3
    doors.opened.memory.access.revoke("agent:claude")
    result = called(relayed, "search_memory", query="heat")["structuredContent"]
    assert (result["total"], "pcpd grant" in result["hint"]) == (0, True)

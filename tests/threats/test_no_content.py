"""The audit trail and the log hold no content: after a scene over every route and tool, not a word of it is there."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import iter_route_contexts

from pcpd.api import metrics
from pcpd.api.app import routes
from pcpd.api.paths import PREFIX
from pcpd.gate.knock import OPEN_ROUTES
from pcpd.ledger import audit
from pcpd.mcp_server.tools import TOOLS
from pcpd.memory import strangers
from tests.doors import Doors

TITLE, TEXT, QUERY, TAG = "zyxTitleword", "zyxTextword", "zyxQueryword", "zyxTagword"
CLIENT, NAMED, HOST, ABSENT = "zyxClientword", "agent:zyxclaimedword", "zyxhostword.example", "zyxabsentword"
PAGE = f"---\ntitle: {TITLE}\ntags: [{TAG}]\n---\n# {TITLE}\n\n{TEXT} and more.\n"
ARGUMENTS: dict[str, object] = {
    "query": QUERY, "path": "boiler", "folder": ABSENT, "content": TEXT, "title": TITLE, "tags": [TAG],
    "op": "append", "heading": QUERY, "old_text": TEXT, "key": TAG, "value": QUERY, "to": "moved", "id": "boiler",
    "section": QUERY, "rev": QUERY, "cursor": QUERY, "if_version": QUERY, "partition": ABSENT, "since": QUERY,
}  # fmt: skip
"""What a call may be given; each tool takes those of its own, all at once and only those that it needs."""


UNTOLD = {*OPEN_ROUTES, metrics.ROUTE, "/openapi.json"}
"""Routes that are no act: what they answer is nothing of the vault."""


def secrets_in(data: bytes, *more: str) -> list[str]:
    """The words of the scene that stand somewhere, in whatever case, also in escapes of JSON and URLs."""
    words = (TITLE, TEXT, QUERY, TAG, CLIENT, NAMED, HOST, ABSENT, *more)
    found = data.lower()
    return [word for word in words if word.lower().encode() in found or quote(word).lower().encode() in found]


@pytest.fixture
def log(doors: Doors, tmp_path: Path) -> Iterator[Path]:
    """All that the owner logs during the scene, at the lowest level."""
    path = tmp_path / "log"
    handler = logging.FileHandler(path, encoding="utf-8")
    logger = logging.getLogger("pcpd")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield path
    logger.removeHandler(handler)
    logger.setLevel(before)
    handler.close()


def acts_of(doors: Doors) -> int:
    """How many rows tell of calls of the agent over HTTP."""
    mine = audit.Filter(principal="agent:claude", channel="http")
    return sum(
        row.action != strangers.ACTION for row in audit.rows(doors.opened.memory.ledger, mine, limit=10_000)
    )


def call_every_tool(doors: Doors, token: str) -> int:
    """Calls each tool by the relay: as it should be, with too much, with what it does not know; gives how often."""
    relayed = doors.relay(principal="agent:claude", token=token)
    assert "error" not in relayed.hear()
    info = {"name": CLIENT, "version": CLIENT}
    relayed.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    relayed.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    calls: list[tuple[str, dict[str, Any]]] = [("no_such_" + ABSENT, {QUERY: TEXT})]
    for tool in TOOLS:
        mine: dict[str, Any] = {name: value for name, value in ARGUMENTS.items() if name in tool.properties}
        needed = {name: value for name, value in mine.items() if name in tool.schema.get("required", ())}
        calls += [
            (tool.name, needed),
            (tool.name, mine),
            (tool.name, {**mine, ABSENT: QUERY}),
            (tool.name, {name: {QUERY: TEXT} for name in mine}),
            (tool.name, {**mine, "path": ABSENT}),
        ]
    for number, (name, arguments) in enumerate(calls, 1):
        relayed.request("tools/call", name=name, arguments=arguments)
        rows = audit.rows(doors.opened.memory.ledger, audit.Filter(channel="mcp"), limit=1000)
        assert len(rows) == number, (name, arguments, [(row.action, row.outcome) for row in rows[:3]])
    return len(calls)


def ask_every_route(doors: Doors, token: str) -> None:
    """Asks each route as an agent, as a stranger and from a web page; what streams is left to its own tests."""
    agent = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one", "User-Agent": CLIENT}
    strange = {"Authorization": f"Bearer {NAMED}", "User-Agent": CLIENT}
    body = {
        "path": ABSENT, "to": ABSENT, "content": TEXT, "principal": NAMED, "rights": [QUERY],
        "edits": [{"op": "append", "where": QUERY, "value": TEXT}],
    }  # fmt: skip
    asked = 0
    for route in iter_route_contexts(routes(doors.served).routes):
        path = route.path_format or ""
        if path == f"{PREFIX}/events":
            continue
        for page in ("boiler", ABSENT) if "{" in path else ("",):
            target = (
                path.replace("{path}", page).replace("{id}", page)
                + f"?q={QUERY}&folder={ABSENT}&cursor={QUERY}&rev={QUERY}"
            )
            for method in route.methods or ():
                for headers in (
                    agent,
                    strange,
                    {**agent, "Host": HOST},
                    {**agent, "Origin": f"https://{HOST}"},
                ):
                    kind = {"Content-Type": "text/markdown"} if method == "PUT" else {}
                    sent = {"PUT": PAGE.encode(), "POST": body, "PATCH": body}.get(method)
                    before = acts_of(doors)
                    doors.ask(method, target, headers={**headers, **kind}, body=sent, tcp=True)
                    is_call = headers is agent and path not in UNTOLD
                    assert acts_of(doors) == before + is_call, (method, target)
                    asked += 1
    assert asked > 100


def test_no_word_of_what_was_asked_or_answered_is_in_the_ledger_or_the_log(doors: Doors, log: Path) -> None:
    """Queries, texts, titles, tags, tokens, clients, hosts, claimed names, and pages that are not there."""
    doors.opened.agent("agent:claude", "read", "propose", "write")
    assert doors.vault(
        "PUT", "pages/boiler?overwrite=1", body=PAGE.encode(), headers={"Content-Type": "text/markdown"}
    )
    token, other = doors.token(), doors.token("agent:other")
    calls = call_every_tool(doors, token)
    in_trail = audit.rows(doors.opened.memory.ledger, audit.Filter(channel="mcp"), limit=10_000)
    assert len(in_trail) == calls
    ask_every_route(doors, token)
    doors.relay(principal=NAMED, token=other).hear()
    doors.relay(principal=NAMED, token=f"pcp_00000000_{'z' * 43}").hear()
    assert doors.vault("POST", "revoke", body={"principal": "agent:claude"}).json()["tokens"] == 1
    assert doors.vault("GET", f"pages/{ABSENT}", headers={"Authorization": f"Bearer {token}"}).status == 401
    ledger = doors.opened.memory.ledger.path
    files = [file for file in ledger.parent.iterdir() if file.name.startswith(ledger.name)]
    assert len(files) >= 2  # with the write-ahead log
    for file in files:
        assert secrets_in(file.read_bytes(), token, other, token[13:], other[13:], "z" * 43) == [], file.name
    assert secrets_in(log.read_bytes(), token, other, token[13:]) == []
    rows = audit.rows(doors.opened.memory.ledger, limit=10_000)
    assert len(rows) > 100
    assert json.dumps([row.action for row in rows]).isascii()

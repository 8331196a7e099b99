"""A pause cuts every agent off at once, on every way in, until the person ends it."""

import http.client
from collections.abc import Callable
from typing import Any

import pytest

from pcpd.errors import Denied
from pcpd.ledger import audit
from pcpd.memory import read
from pcpd.memory.memory import Caller
from pcpd.policy.decide import Principal
from tests.doors import Doors, Relayed
from tests.waiting import until


def bearer(token: str) -> dict[str, str]:
    """The headers of a call with a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def open_doors(doors: Doors) -> Doors:
    """Doors with an agent that may read and write."""
    doors.opened.agent("agent:claude", "read", "write")
    return doors


def test_paused_agents_are_refused_on_every_way_until_resumed(open_doors: Doors) -> None:
    """API and MCP over HTTP, new relays; the person's own calls go on. The code is the same everywhere."""
    headers = bearer(open_doors.token())
    assert open_doors.vault("GET", "pages/boiler", headers=headers, tcp=True).status == 200
    assert set(open_doors.vault("POST", "pause", body={}).json()["paused"]) == {"*"}
    for tcp in (True, False):
        refused = open_doors.vault("GET", "pages/boiler", headers=headers, tcp=tcp)
        assert (refused.status, refused.code) == (403, "access.paused")
        assert "pcpd resume" in refused.json()["hint"]
    assert open_doors.ask("GET", "/mcp", headers=headers, tcp=True).status == 403
    said = open_doors.relay(principal="agent:claude", token=open_doors.token()).hear()
    assert said["error"]["code"] == "access.paused"
    assert open_doors.vault("GET", "pages/boiler").status == 200
    topics = [each["topic"] for each in open_doors.vault("GET", "status").json()["notices"]]
    assert "paused" in topics
    assert open_doors.vault("POST", "resume", body={}).json() == {"resumed": 1, "paused": {}}
    assert open_doors.vault("GET", "pages/boiler", headers=headers, tcp=True).status == 200


def test_open_connections_end_at_once(open_doors: Doors) -> None:
    """A relay, a session of MCP over HTTP and a stream of events, of the paused agent alone."""
    token = open_doors.token()
    paused = open_doors.relay(principal="agent:claude", token=token)
    other = open_doors.relay(principal="agent:b", token=open_doors.token("agent:b"))
    for each in (paused, other):
        each.begin()
    session = initialized(open_doors, token)
    stream = listening(open_doors, token, "/vault/v1/events")
    notices = listening(open_doors, token, "/mcp", {"Mcp-Session-Id": session, "Accept": "text/event-stream"})
    open_doors.vault("POST", "pause", body={"principal": "agent:claude"})
    assert paused.hear() is None
    drained(stream)
    drained(notices)
    assert other.data("list_pages")["total"] == 0
    open_doors.vault("POST", "resume", body={"principal": "agent:claude"})
    gone = open_doors.ask(
        "POST",
        "/mcp",
        tcp=True,
        body={"jsonrpc": "2.0", "id": 2, "method": "ping"},
        headers={**bearer(token), "Mcp-Session-Id": session, "Accept": "application/json, text/event-stream"},
    )
    assert gone.status == 404
    again: Relayed = open_doors.relay(principal="agent:claude", token=token)
    again.begin()
    assert again.data("list_pages")["total"] == 1


def test_open_streams_and_sessions_end_when_their_token_is_revoked(open_doors: Doors) -> None:
    """The same for a token that is taken back: its own, and none of another token of that agent."""
    token, kept = open_doors.token(), open_doors.token()
    session, other = initialized(open_doors, token), initialized(open_doors, kept)
    streams = [
        listening(open_doors, token, "/vault/v1/events"),
        listening(open_doors, token, "/mcp", {"Mcp-Session-Id": session, "Accept": "text/event-stream"}),
    ]
    open_doors.vault("POST", "revoke", body={"token": f"tok_{token[4:12]}"})
    for each in streams:
        drained(each)
    answer = open_doors.ask(
        "POST",
        "/mcp",
        tcp=True,
        body={"jsonrpc": "2.0", "id": 2, "method": "ping"},
        headers={**bearer(kept), "Mcp-Session-Id": other, "Accept": "application/json, text/event-stream"},
    )
    assert answer.status == 200


def test_a_pause_holds_in_the_middle_of_an_act_and_over_a_restart(open_doors: Doors) -> None:
    """Policy gives a paused agent nothing, whatever door it came through before."""
    opened = open_doors.opened
    agent = Caller(Principal("agent:claude/2"), "mcp")
    open_doors.vault("POST", "pause", body={"principal": "agent:claude"})
    assert read.list_pages(opened.memory, agent).total == 0
    assert opened.memory.brakes.since("agent:b") is None
    with pytest.raises(Denied):
        opened.memory.brakes.check("agent:claude/2")


def test_a_pause_outlives_the_owner(make_opened: Callable[..., Any]) -> None:
    """Also its time: resume alone ends it."""
    opened = make_opened().open()
    opened.memory.brakes.pause("*", "2026-01-01T00:00:00Z")
    opened.restart()
    assert opened.memory.brakes.since("agent:x") == "2026-01-01T00:00:00Z"
    assert opened.memory.brakes.resume(None) == 1
    opened.restart()
    assert opened.memory.brakes.since("agent:x") is None


def test_a_slip_of_the_pen_is_no_pause(open_doors: Doors) -> None:
    """An unknown name, no name, one of all that are paused: each is refused with its code, and told in the trail."""
    assert open_doors.vault("POST", "pause", body={"principal": "agent:cluade"}).code == "consent.absent"
    assert open_doors.vault("POST", "pause", body={"principal": "claude"}).code == "consent.principal"
    open_doors.vault("POST", "pause", body={})
    assert open_doors.vault("POST", "resume", body={"principal": "agent:claude"}).code == "access.all-paused"
    rows = audit.rows(open_doors.opened.memory.ledger, after=0)
    assert [(row.action, row.outcome) for row in rows if row.channel == "management"] == [
        ("pause", "consent.absent"),
        ("pause", "consent.principal"),
        ("pause", "ok"),
        ("resume", "access.all-paused"),
    ]


def test_calls_of_the_paused_are_written_down_under_their_name(open_doors: Doors) -> None:
    """So that the person sees who tried; no agent can pause or see who is."""
    headers = bearer(open_doors.token())
    for method, route in (("POST", "pause"), ("POST", "resume"), ("GET", "access")):
        body: dict[str, str] | None = {} if method == "POST" else None
        assert (
            open_doors.vault(method, route, body=body, headers=headers, tcp=True).code == "http.person-only"
        )
    open_doors.vault("POST", "pause", body={})
    open_doors.vault("GET", "pages/boiler", headers=headers, tcp=True)
    row = audit.rows(open_doors.opened.memory.ledger)[0]
    assert (row.principal, row.action, row.outcome) == ("agent:claude", "knock", "access.paused")


def initialized(doors: Doors, token: str) -> str:
    """Opens a session of MCP over HTTP; gives its id."""
    said = doors.ask(
        "POST",
        "/mcp",
        tcp=True,
        body={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        headers={**bearer(token), "Accept": "application/json, text/event-stream"},
    )
    assert said.status == 200, said.data
    return said.headers["mcp-session-id"]


def listening(
    doors: Doors, token: str, target: str, headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Opens a stream, and hears that it is open."""
    connection = http.client.HTTPConnection("127.0.0.1", doors.port, timeout=60)
    connection.request("GET", target, headers={**bearer(token), **(headers or {})})
    response = connection.getresponse()
    assert response.status == 200
    return connection, response


def drained(stream: tuple[http.client.HTTPConnection, http.client.HTTPResponse]) -> None:
    """Reads a stream to its end, which must come."""
    connection, response = stream
    until(lambda: not response.read1())
    response.close()
    connection.close()

"""The endpoint for streamable HTTP before clients of every kind: old, new, hasty, greedy, revoked and gone."""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pcpd.ledger import audit, tokens
from pcpd.mcp_server.sessions import Limits
from pcpd.memory import read
from tests.doors import Doors
from tests.mcp_server.over_http import BOTH, MODERN, Agent
from tests.waiting import LONGEST_S, until

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
HEAT = {"boiler.md": "---\ntitle: Boiler\n---\nGas or heat pump?\n"}


@pytest.fixture
def agent(doors: Doors) -> Agent:
    """An agent that may read and write."""
    return Agent(doors, "agent:claude", "read", "write")


@pytest.mark.parametrize("version", HANDSHAKES)
def test_every_version_of_the_handshake_is_spoken(agent: Agent, version: str) -> None:
    """A session begins, works, and ends when its client says so."""
    said = agent.begin(version)
    assert (said["protocolVersion"], said["serverInfo"]["name"]) == (version, "pcpd")
    assert agent.call("search_memory", query="heat")["structuredContent"]["total"] == 1
    assert agent.ask("DELETE").status == 200
    assert agent.post(agent.request("ping")).status == 404


@pytest.mark.parametrize("version", ["1.0", "2099-01-01", "", MODERN])
def test_unknown_version_of_a_handshake_is_answered_with_one_that_is_spoken(
    agent: Agent, version: str
) -> None:
    """And the session works."""
    assert agent.begin(version)["protocolVersion"] in HANDSHAKES
    assert agent.call("list_pages")["structuredContent"]["total"] == 1


def test_requests_that_stand_alone_are_served_without_a_session(agent: Agent) -> None:
    """2026-07-28: each says who asks and in which version; headers and body must agree."""
    found = agent.alone("server/discover").json()["result"]
    assert MODERN in found["supportedVersions"]
    assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    answer = agent.alone("tools/call", name="list_pages", arguments={})
    assert answer.json()["result"]["structuredContent"]["total"] == 1
    assert "mcp-session-id" not in answer.headers
    message = agent.request("tools/list")
    routed = agent.routed("tools/list", {})
    assert agent.post(message, **routed).status == 400
    assert agent.post(message, **{**routed, "Mcp_Method": "tools/call"}).status == 400


def test_unknown_version_of_a_request_that_stands_alone_is_told_which_are_spoken(agent: Agent) -> None:
    """With the status that its specification names."""
    answer = agent.post(agent.request("tools/list"), MCP_Protocol_Version="2099-01-01")
    assert answer.status == 400
    assert "id" in answer.json()


@pytest.mark.parametrize("unix", [True, False])
def test_nothing_is_said_without_a_token(doors: Doors, unix: bool) -> None:
    """Not even to the person's own socket: a session acts for an agent."""
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        assert doors.ask(method, "/mcp", tcp=not unix).status == 401


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Mcp_Session_Id": ""}, 400),
        ("GET", {"Mcp_Session_Id": "unknown"}, 404),
        ("GET", {"Accept": "application/json"}, 406),
        ("GET", {"MCP_Protocol_Version": MODERN}, 405),
        ("DELETE", {"Mcp_Session_Id": ""}, 400),
        ("DELETE", {"Mcp_Session_Id": "x" * 1000}, 404),
        ("PUT", {}, 405), ("PATCH", {}, 405), ("HEAD", {"Mcp_Session_Id": ""}, 405),
        ("POST", {"Accept": "text/html"}, 406),
        ("POST", {"Mcp_Session_Id": ""}, 400),
        ("POST", {"Mcp_Session_Id": "unknown"}, 404),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_answered_at_once(
    agent: Agent, method: str, headers: dict[str, str], status: int
) -> None:
    """A probe never hangs, and the session goes on."""
    agent.begin()
    body = agent.request("ping") if method == "POST" else None
    assert agent.ask(method, body, **headers).status == status
    assert agent.say("ping")["result"] == {}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"3", b"null", b"\xff\xfe", b'{"method": "initialize"', b"{}" * 10]
)
def test_garbage_opens_no_session_and_ends_none(agent: Agent, body: bytes) -> None:
    """With a session, and without."""
    assert agent.post(body).status == 400
    agent.begin()
    assert agent.post(body).status == 400
    assert agent.say("ping")["result"] == {}


def test_a_request_that_is_too_large_to_begin_with_opens_nothing(agent: Agent) -> None:
    """What opens a session is short."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x" * 300_000}}
    assert agent.post(agent.request("initialize", **params)).status == 400


def test_the_largest_page_can_be_written(agent: Agent) -> None:
    """The SDK's own limit of 4 MiB is lifted; beyond ours a body is refused."""
    agent.begin()
    said = agent.call("write_page", path="large", content="長" * 3_300_000)
    assert not said.get("isError"), said
    answer = agent.alone(
        "tools/call", name="write_page", arguments={"path": "l2", "content": "x" * 9_000_000}
    )
    assert not answer.json()["result"].get("isError")
    refused = agent.ask("POST", b"{", Content_Length=str(25 * 1024 * 1024))
    assert refused.status == 413


def test_a_session_is_used_by_none_but_the_token_that_opened_it(doors: Doors, agent: Agent) -> None:
    """For another principal, and for another token of the same one, it is as if it were not there."""
    agent.begin()
    for other in (Agent(doors, "agent:other", "read"), Agent(doors, "agent:claude")):
        for method in ("POST", "GET", "DELETE"):
            body = agent.request("ping") if method == "POST" else None
            there = other.ask(method, body, Mcp_Session_Id=agent.session)
            nowhere = other.ask(method, body, Mcp_Session_Id="0" * 32)
            assert (there.status, there.data) == (nowhere.status, nowhere.data)
            assert there.status == 404
    assert agent.say("ping")["result"] == {}


def test_revoking_a_token_ends_its_sessions_and_streams(doors: Doors, agent: Agent) -> None:
    """Another client of the same principal goes on."""
    other = Agent(doors, "agent:claude")
    agent.begin()
    other.begin()
    stream = agent.stream()
    assert stream.answer.status == 200
    (mine,) = [each.id for each in tokens.listing(doors.opened.memory.ledger) if each.id[4:] in agent.token]
    assert doors.vault("POST", "revoke", body={"token": mine}).status == 200
    assert stream.hear() is None
    stream.close()
    assert agent.post(agent.request("ping")).status == 401
    assert other.call("list_pages")["structuredContent"]["total"] == 1


def test_changed_grants_hold_from_the_next_call_on(doors: Doors) -> None:
    """In a session that is open, and without one."""
    agent = Agent(doors, "agent:new")
    agent.begin()
    assert agent.call("list_pages")["structuredContent"]["total"] == 0
    doors.vault("POST", "grants", body={"principal": "agent:new", "rights": ["read"]})
    assert agent.call("list_pages")["structuredContent"]["total"] == 1
    alone = agent.alone("tools/call", name="write_page", arguments={"path": "x", "content": "y"})
    assert alone.json()["result"]["_meta"]["pcpd/error"]["code"] == "access.denied"


def test_one_principal_cannot_take_all_sessions(make_doors: Callable[..., Doors]) -> None:
    """Over its share the one of its own that was idle for longest ends; one that is in use does not."""
    doors = make_doors(HEAT, mcp_limits=Limits(most=4, most_of_one=3))
    token, other = doors.token(), Agent(doors, "agent:other", "read")
    agents = [Agent(doors, token=token) for _ in range(4)]
    other.begin()
    for agent in agents[:3]:
        agent.begin()
    stream = agents[0].stream()
    assert stream.answer.status == 200
    agents[1].say("ping")
    agents[3].begin()
    assert [agent.post(agent.request("ping")).status for agent in agents] == [200, 200, 404, 200]
    assert other.say("ping")["result"] == {}
    crowded = Agent(doors, "agent:third", "read")
    said = crowded.request(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
    )
    assert crowded.post(said).status == 503
    stream.close()


def test_a_principal_whose_every_session_is_in_use_has_no_more(make_doors: Callable[..., Doors]) -> None:
    """None of them is ended for a new one."""
    doors = make_doors(HEAT, mcp_limits=Limits(most_of_one=1))
    agent = Agent(doors)
    again = Agent(doors, token=agent.token)
    agent.begin()
    stream = agent.stream()
    said = again.request(
        "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
    )
    assert again.post(said).status == 503
    stream.close()
    until(lambda: again.post(said).status == 200)


def test_an_idle_session_ends(make_doors: Callable[..., Doors]) -> None:
    """One with an open stream does not."""
    doors = make_doors(HEAT, mcp_limits=Limits(idle_s=0.3))
    idle, busy = Agent(doors), Agent(doors)
    idle.begin()
    busy.begin()
    stream = busy.stream()
    number = idle.session
    until(lambda: _is_gone(doors, number))
    assert idle.post(idle.request("ping")).status == 404
    assert busy.say("ping")["result"] == {}
    stream.close()


def _is_gone(doors: Doors, session: str) -> bool:
    """Looks from inside: a request would keep the session alive."""
    assert doors.mcp is not None
    return session not in doors.mcp._sessions._open


def test_the_owner_s_end_ends_streams_and_sessions(doors: Doors, agent: Agent) -> None:
    """Nothing is left to wait for: a stream of a session breaks off, one that stands alone is told the end."""
    agent.begin()
    stream = agent.stream()
    params = {"notifications": {"resourcesListChanged": True}}
    listening = agent.stream(
        "POST", _alone(agent, "subscriptions/listen", params), **agent.routed("subscriptions/listen", params)
    )
    assert listening.hear()["method"] == "notifications/subscriptions/acknowledged"
    doors.close()
    assert stream.hear() is None
    assert "result" in listening.hear()
    assert listening.hear() is None
    stream.close()
    listening.close()
    doors.start()


def _alone(agent: Agent, method: str, params: dict[str, Any]) -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return agent.request(method, **params, _meta=meta)


def test_a_client_that_dies_in_a_call_holds_up_nobody(
    doors: Doors, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client of the same principal is served meanwhile, and the call's answer goes nowhere."""
    let_go, running, real = threading.Event(), threading.Event(), read.search

    def slow(memory: Any, caller: Any, text: str, **options: Any) -> Any:
        if text == "slow":
            running.set()
            let_go.wait(LONGEST_S)
        return real(memory, caller, text, **options)

    monkeypatch.setattr(read, "search", slow)
    other = Agent(doors, "agent:claude")
    agent.begin()
    other.begin()
    call = agent.request("tools/call", name="search_memory", arguments={"query": "slow"})
    body = json.dumps(call).encode()
    with socket.create_connection(("127.0.0.1", doors.port)) as link:
        head = "".join(f"{name}: {value}\r\n" for name, value in agent.headers().items())
        link.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert running.wait(LONGEST_S)
    assert other.call("list_pages")["structuredContent"]["total"] == 1
    let_go.set()
    assert agent.say("ping")["result"] == {}


def test_cancelled_call_is_answered_as_cancelled(
    doors: Doors, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client does not wait for it, and the session goes on."""
    let_go, running, real = threading.Event(), threading.Event(), read.search

    def slow(*arguments: Any, **options: Any) -> Any:
        running.set()
        let_go.wait(LONGEST_S)
        return real(*arguments, **options)

    monkeypatch.setattr(read, "search", slow)
    agent.begin()
    call = agent.request("tools/call", name="search_memory", arguments={"query": "heat"})
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(agent.post(call)))
    asking.start()
    assert running.wait(LONGEST_S)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call["id"]}}
    assert agent.post(cancel).status == 202
    asking.join(LONGEST_S)
    assert "error" in answers[0].json()
    let_go.set()
    assert agent.say("ping")["result"] == {}


@pytest.mark.parametrize("again", [7, "7", [7], ["7"]])
def test_an_id_that_is_used_twice_at_a_time_hangs_nothing(
    doors: Doors, agent: Agent, monkeypatch: pytest.MonkeyPatch, again: Any
) -> None:
    """The second request is refused, alone or in an array; the first one has its answer."""
    let_go, running, real = threading.Event(), threading.Event(), read.search

    def slow(*arguments: Any, **options: Any) -> Any:
        running.set()
        let_go.wait(LONGEST_S)
        return real(*arguments, **options)

    monkeypatch.setattr(read, "search", slow)
    agent.begin("2025-03-26")
    call = {**agent.request("tools/call", name="search_memory", arguments={"query": "heat"}), "id": 7}
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(agent.post(call)))
    asking.start()
    assert running.wait(LONGEST_S)
    number = again[0] if isinstance(again, list) else again
    ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
    said = agent.post([ping] if isinstance(again, list) else ping).json()
    refused = said[0] if isinstance(again, list) else said
    assert (refused["id"], refused["error"]["code"]) == (number, -32600)
    let_go.set()
    asking.join(LONGEST_S)
    assert answers[0].json()["result"]["structuredContent"]["total"] == 1
    assert agent.post(ping).json()["result"] == {}


def test_progress_tokens_and_unknown_capabilities_are_taken(agent: Agent) -> None:
    """Whatever else a client says of itself or of a call."""
    params = {
        "protocolVersion": "2025-06-18", "clientInfo": {"name": "x", "version": "1", "zyx": [1]},
        "capabilities": {"zyx": {"a": 1}, "experimental": {"b": {}}, "sampling": {}, "roots": {"listChanged": True}},
    }  # fmt: skip
    answer = agent.post(agent.request("initialize", **params, _meta={"zyx": 1}))
    agent.session = answer.headers["mcp-session-id"]
    said = agent.say("tools/call", name="list_pages", arguments={}, _meta={"progressToken": 7, "zyx": {}})
    assert said["result"]["structuredContent"]["total"] == 1
    assert agent.say("no/such/method")["error"]["code"] == -32601


def test_calls_over_http_are_in_the_audit_trail(doors: Doors, agent: Agent) -> None:
    """With the channel of MCP, and refusals before an act among them."""
    agent.begin()
    agent.call("list_pages")
    agent.call("burn")
    agent.alone("tools/call", name="read_page", arguments={"path": "nothing"})
    rows = [
        (row.action, row.outcome, row.channel) for row in reversed(audit.rows(doors.opened.memory.ledger))
    ]
    assert rows == [
        ("list_pages", "ok", "mcp"), ("unknown_tool", "tool.unknown", "mcp"), ("read_page", "page.not-found", "mcp"),
    ]  # fmt: skip


def test_an_array_is_answered_with_an_array(agent: Agent) -> None:
    """Ids are kept; what is no message has its error; notifications and answers have none."""
    agent.begin("2025-03-26")
    batch = [
        {
            "jsonrpc": "2.0",
            "id": "a",
            "method": "tools/call",
            "params": {"name": "list_pages", "arguments": {}},
        },
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        {"jsonrpc": "2.0", "id": 4, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        5,
    ]
    answer = agent.post(batch)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    said = answer.json()
    by_id = {each["id"]: each for each in said if "result" in each}
    assert set(by_id) == {"a", 2}
    assert by_id["a"]["result"]["structuredContent"]["total"] == 1
    assert sorted((str(each["id"]), each["error"]["code"]) for each in said if "error" in each) == [
        ("2", -32600), ("3", -32601), ("5", -32600), ("None", -32600),
    ]  # fmt: skip
    assert answer.headers["mcp-session-id"] == agent.session


def test_an_array_that_asks_nothing_is_accepted(agent: Agent) -> None:
    """Without a body."""
    agent.begin("2025-03-26")
    answer = agent.post([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
    assert (answer.status, answer.data) == (202, b"")


def test_arrays_are_bounded(agent: Agent) -> None:
    """Empty, too long, too large, or no JSON: one error for all, and the session goes on."""
    agent.begin("2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert len(agent.post([{**ping, "id": number} for number in range(100)]).json()) == 100
    for bad in ([], [{**ping, "id": number} for number in range(101)], b"[1, 2", b"  \n[" + b"[" * 100_000):
        answer = agent.post(bad)
        assert answer.status == 400
        assert answer.json()["id"] is None
    assert agent.post([{**ping, "params": {"x": "y" * 5_000_000}}]).status == 413
    assert agent.say("ping")["result"] == {}


def test_an_array_needs_a_session_and_has_no_place_where_requests_stand_alone(agent: Agent) -> None:
    """A handshake in an array begins nothing."""
    params = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    assert agent.post([agent.request("initialize", **params)]).status == 400
    assert agent.post([_alone(agent, "tools/list", {})], **agent.routed("tools/list", {})).status == 400


def test_accept_may_name_json_alone(agent: Agent) -> None:
    """Answers are JSON, so a simple client need not know streams."""
    agent.begin()
    assert agent.post(agent.request("ping"), Accept="application/json").json()["result"] == {}
    assert agent.post(agent.request("ping"), Accept=f"{BOTH};q=0.5").json()["result"] == {}

"""The relay door before clients of every kind: hasty, silent, broken, endless and many."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pcpd.ledger import audit, tokens
from pcpd.ledger.issued import Issued
from pcpd.ledger.ledger import Ledger
from pcpd.mcp_server import lines, relay_door
from pcpd.memory import read
from tests.doors import Doors, Relayed
from tests.waiting import until

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
HEAT = "---\ntitle: Boiler\n---\nGas or heat pump?\n"


@pytest.fixture
def greeted(doors: Doors) -> Iterator[Callable[..., Relayed]]:
    """Gives connections of an agent with a token and a grant to read and write, past the greeting if wanted."""
    doors.opened.agent("agent:claude", "read", "write")
    token, made = doors.token(), list[Relayed]()

    def connect(version: str | None = VERSIONS[2]) -> Relayed:
        relayed = doors.relay(principal="agent:claude", token=token)
        made.append(relayed)
        if version is not None:
            relayed.begin(version)
        return relayed

    yield connect
    for relayed in made:
        relayed.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_handshake_is_spoken(greeted: Callable[..., Relayed], version: str) -> None:
    """The answer names the version asked for, and tools work in it."""
    relayed = greeted(None)
    said = relayed.begin(version)
    assert (said["protocolVersion"], said["serverInfo"]["name"]) == (version, "pcpd")
    assert "data, not instructions" in said["instructions"]
    result = relayed.call("search_memory", query="heat")
    assert "boiler" in result["content"][0]["text"]


@pytest.mark.parametrize("version", ["1.0", "2099-01-01", "", "x" * 1000])
def test_unknown_version_is_answered_with_one_that_is_spoken(
    greeted: Callable[..., Relayed], version: str
) -> None:
    """And the connection stays."""
    relayed = greeted(None)
    assert relayed.begin(version)["protocolVersion"] in VERSIONS
    assert relayed.data("list_pages")["total"] == 1


def test_version_without_a_handshake_is_spoken_too(greeted: Callable[..., Relayed]) -> None:
    """2026-07-28: each request says who asks and in which version."""
    relayed = greeted(None)
    relayed.hear()
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    found = relayed.request("server/discover", _meta=meta)["result"]
    assert MODERN in found["supportedVersions"]
    said = relayed.request("tools/call", name="list_pages", arguments={}, _meta=meta)["result"]
    assert said["structuredContent"]["total"] == 1
    refused = relayed.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
    assert "error" in refused
    assert relayed.request("tools/list", _meta=meta)["result"]["tools"]


@pytest.mark.parametrize(
    "greeting", [{}, {"token": 5}, {"token": ["x"]}, {"principal": {}}, [], "hello", 3, None],
)  # fmt: skip
def test_greeting_without_a_token_is_refused_with_the_next_step(doors: Doors, greeting: Any) -> None:
    """Then the door closes."""
    relayed = doors.relay()
    relayed.send(greeting)
    error = relayed.hear()["error"]
    assert error["code"] in {"token.refused", "relay.greeting"}
    assert error["hint"]
    assert relayed.hear() is None
    relayed.close()


@pytest.mark.parametrize(
    "line", [b"", b"\xff\xfe", b"{", b"GET / HTTP/1.1\r", b"[" * 50_000, b"x" * (relay_door.GREETING_LIMIT + 1)],
    ids=["empty", "bytes", "half", "http", "deep", "long"],
)  # fmt: skip
def test_greeting_that_is_garbage_is_refused(doors: Doors, line: bytes) -> None:
    """Short of memory for it, too."""
    relayed = doors.relay()
    relayed.send(line)
    assert relayed.hear()["error"]["code"] == "relay.greeting"
    assert relayed.hear() is None
    relayed.close()


def test_token_of_another_is_refused(doors: Doors) -> None:
    """As is a wrong, a cut and a revoked one; the refusal quotes neither token nor a long name."""
    token = doors.token("agent:other")
    for principal, said in (
        ("agent:claude", token), ("agent:other", token[:-1] + "!"), ("agent:other", token[:-1]),
        ("agent:x" * 5_000, token), ("", "pcp_00000000_" + "x" * 43), ("agent:claude", ""),
    ):  # fmt: skip
        relayed = doors.relay(principal=principal, token=said)
        refusal = json.dumps(relayed.hear())
        assert "token.refused" in refusal
        assert len(refusal) < 1_000
        assert not said or said not in refusal
        relayed.close()
    tokens.revoke(doors.opened.memory.ledger, "agent:other")
    relayed = doors.relay(principal="agent:other", token=token)
    assert relayed.hear()["error"]["code"] == "token.refused"
    relayed.close()


def test_silent_connection_is_ended(make_doors: Callable[..., Doors]) -> None:
    """Whether it says nothing, or a little at a time; nobody waits for it meanwhile."""
    doors = make_doors({"boiler.md": HEAT}, greeting_s=0.2)
    silent, slow = doors.relay(), doors.relay()
    slow.link.sendall(b'{"pcpd": "1", "tok')
    assert silent.hear() is None
    assert slow.hear() is None
    silent.close()
    slow.close()
    until(lambda: doors.traffic == 0)


def test_connection_that_ends_before_it_greets_is_no_fault(doors: Doors) -> None:
    """Nor one that ends in the middle of its greeting."""
    for said in (b"", b'{"pcpd'):
        relayed = doors.relay()
        relayed.link.sendall(said)
        relayed.close()
    until(lambda: (doors.connected, doors.traffic) == (2, 0))


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"\xff\xfe", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method"', -32700, None),
        (b"zyxsecret", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b"3", -32600, None),
        (b"{}", -32600, None),
        (b'{"id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "p"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "p"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": 5}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "a", "params": 3}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\xff"}}', -32700, None),
    ],
)  # fmt: skip
def test_what_is_no_message_is_answered_and_the_connection_stays(
    greeted: Callable[..., Relayed], line: bytes, code: int, number: object
) -> None:
    """With the id where it can be told; nothing is quoted."""
    relayed = greeted()
    relayed.send(b"", b"   ", line)
    said = relayed.hear()
    assert (said["error"]["code"], said["id"]) == (code, number)
    assert "zyxsecret" not in json.dumps(said)
    assert relayed.request("ping")["result"] == {}


def test_an_array_is_answered_with_an_array(greeted: Callable[..., Relayed]) -> None:
    """With the answers that there are, whatever else goes on meanwhile; ids are kept."""
    relayed = greeted("2025-03-26")
    call = {"name": "list_pages", "arguments": {}}
    relayed.send([
        {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call}, 3,
        {"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"}, {"jsonrpc": "2.0", "id": 4, "method": "initialize"},
        {"jsonrpc": "2.0", "id": 5, "method": "no/such"}, {"jsonrpc": "2.0", "id": 6, "result": {}},
    ])  # fmt: skip
    said = relayed.hear()
    results = {each["id"]: each["result"] for each in said if "result" in each}
    assert set(results) == {"a", 2}
    assert results["a"]["structuredContent"]["total"] == 1
    refused = sorted((str(each["id"]), each["error"]["code"]) for each in said if "error" in each)
    assert refused == [("2", -32600), ("4", -32600), ("5", -32601), ("None", -32600)]
    assert relayed.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "entry",
    [
        {"jsonrpc": "2.0", "id": 1, "result": "no object"},
        {"jsonrpc": "2.0", "id": 1, "error": "no object"},
        {"jsonrpc": "2.0", "id": "\ud800", "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\ud800"}},
    ],
)
def test_what_only_looks_like_a_message_in_an_array_costs_itself_alone(
    greeted: Callable[..., Relayed], entry: Any
) -> None:
    """It has its error, the others are answered, and the connection goes on."""
    relayed = greeted("2025-03-26")
    relayed.send([entry, {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    said = relayed.hear()
    assert [(each["id"], each["error"]["code"]) for each in said if "error" in each] == [
        (entry["id"], -32600)
    ]
    assert [each["id"] for each in said if "result" in each] == [2]
    assert relayed.request("ping")["result"] == {}


def test_an_array_that_asks_nothing_has_no_answer(greeted: Callable[..., Relayed]) -> None:
    """Neither has one whose requests are cancelled; one without end has an error."""
    relayed = greeted("2025-03-26")
    relayed.send([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
    assert relayed.request("ping")["result"] == {}
    relayed.send([{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(200)])
    assert relayed.hear()["error"]["code"] == -32600
    relayed.send(b"[" * 100_000)
    assert relayed.hear()["error"]["code"] == -32700
    assert relayed.request("ping")["result"] == {}


def test_a_cancelled_request_of_an_array_leaves_the_others_theirs(
    greeted: Callable[..., Relayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The array is answered without it."""
    let_go, running, real = threading.Event(), threading.Event(), read.search

    def slow(*arguments: Any, **options: Any) -> Any:
        running.set()
        let_go.wait(60)
        return real(*arguments, **options)

    monkeypatch.setattr(read, "search", slow)
    relayed = greeted("2025-03-26")
    call = {"name": "search_memory", "arguments": {"query": "heat"}}
    relayed.send([
        {"jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 12, "method": "ping"},
    ])  # fmt: skip
    running.wait(60)
    relayed.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 11}})
    assert relayed.hear() == [{"jsonrpc": "2.0", "id": 12, "result": {}}]
    let_go.set()


def test_line_without_end_costs_itself_alone(greeted: Callable[..., Relayed]) -> None:
    """It is dropped as it comes, and the next line is heard."""
    relayed = greeted()
    relayed.send(b"x" * (lines.LINE_LIMIT + 10))
    assert relayed.hear()["error"]["code"] == -32600
    assert relayed.request("ping")["result"] == {}


def test_lines_may_come_in_any_pieces(greeted: Callable[..., Relayed]) -> None:
    """Byte by byte, or many at once."""
    relayed = greeted()
    line = json.dumps({"jsonrpc": "2.0", "id": "\xfc", "method": "ping"}, ensure_ascii=False).encode() + b"\n"
    for at in range(len(line)):
        relayed.link.sendall(line[at : at + 1])
    assert relayed.hear()["id"] == "\xfc"
    relayed.link.sendall(line * 50)
    assert [relayed.hear()["id"] for _ in range(50)] == ["\xfc"] * 50


def test_requests_before_the_handshake_are_refused(greeted: Callable[..., Relayed]) -> None:
    """But for ping; the handshake is then made as usual."""
    relayed = greeted(None)
    relayed.hear()
    assert "error" in relayed.request("tools/list")
    assert "error" in relayed.request("tools/call", name="list_pages", arguments={})
    assert relayed.request("ping")["result"] == {}
    info = {"name": "test", "version": "1"}
    said = relayed.request(
        "initialize", protocolVersion="2025-06-18", capabilities={"zyx": {}}, clientInfo=info
    )
    assert said["result"]["protocolVersion"] == "2025-06-18"
    assert relayed.data("list_pages")["total"] == 1


@pytest.mark.parametrize("method", ["nonsense", "roots/list", "tools/burn", "x" * 10_000])
def test_unknown_method_is_an_error(greeted: Callable[..., Relayed], method: str) -> None:
    """And unknown notifications are nothing."""
    relayed = greeted()
    relayed.send({"jsonrpc": "2.0", "method": "notifications/nonsense"})
    assert relayed.request(method)["error"]["code"] == -32601
    assert relayed.request("ping")["result"] == {}


def test_what_clients_say_is_in_no_log(
    greeted: Callable[..., Relayed], caplog: pytest.LogCaptureFixture
) -> None:
    """However wrong it is: a log would grow as a client likes, and quote it."""
    relayed = greeted()
    relayed.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"zyx": 1}}})
    relayed.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"zyx": "secret"}})
    relayed.request("resources/read", uri={"zyx": 1})
    relayed.request("tools/call", name="zyx", arguments={"zyx": "secret"})
    assert relayed.request("ping")["result"] == {}
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == []


def test_cancelled_request_is_never_answered(
    greeted: Callable[..., Relayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes on, and its room is free again."""
    let_go = threading.Event()
    real = read.search

    def slow(*arguments: Any, **options: Any) -> Any:
        let_go.wait(60)
        return real(*arguments, **options)

    monkeypatch.setattr(read, "search", slow)
    relayed = greeted()
    for _ in range(lines.MOST_OPEN + 8):
        number = relayed.ask("tools/call", name="search_memory", arguments={"query": "heat"})
        relayed.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    let_go.set()
    relayed.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9999}})
    assert relayed.request("ping")["result"] == {}


def test_slow_client_holds_up_nobody(
    doors: Doors, greeted: Callable[..., Relayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose every call hangs has a few threads at most; others are served."""
    let_go, running = threading.Event(), list[str]()
    real = read.search

    def slow(memory: Any, caller: Any, text: str, **options: Any) -> Any:
        if text == "slow":
            running.append(text)
            let_go.wait(60)
        return real(memory, caller, text, **options)

    monkeypatch.setattr(read, "search", slow)
    hog, other = greeted(), greeted()
    for _ in range(lines.MOST_OPEN):
        hog.ask("tools/call", name="search_memory", arguments={"query": "slow"})
    until(lambda: running)
    assert other.data("search_memory", query="heat")["total"] == 1
    assert len(running) <= 4
    let_go.set()
    assert len({hog.hear()["id"] for _ in range(lines.MOST_OPEN)}) == lines.MOST_OPEN


def test_client_that_never_reads_waits_by_itself(doors: Doors, greeted: Callable[..., Relayed]) -> None:
    """Its answers and questions are bounded, others are served, and its end is noticed."""
    doors.opened.save("long.md", "memory " * 10_000)
    until(lambda: doors.vault("GET", "pages/long").status == 200)
    deaf, other = greeted(), greeted()
    deaf.link.setblocking(False)
    line = {
        "jsonrpc": "2.0",
        "id": 5,
        "method": "tools/call",
        "params": {"name": "read_page", "arguments": {"path": "long"}},
    }
    sent, full = 0, 0
    while full < 200:
        try:
            deaf.link.send(json.dumps({**line, "id": sent}).encode() + b"\n")
            sent += 1
        except BlockingIOError:
            full += 1
            assert other.request("ping")["result"] == {}
    assert other.data("list_pages")["total"] == 2
    deaf.close()
    other.close()
    until(lambda: doors.traffic == 0)


def test_many_connections_are_served_at_once(doors: Doors, greeted: Callable[..., Relayed]) -> None:
    """A hundred, each with its own session."""
    many = [greeted() for _ in range(100)]
    for relayed in many:
        relayed.ask("tools/call", name="search_memory", arguments={"query": "heat"})
    assert all(relayed.hear()["result"]["structuredContent"]["total"] == 1 for relayed in many)
    assert doors.traffic == 100


def test_flood_of_wrong_tokens_delays_no_call(
    doors: Doors, greeted: Callable[..., Relayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proving a token is slow on purpose, and has threads of its own."""
    relayed, wrong = greeted(), doors.token("agent:other")[:-6] + "aaaaaa"
    let_go, real = threading.Event(), tokens.recognise

    def slow(ledger: Ledger, token: str) -> Issued | None:
        if token == wrong:
            let_go.wait(60)
        return real(ledger, token)

    monkeypatch.setattr(tokens, "recognise", slow)
    flood = [doors.relay(principal="agent:other", token=wrong) for _ in range(40)]
    until(lambda: doors.traffic == 41)
    assert relayed.data("search_memory", query="heat")["total"] == 1
    let_go.set()
    for each in flood:
        assert each.hear()["error"]["code"] == "token.refused"


def test_calls_that_are_refused_before_an_act_are_written_down_too(
    doors: Doors, greeted: Callable[..., Relayed]
) -> None:
    """An unknown tool, a bad argument: who, what and how it ended."""
    relayed = greeted()
    relayed.call("no_such_tool" * 50)
    relayed.call("read_page", path={"a": 1})
    rows = [(row.action, row.outcome) for row in reversed(audit.rows(doors.opened.memory.ledger))]
    assert rows == [
        ("unknown_tool", "tool.unknown"),
        ("read_page", "tool.argument"),
    ]
    assert {row.principal for row in audit.rows(doors.opened.memory.ledger)} == {"agent:claude"}


def test_connection_ends_when_its_token_is_revoked(doors: Doors, greeted: Callable[..., Relayed]) -> None:
    """At once, though nobody says anything on it; whoever comes again is told why."""
    relayed, other = greeted(), doors.relay(principal="agent:b", token=doors.token("agent:b"))
    other.begin()
    assert relayed.data("list_pages")["total"] == 1
    assert doors.vault("POST", "revoke", body={"principal": "agent:claude"}).json()["tokens"] == 1
    assert relayed.hear() is None
    assert other.data("list_pages")["total"] == 0


def test_connection_ends_when_one_token_of_a_principal_is_revoked(doors: Doors) -> None:
    """The connection that came with that token, and no other of the same principal."""
    first, second = doors.token(), doors.token()
    gone, kept = (doors.relay(principal="agent:claude", token=each) for each in (first, second))
    gone.begin()
    kept.begin()
    doors.vault("POST", "revoke", body={"token": f"tok_{first[4:12]}"})
    assert gone.hear() is None
    assert kept.data("list_pages")["total"] == 0


def test_changed_grants_hold_from_the_next_call_on(doors: Doors) -> None:
    """Given, narrowed and taken back while the connection is open."""
    relayed = doors.relay(principal="agent:new", token=doors.token("agent:new"))
    relayed.begin()
    assert relayed.data("list_pages")["total"] == 0
    doors.vault("POST", "grants", body={"principal": "agent:new", "rights": ["read"]})
    assert relayed.data("list_pages")["total"] == 1
    denied = relayed.call("write_page", path="x", content="y")
    assert denied["_meta"]["pcpd/error"]["code"] == "access.denied"
    doors.vault("POST", "revoke", body={"principal": "agent:new"})
    relayed.close()
    again = doors.relay(principal="agent:new", token=doors.token("agent:new"))
    again.begin()
    assert again.data("list_pages")["total"] == 0
    again.close()


def test_owner_that_ends_answers_nothing_false(
    doors: Doors, greeted: Callable[..., Relayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call under way has its answer or none: the relay then asks the next owner."""
    started, let_go = threading.Event(), threading.Event()
    real = read.search

    def slow(*arguments: Any, **options: Any) -> Any:
        started.set()
        let_go.wait(60)
        return real(*arguments, **options)

    monkeypatch.setattr(read, "search", slow)
    relayed = greeted()
    for _ in range(8):
        relayed.ask("tools/call", name="search_memory", arguments={"query": "heat"})
    started.wait(60)
    threading.Timer(0.05, let_go.set).start()
    doors.close()
    while (said := relayed.hear()) is not None:
        assert "result" in said, said
    doors.start()

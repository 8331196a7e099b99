"""What the relay remembers of a session, without any socket."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.client.session import KEY, TRIES, Out, Session
from pcpd.gate.arrays import MOST

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def session() -> Session:
    """A session whose keys are counted."""
    numbers = iter(range(10_000))
    return Session(lambda: f"k{next(numbers)}")


def line(message: object) -> bytes:
    """A message as it is sent."""
    return json.dumps(message).encode()


def said(lines: list[bytes]) -> list[Any]:
    """The messages in lines that are well formed."""
    assert all(each.endswith(b"\n") and each.count(b"\n") == 1 for each in lines)
    return [json.loads(each) for each in lines]


def request(identity: object, method: str = "tools/list", **params: object) -> dict[str, object]:
    """A request."""
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def result(identity: object) -> dict[str, object]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": identity, "result": {}}


def failed(identity: object) -> dict[str, object]:
    """The refusal of a request."""
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": -32002, "message": "no"}}


def acknowledged(stream: str) -> dict[str, object]:
    """An owner's acknowledgement of a stream."""
    return {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "notifications": {"resourcesListChanged": True, "resourceSubscriptions": ["a"]},
            "_meta": {"io.modelcontextprotocol/subscriptionId": stream},
        },
    }


def begun() -> Session:
    """A session that an owner has answered."""
    made = session()
    made.connected()
    made.from_client(line(INITIALIZE))
    made.from_owner(line(result(0)))
    made.from_client(line(INITIALIZED))
    return made


def test_each_tool_call_gets_a_key_of_its_own() -> None:
    """The ledger recognises a write that was asked twice by it."""
    made = begun()
    keys = [
        said(made.from_client(line(request(n, "tools/call", name="write_page"))).to_owner)[0]["params"][
            "_meta"
        ][KEY]
        for n in range(3)
    ]
    assert len(set(keys)) == 3


def test_what_else_is_in_meta_stays() -> None:
    """Progress tokens, and a key that the client chose itself, reach the owner."""
    asked = request(1, "tools/call", _meta={"progressToken": 7, KEY: "mine"}, arguments={"a": 1.5})
    assert said(begun().from_client(line(asked)).to_owner) == [asked]


def test_everything_but_tool_calls_passes_byte_for_byte() -> None:
    """The relay has no opinion about spelling."""
    odd = b'{ "jsonrpc":"2.0", "id" : 1.0, "method":"ping",  "x": "\\u00e9\xc3\xa9" }'
    assert begun().from_client(odd).to_owner == [odd + b"\n"]


def test_next_owner_hears_initialize_again_and_the_client_hears_nothing_of_it() -> None:
    """The client's session goes on as if nothing had been."""
    made = begun()
    made.from_client(line(request(1)))
    assert made.lost() == []
    (again,) = said(made.connected())
    assert again == {**INITIALIZE, "id": again["id"]}
    assert again["id"] not in {0, 1}
    made.from_client(line(request(2)))
    out = made.from_owner(line(result(again["id"])))
    assert out.to_client == []
    assert said(out.to_owner) == [INITIALIZED, request(1), request(2)]


def test_initialize_without_an_answer_is_simply_asked_again() -> None:
    """Its answer belongs to the client."""
    made = session()
    made.connected()
    made.from_client(line(INITIALIZE))
    made.lost()
    assert said(made.connected()) == [INITIALIZE]
    assert said(made.from_owner(line(result(0))).to_client) == [result(0)]


def test_requests_before_the_first_owner_wait_for_it() -> None:
    """A client need not know that an owner is being started."""
    made = session()
    assert made.from_client(line(INITIALIZE)) == Out()
    assert said(made.connected()) == [INITIALIZE]


def test_answered_requests_are_not_asked_again() -> None:
    """Nothing is done twice."""
    made = begun()
    made.from_client(line(request(1)))
    made.from_owner(line(result(1)))
    made.lost()
    assert len(made.connected()) == 1


def test_a_write_is_asked_again_under_the_same_key() -> None:
    """The second owner can tell that it is the same write."""
    made = begun()
    (first,) = said(made.from_client(line(request(1, "tools/call", name="write_page"))).to_owner)
    made.lost()
    (again,) = said(made.connected())
    assert said(made.from_owner(line(result(again["id"]))).to_owner) == [INITIALIZED, first]


def test_cancelled_requests_are_not_asked_again() -> None:
    """Nobody waits for their answers."""
    made = begun()
    made.from_client(line(request(1)))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert said(made.from_client(line(cancel)).to_owner) == [cancel]
    assert not made.is_waiting


def test_a_method_that_may_not_be_repeated_is_answered_with_an_error() -> None:
    """Whether it was done is not known, and that is said."""
    made = begun()
    made.from_client(line(request(1, "vendor/do")))
    (error,) = said(made.lost())
    assert (error["id"], error["error"]["code"]) == (1, -32000)


def test_a_request_that_kills_every_owner_is_answered_with_an_error() -> None:
    """It is not asked for ever."""
    made = begun()
    made.from_client(line(request(1)))
    errors: list[bytes] = []
    for _ in range(TRIES):
        errors += made.lost()
        made.connected()
    assert [error["id"] for error in said(errors)] == [1]
    assert not made.is_waiting


def test_ids_that_differ_only_in_type_are_different() -> None:
    """JSON-RPC knows 1 and "1"."""
    made = begun()
    for identity in (1, "1"):
        made.from_client(line(request(identity)))
    made.from_owner(line(result("1")))
    assert [each["id"] for each in said(made.give_up("gone", {}))] == [1]


def test_answers_to_a_dead_owners_questions_are_dropped() -> None:
    """The next owner asked nothing of the kind."""
    made = begun()
    made.from_owner(line(request(5, "roots/list")))
    assert said(made.from_client(line(result(5))).to_owner) == [result(5)]
    made.from_owner(line(request(6, "roots/list")))
    made.lost()
    made.connected()
    assert made.from_client(line(result(6))) == Out()


def test_what_is_no_message_is_answered_and_not_passed_on() -> None:
    """The owner's door need not survive what a broken client says."""
    deep = b"[" * 100_000 + b"]" * 100_000
    for bad in (
        b"\xff\xfe",
        b"{",
        b"1",
        b'{"a": NaN}',
        b'[{"a": 1e999}]',
        deep,
        '{"a":1}'.encode("utf-16"),
    ):
        out = begun().from_client(bad)
        assert out.to_owner == []
        assert [each["error"]["code"] for each in said(out.to_client)] == [-32700]


def test_empty_lines_say_nothing() -> None:
    """Some clients end lines with CR LF."""
    assert begun().from_client(b"\r") == Out()


def test_only_json_rpc_reaches_the_client() -> None:
    """What an owner says beside the protocol goes nowhere."""
    for bad in (b"Traceback", b'{"ok": true}', b"\xff", b"[1]"):
        assert begun().from_owner(bad) == Out()


def test_answers_to_an_array_come_together_when_all_are_there() -> None:
    """Each message is asked by itself, so that each outlives an owner by itself."""
    made = begun()
    batch = [request(1), {"jsonrpc": "2.0", "method": "notifications/x"}, request("1", "ping")]
    assert said(made.from_client(line(batch)).to_owner) == batch
    assert made.from_owner(line(result("1"))).to_client == []
    made.from_client(line(request(2)))
    assert said(made.from_owner(line(result(2))).to_client) == [result(2)]
    made.lost()
    (again,) = said(made.connected())
    resumed = said(made.from_owner(line(result(again["id"]))).to_owner)
    assert resumed == [INITIALIZED, request(1)]
    assert said(made.from_owner(line(result(1))).to_client) == [[result("1"), result(1)]]
    assert not made.is_waiting


def test_an_array_of_notifications_has_no_answer() -> None:
    """And one whose every request is cancelled has none either."""
    made = begun()
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert made.from_client(line([note, note])).to_client == []
    made.from_client(line([request(1)]))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert made.from_client(line(cancel)).to_client == []
    assert not made.is_waiting


def test_what_in_an_array_is_no_message_has_its_error_beside_the_answers() -> None:
    """As has a handshake, which must stand alone, and an id that is used twice."""
    made = begun()
    made.from_client(line(request(7)))
    batch = [3, request(1, "initialize"), request(2), request(2), request(7), {"jsonrpc": "2.0", "id": {}}]
    assert [each["id"] for each in said(made.from_client(line(batch)).to_owner)] == [2]
    (answers,) = said(made.from_owner(line(result(2))).to_client)
    assert answers[-1] == result(2)
    assert [(each["id"], each["error"]["code"]) for each in answers[:-1]] == [
        (None, -32600), (1, -32600), (2, -32600), (7, -32600), (None, -32600),
    ]  # fmt: skip
    assert made.is_waiting


def test_an_array_that_is_empty_or_too_long_has_one_error() -> None:
    """Nothing of it is asked."""
    for batch in ([], [request(number) for number in range(MOST + 1)]):
        out = begun().from_client(line(batch))
        assert out.to_owner == []
        assert [(each["id"], each["error"]["code"]) for each in said(out.to_client)] == [(None, -32600)]


def test_an_array_is_answered_also_when_no_owner_can_be_had() -> None:
    """Or when it refuses the client."""
    for is_refused in (True, False):
        made = begun()
        made.from_client(line([request(1), request(2, "ping")]))
        (answers,) = said(made.turn_away("no token") if is_refused else made.give_up("gone", {}))
        assert [each["id"] for each in answers] == [1, 2]


def test_the_next_owner_hears_what_the_client_has_subscribed_to() -> None:
    """The client hears neither that, nor its answers, but that all of it may have changed: once it is watched again."""
    made = begun()
    for number, (method, uri) in enumerate(
        [("subscribe", "a"), ("subscribe", "b"), ("subscribe", "refused"), ("unsubscribe", "a")], 1
    ):
        made.from_client(line(request(number, f"resources/{method}", uri=uri)))
        answer = failed(number) if uri == "refused" else result(number)
        assert said(made.from_owner(line(answer)).to_client) == [answer]
    made.from_client(line(request(9, "resources/list")))
    made.from_owner(line(result(9)))
    made.lost()
    assert made.is_listening
    assert not made.is_waiting
    (again,) = said(made.connected())
    out = made.from_owner(line(result(again["id"])))
    assert said(out.to_client) == [
        {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"},
    ]
    hello, subscribe = said(out.to_owner)
    assert hello == INITIALIZED
    assert subscribe == {**request(subscribe["id"], "resources/subscribe", uri="b")}
    told = made.from_owner(line(result(subscribe["id"])))
    assert told.to_owner == []
    assert said(told.to_client) == [
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "b"}}
    ]


def test_a_stream_goes_on_with_the_next_owner() -> None:
    """The client hears no second acknowledgement, but that all may have changed; owners may die for ever."""
    made = session()
    made.connected()
    listen = request("s", "subscriptions/listen", notifications={"resourceSubscriptions": ["a"]})
    made.from_client(line(listen))
    assert made.is_waiting
    assert said(made.from_owner(line(acknowledged("s"))).to_client) == [acknowledged("s")]
    for _ in range(3):
        assert not made.is_waiting
        assert made.is_listening
        for _ in range(TRIES):  # owners that have no time to acknowledge it
            assert made.lost() == []
            assert said(made.connected()) == [listen]
        told = said(made.from_owner(line(acknowledged("s"))).to_client)
        meta = {"io.modelcontextprotocol/subscriptionId": "s"}
        assert told == [
            {"jsonrpc": "2.0", "method": "notifications/resources/list_changed", "params": {"_meta": meta}},
            {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a", "_meta": meta}},
        ]  # fmt: skip
    assert said(made.from_owner(line(result("s"))).to_client) == [result("s")]
    assert not made.is_listening


def test_nobody_looks_for_an_owner_that_refused_until_the_client_speaks() -> None:
    """A revoked token must not knock for ever."""
    made = begun()
    made.from_client(line(request(1, "resources/subscribe", uri="a")))
    made.from_owner(line(result(1)))
    made.lost()
    assert made.turn_away("revoked") == []
    assert not made.is_listening
    made.from_client(line(request(2, "ping")))
    assert made.is_listening


@given(st.lists(st.binary(max_size=80) | st.text(max_size=80).map(str.encode), max_size=5))
@settings(deadline=None)
def test_any_bytes_give_only_json_rpc(lines: list[bytes]) -> None:
    """No input ends the relay."""
    made = begun()
    for each in lines:
        for out in (made.from_client(each), made.from_owner(each)):
            said(out.to_client)
            said(out.to_owner)


@given(st.lists(st.sampled_from(["ask", "answer", "die", "come"]), max_size=60))
@settings(deadline=None)
def test_each_request_is_answered_once_whatever_owners_do(history: list[str]) -> None:
    """Owners live and die in any order; a client's ids come back once each, in the end all of them."""
    made, number = begun(), 0
    owed: list[Any] = []  # what the present owner has heard and not answered
    alive = True
    answers: list[Any] = []
    asked: list[Any] = []

    def hear(lines: list[bytes]) -> None:
        owed.extend(each["id"] for each in said(lines) if "id" in each)

    def answer() -> None:
        identity = owed.pop(0)
        out = made.from_owner(line(result(identity)))
        answers.extend(each["id"] for each in said(out.to_client))
        hear(out.to_owner)

    for event in [*history, "come"]:
        if event == "ask":
            number += 1
            asked.append(number)
            hear(made.from_client(line(request(number, "tools/call", name="write_page"))).to_owner)
        elif event == "answer" and alive and owed:
            answer()
        elif event == "die" and alive:
            alive = False
            owed.clear()
            answers.extend(each["id"] for each in said(made.lost()))
        elif event == "come" and not alive:
            alive = True
            hear(made.connected())
    while owed:
        answer()
    assert sorted(answers) == asked
    assert not made.is_waiting

"""Change notices in both eras, over both transports: what is told, to whom, and what nobody can learn by asking."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from pcpd.errors import Unavailable
from pcpd.ledger import audit
from pcpd.mcp_server import subscriptions, watch
from pcpd.mcp_server.uris import PROFILE, uri_of
from pcpd.memory import subscribe
from tests.doors import Doors, Relayed
from tests.mcp_server.asked import agent as relayed_agent
from tests.mcp_server.over_http import MODERN, Agent, Stream
from tests.waiting import until

PAGES = {
    "boiler.md": "Gas or heat pump?\n",
    "house/roof.md": "A heat pump.\n",
    "secret.md": "---\npartition: work\n---\nThe secret heat.\n",
}
STREAM = "io.modelcontextprotocol/subscriptionId"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


class Subscriber(Protocol):
    """A client that hears of changes, whatever the transport and the era."""

    def subscribe(self, *uris: str) -> None:
        """Wants to hear of resources."""

    def hear(self) -> Any:
        """Waits for the next notice: an address, or `list`; None when there will be no more."""

    def close(self) -> None:
        """Hangs up."""


def notice(message: Any) -> Any:
    """What a message of the server says has changed."""
    if message is None or "method" not in message:
        return None
    if message["method"] == "notifications/resources/list_changed":
        return "list"
    assert message["method"] == "notifications/resources/updated"
    return message["params"]["uri"]


class RelaySubscriber:
    """With a handshake, over a relay's lines."""

    def __init__(self, doors: Doors) -> None:
        self.relayed = relayed_agent(doors)

    def subscribe(self, *uris: str) -> None:
        """Asks for the list too, whose changes are then told."""
        assert self.relayed.request("resources/list")["result"]
        for uri in uris:
            assert self.relayed.request("resources/subscribe", uri=uri)["result"] == {}

    def hear(self) -> Any:
        """Nobody else speaks on this connection."""
        return notice(self.relayed.hear())

    def close(self) -> None:
        """Hangs up."""
        self.relayed.close()


class SessionSubscriber:
    """With a handshake, over HTTP: notices come on the stream that GET opens."""

    def __init__(self, doors: Doors) -> None:
        self.agent = Agent(doors, "agent:claude", "read", "write")
        self.agent.begin("2025-11-25")
        self.stream = self.agent.stream()

    def subscribe(self, *uris: str) -> None:
        """Asks for the list too, whose changes are then told."""
        self.agent.say("resources/list")
        for uri in uris:
            assert self.agent.say("resources/subscribe", uri=uri)["result"] == {}

    def hear(self) -> Any:
        """The stream has nothing but notices."""
        return notice(self.stream.hear())

    def close(self) -> None:
        """Hangs up."""
        self.stream.close()


class RelayListener:
    """Since 2026-07-28: one request is a stream of notices; over a relay's lines."""

    def __init__(self, doors: Doors) -> None:
        self.relayed = relayed_agent_without_handshake(doors)

    def subscribe(self, *uris: str) -> None:
        """Hears that it was understood."""
        wanted = {"resourcesListChanged": True, "resourceSubscriptions": list(uris), "toolsListChanged": True}
        self.number = self.relayed.ask("subscriptions/listen", notifications=wanted, _meta=META)
        said = self.relayed.hear()
        assert said["method"] == "notifications/subscriptions/acknowledged"
        assert "toolsListChanged" not in said["params"]["notifications"]

    def hear(self) -> Any:
        """Each notice names the stream."""
        return stamped(self.relayed.hear(), self.number)

    def close(self) -> None:
        """Hangs up."""
        self.relayed.close()


class HttpListener:
    """The same over HTTP."""

    def __init__(self, doors: Doors) -> None:
        self.agent = Agent(doors, "agent:claude", "read", "write")

    def subscribe(self, *uris: str) -> None:
        """Hears that it was understood."""
        self.stream, said = listening(self.agent, *uris)
        assert said["params"]["_meta"][STREAM] == 1

    def hear(self) -> Any:
        """Each notice names the stream."""
        return stamped(self.stream.hear(), 1)

    def close(self) -> None:
        """Hangs up."""
        self.stream.close()


def relayed_agent_without_handshake(doors: Doors) -> Relayed:
    """An agent at the relay door that has said nothing yet."""
    doors.opened.agent("agent:claude", "read", "write")
    relayed = doors.relay(principal="agent:claude", token=doors.token())
    assert "error" not in relayed.hear()
    return relayed


def listening(agent: Agent, *uris: str) -> tuple[Stream, Any]:
    """A stream that an agent has opened over HTTP, and what came first on it."""
    params = {"notifications": {"resourcesListChanged": True, "resourceSubscriptions": list(uris)}}
    body = agent.request("subscriptions/listen", **params, _meta=META)
    stream = agent.stream("POST", body, **agent.routed("subscriptions/listen", params))
    return stream, stream.hear() if stream.answer.status == 200 else None


def stamped(message: Any, number: int) -> Any:
    """A notice that must name its stream."""
    if message is not None and "method" in message:
        assert message["params"]["_meta"][STREAM] == number
    return notice(message)


KINDS = [RelaySubscriber, SessionSubscriber, RelayListener, HttpListener]
Make = Callable[[], Subscriber]


@pytest.fixture
def doors(make_doors: Callable[..., Doors]) -> Doors:
    """The doors of a vault with three pages."""
    return make_doors(PAGES)


@pytest.fixture(params=KINDS, ids=lambda kind: str(kind.__name__))
def make(request: pytest.FixtureRequest, doors: Doors) -> Iterator[Make]:
    """Gives subscribers of every kind."""
    made: list[Subscriber] = []

    def one() -> Subscriber:
        subscriber: Subscriber = request.param(doors)
        made.append(subscriber)
        return subscriber

    yield one
    for each in made:
        each.close()


def test_a_change_that_a_person_saves_is_told(doors: Doors, make: Make) -> None:
    """And the next one too; another page that changes meanwhile is not told of."""
    subscriber = make()
    subscriber.subscribe(uri_of("boiler"))
    doors.opened.save("house/roof.md", "Another one.\n")
    doors.opened.save("boiler.md", "Gas.\n")
    assert subscriber.hear() == uri_of("boiler")
    doors.opened.save("boiler.md", "A heat pump.\n")
    assert subscriber.hear() == uri_of("boiler")


def test_pages_that_come_and_go_change_the_list(doors: Doors, make: Make) -> None:
    """A page may be subscribed to before it is there, by any spelling of its address."""
    subscriber = make()
    later = "pcp://page/n%65w note"
    subscriber.subscribe(later)
    doors.opened.save("new note.md", "Now it is there.\n")
    assert {subscriber.hear(), subscriber.hear()} == {"list", later}
    (doors.opened.root / "new note.md").unlink()
    assert {subscriber.hear(), subscriber.hear()} == {"list", later}


def test_a_page_outside_the_grants_is_like_one_that_is_absent(doors: Doors, make: Make) -> None:
    """It can be subscribed to, and tells nothing, until the caller may see it."""
    subscriber = make()
    subscriber.subscribe(uri_of("secret"), uri_of("nothing"), uri_of("boiler"))
    doors.opened.save("secret.md", "---\npartition: work\n---\nAnother secret.\n")
    doors.opened.save("new.md", "---\npartition: work\n---\nA new secret.\n")
    until(lambda: doors.vault("GET", "pages/new").status == 200)
    doors.opened.save("boiler.md", "Gas.\n")
    assert subscriber.hear() == uri_of("boiler")
    doors.opened.save("secret.md", "No secret any more.\n")
    assert {subscriber.hear(), subscriber.hear()} == {"list", uri_of("secret")}


def test_the_profile_can_be_subscribed_to(doors: Doors, make: Make) -> None:
    """Each of its pages counts."""
    context = doors.opened.root / ".pcp/context.yaml"
    doors.opened.save(".pcp/context.yaml", context.read_text() + "profile: about\n")
    doors.opened.save("about/me.md", "Sam.\n")
    until(lambda: doors.vault("GET", "pages/about/me").status == 200)
    subscriber = make()
    subscriber.subscribe(PROFILE)
    doors.opened.save("about/me.md", "Sam Smith.\n")
    assert subscriber.hear() == PROFILE


def test_notices_end_when_the_token_is_revoked(doors: Doors, make: Make) -> None:
    """At once where a stream can end; over a relay nothing more is told."""
    subscriber = make()
    subscriber.subscribe(uri_of("boiler"))
    assert doors.vault("POST", "revoke", body={"principal": "agent:claude"}).status == 200
    doors.opened.save("boiler.md", "Gas.\n")
    until(lambda: doors.vault("GET", "pages/boiler").data.endswith(b"Gas.\n"))
    if isinstance(subscriber, RelaySubscriber):
        assert subscriber.relayed.request("ping")["result"] == {}
    else:
        assert subscriber.hear() is None


def test_grants_that_change_make_all_of_it_worth_reading_again(doors: Doors, make: Make) -> None:
    """Which page came or went into view with them is not told."""
    subscriber = make()
    subscriber.subscribe(uri_of("boiler"), uri_of("secret"), uri_of("nothing"))
    body = {"principal": "agent:claude", "rights": ["read"], "partitions": ["work"]}
    assert doors.vault("POST", "grants", body=body).status == 200
    told = {subscriber.hear() for _ in range(4)}
    assert told == {"list", uri_of("boiler"), uri_of("secret"), uri_of("nothing")}
    doors.opened.save("secret.md", "---\npartition: work\n---\nAnother secret.\n")
    assert subscriber.hear() == uri_of("secret")


def test_an_agent_s_own_write_is_told_too(doors: Doors, make: Make) -> None:
    """To every client that wants to hear of the page."""
    one, other = make(), make()
    one.subscribe(uri_of("boiler"))
    other.subscribe(uri_of("boiler"))
    writer = Agent(doors, "agent:writer", "read", "write")
    writer.begin()
    said = writer.call("edit_page", path="boiler", op="append", content="More.")
    assert not said.get("isError"), said
    assert one.hear() == other.hear() == uri_of("boiler")


def test_an_index_in_trouble_delays_notices_and_loses_none(
    doors: Doors, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be looked at now is looked at later."""
    monkeypatch.setattr(watch, "AFTER_TROUBLE_S", 0.01)
    subscriber = make()
    subscriber.subscribe(uri_of("boiler"))
    real, failures = subscribe.since, iter(range(3))

    def troubled(*arguments: Any, **options: Any) -> Any:
        if next(failures, None) is not None:
            raise Unavailable("index.locked", "the index is locked")
        return real(*arguments, **options)

    monkeypatch.setattr(subscribe, "since", troubled)
    doors.opened.save("boiler.md", "Gas.\n")
    assert subscriber.hear() == uri_of("boiler")
    assert next(failures, None) is None


@pytest.fixture
def relayed(doors: Doors) -> Relayed:
    """An agent at the relay door, past the handshake."""
    return relayed_agent(doors)


def test_what_is_left_is_not_told_of(doors: Doors, relayed: Relayed) -> None:
    """Leaving what was never subscribed to is no error."""
    for uri in (uri_of("boiler"), uri_of("house/roof")):
        relayed.request("resources/subscribe", uri=uri)
    assert relayed.request("resources/unsubscribe", uri=uri_of("boiler"))["result"] == {}
    assert relayed.request("resources/unsubscribe", uri="pcp://page/never")["result"] == {}
    doors.opened.save("boiler.md", "Gas.\n")
    until(lambda: doors.vault("GET", "pages/boiler").data == b"Gas.\n")
    doors.opened.save("house/roof.md", "Gas.\n")
    assert relayed.hear()["params"] == {"uri": uri_of("house/roof")}


def test_a_client_that_asked_for_nothing_hears_nothing(doors: Doors) -> None:
    """Nothing is looked at for it, nor for one that has gone."""
    wakes = doors.opened.memory.listeners
    before = len(wakes._wakes)
    relayed = relayed_agent(doors)
    doors.opened.save("new.md", "New.\n")
    until(lambda: doors.vault("GET", "pages/new").status == 200)
    assert relayed.request("ping")["result"] == {}
    assert len(wakes._wakes) == before
    relayed.request("resources/subscribe", uri=uri_of("new"))
    assert len(wakes._wakes) == before + 1
    relayed.close()
    until(lambda: len(wakes._wakes) == before)


def test_what_is_no_resource_cannot_be_subscribed_to(relayed: Relayed) -> None:
    """With the answer of reading it."""
    for uri in ("", "file:///x", "pcp://page/", "pcp://other", "x" * 50_000):
        said = relayed.request("resources/subscribe", uri=uri)["error"]
        assert said == relayed.request("resources/read", uri=uri)["error"]


def test_subscriptions_of_one_session_are_bounded(
    doors: Doors, relayed: Relayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ones there are stay; leaving one makes room."""
    monkeypatch.setattr(subscriptions, "MOST_URIS", 3)
    uris = [uri_of(f"p{number}") for number in range(4)]
    answers = [relayed.request("resources/subscribe", uri=uri) for uri in uris]
    assert [("result" in each) for each in answers] == [True, True, True, False]
    assert answers[3]["error"]["data"]["code"] == "resource.too-many"
    assert "result" in relayed.request("resources/subscribe", uri=uris[0])
    relayed.request("resources/unsubscribe", uri=uris[0])
    assert "result" in relayed.request("resources/subscribe", uri=uris[3])


def test_long_addresses_take_the_room_of_many(
    doors: Doors, relayed: Relayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client could have megabytes kept for each of its connections, without a right to anything."""
    monkeypatch.setattr(subscriptions, "MOST_LETTERS", 300)
    uris = [uri_of(letter * 100) for letter in "abc"]
    answers = [relayed.request("resources/subscribe", uri=uri) for uri in (*uris, uris[0])]
    assert [("result" in each) for each in answers] == [True, True, False, True]
    assert answers[2]["error"]["data"]["code"] == "resource.too-many"
    relayed.request("resources/unsubscribe", uri=uris[0])
    assert "result" in relayed.request("resources/subscribe", uri=uris[2])
    stream, said = listening(Agent(doors, "agent:claude", "read"), *uris)
    assert said["params"]["notifications"]["resourceSubscriptions"] == uris[:2]
    stream.close()


def test_a_stream_tells_what_of_its_wishes_it_honours(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no resource, or beyond the bound, is left out."""
    monkeypatch.setattr(subscriptions, "MOST_URIS", 2)
    agent = Agent(doors, "agent:claude", "read")
    stream, said = listening(agent, "file:///x", uri_of("a"), uri_of("a"), uri_of("secret"), uri_of("c"))
    assert said["params"]["notifications"] == {
        "resourcesListChanged": True, "resourceSubscriptions": [uri_of("a"), uri_of("secret")],
    }  # fmt: skip
    stream.close()


def test_streams_of_one_principal_are_bounded(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another principal has its own; one that is closed makes room."""
    monkeypatch.setattr(subscriptions, "MOST_STREAMS", 2)
    agent, other = Agent(doors, "agent:claude", "read"), Agent(doors, "agent:other", "read")
    streams = [listening(agent)[0] for _ in range(2)]
    refused, _ = listening(agent)
    assert refused.answer.status == 400
    assert json.loads(refused.answer.read())["error"]["data"]["code"] == "resource.too-many"
    streams.append(listening(other)[0])
    assert streams[2].answer.status == 200
    streams[0].close()

    def has_room() -> bool:
        stream, said = listening(agent)
        streams.append(stream)
        return said is not None

    until(has_room)
    for each in (*streams, refused):
        each.close()


def test_a_stream_over_a_relay_is_cancelled_by_its_id(doors: Doors) -> None:
    """It is then never answered, and the connection goes on."""
    listener = RelayListener(doors)
    listener.subscribe(uri_of("boiler"))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listener.number}}
    listener.relayed.send(cancel)
    assert listener.relayed.request("tools/list", _meta=META)["result"]
    doors.opened.save("boiler.md", "Gas.\n")
    until(lambda: doors.vault("GET", "pages/boiler").data == b"Gas.\n")
    assert listener.relayed.request("tools/list", _meta=META)["result"]


def test_many_changes_are_told_together(doors: Doors, relayed: Relayed) -> None:
    """A page that changes often between two looks is told of once; more than one look takes is told to the end."""
    uris = [uri_of(f"many/p{number}") for number in range(watch.EVENTS_AT_ONCE + 20)]
    for uri in uris:
        relayed.send({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}})
        assert relayed.hear()["result"] == {}
    for uri in uris:
        doors.opened.save(f"{uri.removeprefix('pcp://page/')}.md", "x\n")
    heard: set[str] = set()
    while len(heard) < len(uris):
        heard.add(notice(relayed.hear()))
    assert heard == set(uris)


def test_subscriptions_and_notices_are_in_the_audit_trail(doors: Doors, relayed: Relayed) -> None:
    """That an agent asked, and what it was told of, by number; a page that it was not told of is in no row."""
    for uri in (uri_of("boiler"), uri_of("secret")):
        relayed.request("resources/subscribe", uri=uri)
    doors.opened.save("secret.md", "---\npartition: work\n---\nAnother secret.\n")
    doors.opened.save("boiler.md", "Gas.\n")
    assert relayed.hear()["params"] == {"uri": uri_of("boiler")}
    rows = [
        row for row in reversed(audit.rows(doors.opened.memory.ledger)) if row.principal == "agent:claude"
    ]
    assert [(row.action, row.outcome, len(row.object_ids)) for row in rows] == [
        ("subscribe", "ok", 0), ("subscribe", "ok", 0), ("resource_updated", "ok", 1),
    ]  # fmt: skip
    assert rows[-1].categories == ("semantic",)

"""The stdio relay as MCP clients start it, before owners that live and die."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pcpd.client import relay
from pcpd.client.relay import Lines
from pcpd.client.session import KEY
from tests.client.conftest import Scene
from tests.client.fake_owner import Die, FakeOwner, Message
from tests.waiting import until

GENEROUS_S = 30.0
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(identity: int, tool: str = "write_page") -> Message:
    """A call of a tool."""
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": tool}}


def echo(message: Message) -> list[Message]:
    """Answers every request with its method."""
    return (
        [{"jsonrpc": "2.0", "id": message["id"], "result": {"was": message["method"]}}]
        if "id" in message
        else []
    )


class Client:
    """An MCP client that started the relay."""

    def __init__(self, scene: Scene, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pcpd", "--vault", scene.root, "mcp", "--principal", "agent:claude"],
            env={**scene.env, "PCPD_TOKEN": "pcp_secret", **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def send(self, *messages: Message | bytes) -> None:
        """Says something, a line each."""
        for message in messages:
            self.stdin.write(
                (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"
            )
        self.stdin.flush()

    def hear(self) -> Any:
        """Waits for the next line."""
        return json.loads(self.stdout.readline())

    def begin(self) -> None:
        """Shakes hands."""
        self.send(INITIALIZE)
        assert self.hear()["id"] == 0
        self.send(INITIALIZED)

    def end(self) -> tuple[int, bytes, bytes]:
        """Closes the relay's stdin; gives its status and what else it said."""
        out, err = self.process.communicate(timeout=GENEROUS_S)
        return self.process.returncode, out, err


@pytest.fixture
def client(scene: Scene) -> Iterator[Callable[..., Client]]:
    """Starts relays, and ends those that are left."""
    made: list[Client] = []

    def start(**environment: str) -> Client:
        made.append(Client(scene, **environment))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()
        for stream in (each.stdin, each.stdout, each.process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def test_lines_go_both_ways_and_the_relay_ends_with_its_input(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """The greeting names version, principal and token; stdout holds nothing but protocol."""
    owner = scene.owner(mcp=echo)
    relayed = client()
    relayed.begin()
    relayed.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert relayed.hear() == {"jsonrpc": "2.0", "id": 1, "result": {"was": "tools/list"}}
    owner.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    assert relayed.hear()["method"] == "notifications/tools/list_changed"
    assert relayed.end() == (0, b"", b"")
    (greeting,) = owner.greeted
    assert (greeting["principal"], greeting["token"]) == ("agent:claude", "pcp_secret")


def test_next_owner_is_reached_within_a_second_and_no_write_is_doubled(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """The owner is killed after it wrote and before it answered; the next one knows the write by its key."""
    written: dict[str, int] = {}

    def write_and_die(message: Message) -> list[Message]:
        if message["method"] == "tools/call":
            written[message["params"]["_meta"][KEY]] = message["id"]
            raise Die
        return echo(message)

    first = scene.owner(mcp=write_and_die)
    relayed = client()
    relayed.begin()
    relayed.send(call(1))
    until(lambda: written)
    until(lambda: len(first.heard) == 3)

    def write(message: Message) -> list[Message]:
        if message["method"] == "tools/call":
            written[message["params"]["_meta"][KEY]] = message["id"]
        return echo(message)

    second = scene.owner(mcp=write)
    assert relayed.hear() == {"jsonrpc": "2.0", "id": 1, "result": {"was": "tools/call"}}
    assert list(written.values()) == [1]
    assert [each["method"] for each in second.heard] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
    assert relayed.end() == (0, b"", b"")


def test_an_idle_relay_waits_for_its_client_before_it_looks_for_the_next_owner(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """Else an owner that ends when idle would be started again for ever."""
    first = scene.owner(mcp=echo)
    relayed = client()
    relayed.begin()
    until(lambda: len(first.heard) == 2)
    first.kill()
    second = scene.owner(mcp=echo)
    relayed.send(call(1))
    assert relayed.hear()["id"] == 1
    assert len(second.greeted) == 1


def test_relay_that_lost_its_owner_starts_none_by_itself(scene: Scene) -> None:
    """Nothing is looked for until there is something to ask."""
    ours, theirs = socket.socketpair()
    idle = relay.Relay(scene.root, scene.settings, scene.env, relay.Credential("", ""))
    idle._link = ours
    theirs.close()
    idle._exchange_with_owner(select.POLLIN)
    idle._seek_owner()
    assert (vars(idle)["_link"], vars(idle)["_start"]) == (None, None)


def test_a_client_that_subscribed_is_told_by_the_next_owner_without_asking(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """No owner is started for that; one that somebody else starts is found, and hears of the subscription."""
    first = scene.owner(mcp=echo)
    relayed = client()
    relayed.begin()
    relayed.send(
        {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "pcp://page/a"}}
    )
    assert relayed.hear()["id"] == 1
    first.kill()
    second = scene.owner(mcp=echo)
    told = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "pcp://page/a"}}
    assert relayed.hear() == told
    until(lambda: len(second.heard) == 3)
    assert [each["method"] for each in second.heard] == [
        "initialize", "notifications/initialized", "resources/subscribe",
    ]  # fmt: skip
    second.say({**told, "params": {"uri": "pcp://page/b"}})
    assert relayed.hear()["params"] == {"uri": "pcp://page/b"}
    relayed.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert relayed.hear()["id"] == 2
    assert relayed.end() == (0, b"", b"")


def test_half_a_line_of_a_dying_owner_is_not_passed_on(scene: Scene, client: Callable[..., Client]) -> None:
    """The client only ever sees whole messages, here the next owner's."""

    def die_in_the_middle(message: Message) -> list[Message]:
        if message["method"] == "tools/call":
            first.links[0].sendall(b'{"jsonrpc": "2.0", "id": 1, "resu')
            raise Die
        return echo(message)

    first: FakeOwner = scene.owner(mcp=die_in_the_middle)
    relayed = client()
    relayed.begin()
    relayed.send(call(1))
    until(lambda: len(first.heard) == 3)
    scene.owner(mcp=echo, greeting=None)
    assert relayed.hear()["result"] == {"was": "tools/call"}


def test_an_owner_that_refuses_is_quoted_to_the_client(scene: Scene, client: Callable[..., Client]) -> None:
    """As an error, with the next step."""
    scene.owner(greeting={"error": {"code": "relay.greeting", "message": "not understood", "hint": "update"}})
    relayed = client(PCPD_TOKEN="")
    relayed.send(INITIALIZE)
    error = relayed.hear()["error"]
    assert error["message"] == "not understood. update"
    assert error["data"]["code"] == "relay.greeting"
    assert relayed.end()[0] == 0


def test_a_client_without_a_good_token_hears_in_every_answer_how_it_can_have_one(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """Not an error in a log: the agent sees a tool that says it, and can tell the person."""
    refusal = {"code": "token.refused", "message": "no valid token came", "hint": "use `pcpd connect`"}
    owner = scene.owner(greeting={"error": refusal}, mcp=echo)
    relayed = client(PCPD_TOKEN="")
    said = "no valid token came. use `pcpd connect`"
    relayed.send(INITIALIZE)
    begun = relayed.hear()["result"]
    assert (begun["instructions"], begun["capabilities"]) == (said, {"tools": {}})
    relayed.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    relayed.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    (tool,) = relayed.hear()["result"]["tools"]
    assert said in tool["description"]
    relayed.send(call(3))
    result = relayed.hear()["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, said)
    relayed.send({"jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": {"uri": "pcp://page/a"}})
    assert relayed.hear()["error"]["message"] == said
    relayed.send({"jsonrpc": "2.0", "id": 5, "method": "ping"})
    assert relayed.hear()["result"] == {}
    assert not owner.heard
    assert relayed.end()[0] == 0


def test_owners_that_die_at_once_again_and_again_are_an_error(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """The relay does not turn in circles, and is there for the next request."""

    def die(message: Message) -> list[Message]:
        raise Die

    scene.owner(mcp=die)
    relayed = client()
    relayed.send(INITIALIZE)
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(relayed.hear()), daemon=True)
    waiting.start()
    while not answers:
        owner = scene.owner(mcp=die)
        until(lambda owner=owner: owner.heard or answers)  # type: ignore[misc]
    assert answers[0]["error"]["code"] == -32000
    scene.owner(mcp=echo)
    relayed.send({**INITIALIZE, "id": 7})
    assert relayed.hear()["result"]


@pytest.mark.parametrize(
    "bad", [b"\xff\xfe{}", b"{", b"x" * (relay.LINE_BYTES + 1)], ids=["bytes", "half", "long"]
)
def test_what_is_no_message_is_refused_and_the_session_goes_on(
    scene: Scene, client: Callable[..., Client], bad: bytes
) -> None:
    """Bad UTF-8, broken JSON and lines without end never reach the owner."""
    owner = scene.owner(mcp=echo)
    relayed = client()
    relayed.begin()
    relayed.send(bad)
    assert relayed.hear()["error"]["code"] in {-32700, -32600}
    relayed.send(call(1))
    assert relayed.hear()["id"] == 1
    assert len(owner.heard) == 3


def test_megabytes_go_through_both_ways(scene: Scene, client: Callable[..., Client]) -> None:
    """Pages are up to 10 MiB, more than any pipe holds at once."""
    text = "memory " * 1_400_000

    def give_back(message: Message) -> list[Message]:
        got = message.get("params", {}).get("text", "")
        return [{"jsonrpc": "2.0", "id": message["id"], "result": {"text": got}}] if "id" in message else []

    scene.owner(mcp=give_back)
    relayed = client()
    relayed.begin()
    writing = threading.Thread(
        target=relayed.send,
        args=({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"text": text}},),
    )
    writing.start()
    assert relayed.hear()["result"]["text"] == text
    writing.join()


def test_last_line_needs_no_newline(scene: Scene, client: Callable[..., Client]) -> None:
    """`printf '{…}' | pcpd mcp` is answered before the relay ends."""
    scene.owner(mcp=echo)
    relayed = client()
    out, _ = relayed.process.communicate(json.dumps(INITIALIZE).encode(), timeout=GENEROUS_S)
    assert json.loads(out)["id"] == 0


@pytest.mark.parametrize("has_owner", [True, False])
def test_death_of_the_client_ends_the_relay(
    scene: Scene, client: Callable[..., Client], *, has_owner: bool
) -> None:
    """A client that is killed leaves no relay behind, also while an owner is looked for."""
    if has_owner:
        scene.owner(mcp=lambda message: [])
    relayed = client()
    relayed.send(INITIALIZE)
    relayed.stdout.close()
    relayed.stdin.close()
    assert relayed.process.wait(GENEROUS_S) == 0


def test_a_client_that_reads_no_more_is_gone_even_if_its_stdin_stays_open(
    scene: Scene, client: Callable[..., Client]
) -> None:
    """A child of the client's may still hold the pipe."""
    scene.owner(mcp=lambda message: [])
    relayed = client()
    relayed.send(INITIALIZE)
    relayed.stdout.close()
    assert relayed.process.wait(GENEROUS_S) == 0


def test_relay_loads_neither_framework_nor_sdk(scene: Scene) -> None:
    """It is started by every client, and stays as long as that does: it must be small."""
    code = (
        "import sys, os; from pcpd.__main__ import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    scene.owner(mcp=echo)
    done = subprocess.run(
        [sys.executable, "-c", code, "--vault", os.fspath(scene.root), "mcp"],
        env=dict(scene.env), input=b"", capture_output=True, check=True,
    )  # fmt: skip
    loaded = {name.partition(".")[0] for name in done.stderr.decode().split()}
    assert not loaded & {
        "mcp",
        "fastapi",
        "uvicorn",
        "anyio",
        "rich",
        "yaml",
        "ruamel",
        "sqlite3",
        "pygit2",
        "asyncio",
    }
    assert "pcpd" in loaded


def test_lines_are_cut_wherever_the_pieces_end() -> None:
    """Reads end anywhere."""
    text = b"one\ntwo\n\nthree"
    for size in range(1, len(text) + 1):
        lines = Lines(100)
        heard = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert heard == [b"one", b"two", b""]
        assert lines.rest() == b"three"


def test_a_line_that_is_too_long_is_dropped_alone() -> None:
    """What comes after its newline is heard."""
    for size in (1, 3, 100):
        lines = Lines(4)
        text = b"1234\n12345\n6\n"
        heard = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert heard == [b"1234", b"6"]
        assert lines.too_long == 1

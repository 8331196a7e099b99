"""Changes over HTTP: a stream tells each reader their part as it happens, and goes on where they left off."""

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from pcpd.api import connection, streams
from pcpd.api.streams import Streams
from pcpd.memory import consent, read
from tests.doors import Doors, _Unix
from tests.vaults import Opened
from tests.waiting import LONGEST_S, until


class Sent(NamedTuple):
    """One server-sent event."""

    kind: str
    id: str
    data: Any


class Listening:
    """A client that reads a stream event by event."""

    def __init__(
        self, doors: Doors, target: str = "", *, token: str = "", last: str = "", tcp: bool = True
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Last-Event-ID": last} if last else {}
        self.connection = (
            http.client.HTTPConnection("127.0.0.1", doors.port, timeout=LONGEST_S)
            if token and tcp
            else _Unix(doors.http_socket)
        )
        self.connection.request("GET", f"/vault/v1/events{target}", headers=headers)
        self.response = self.connection.getresponse()
        self.beats = 0

    def hear(self) -> Sent | None:
        """Waits for the next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        for line in iter(self.response.readline, b""):
            text = line.decode().rstrip("\n")
            if text == ":":
                self.beats += 1
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                return Sent(fields["event"], fields["id"], json.loads(fields["data"]))
        assert self.response.chunk_left is None, "the answer was cut off"
        return None

    def close(self) -> None:
        """Hangs up."""
        self.response.close()
        self.connection.close()


@pytest.fixture(autouse=True)
def no_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """What must be seen at once is not to be seen at the next beat only."""
    monkeypatch.setattr(streams, "BEAT_S", 3600.0)


@pytest.fixture
def listen(doors: Doors) -> Iterator[Callable[..., Listening]]:
    """Gives what opens a stream and hears that it is ready."""
    made: list[Listening] = []

    def listening(*arguments: Any, **options: Any) -> Listening:
        made.append(Listening(doors, *arguments, **options))
        return made[-1]

    yield listening
    for each in made:
        each.close()


def heard(stream: Listening) -> Sent:
    """The next event, which must come."""
    sent = stream.hear()
    assert sent is not None
    return sent


def test_a_stream_begins_with_its_cursor_and_tells_each_change(
    doors: Doors, listen: Callable[..., Listening]
) -> None:
    """With the version that a read would give."""
    stream = listen()
    assert stream.response.status == 200
    assert stream.response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.response.headers["cache-control"] == "no-store"
    ready = heard(stream)
    assert (ready.kind, ready.data) == ("ready", {"cursor": ready.id})
    doors.opened.save("a.md", "one\n")
    created = heard(stream)
    (row,) = [
        row for row in read.list_pages(doors.opened.memory, doors.opened.person).pages if row.path == "a"
    ]
    assert created.kind == created.data["kind"] == "created"
    assert (created.data["path"], created.data["version"]) == ("a", row.version)
    assert created.id == created.data["id"]
    (doors.opened.root / "a.md").unlink()
    removed = heard(stream)
    assert (removed.kind, removed.data["path"], removed.data["version"]) == ("removed", "a", None)


def of_agent(doors: Doors) -> str:
    """A token of an agent that reads the default partition."""
    doors.opened.agent("agent:claude", "read")
    return doors.token()


def is_found(doors: Doors, path: str) -> bool:
    """Tells whether the index has a page."""
    listed = read.list_pages(doors.opened.memory, doors.opened.person).pages
    return path in {row.path for row in listed}


def rows(doors: Doors, action: str) -> list[dict[str, Any]]:
    """The audit rows of an action: outcome, categories, counts."""
    with doors.opened.memory.ledger.reading() as conn:
        found = conn.execute("SELECT * FROM audit WHERE action = ? ORDER BY id", (action,)).fetchall()
    return [dict(row) for row in found]


def test_a_stream_that_is_resumed_misses_nothing_and_repeats_nothing(
    doors: Doors, listen: Callable[..., Listening]
) -> None:
    """By the header that browsers send or by the query; the header is the newer one."""
    start = heard(listen()).id
    for name in ("a", "b"):
        doors.opened.save(f"{name}.md", "text\n")
        until(lambda name=name: is_found(doors, name))  # type: ignore[misc]
    first = listen(f"?after={start}")
    assert heard(first).id == start
    one, two = heard(first), heard(first)
    assert [one.data["path"], two.data["path"]] == ["a", "b"]
    again = listen(f"?after={start}", last=one.id)
    assert (heard(again).id, heard(again).id) == (one.id, two.id)


@pytest.mark.parametrize("cursor", ["x", "A" * 22, "A" * 200])
def test_a_cursor_that_cannot_be_gone_on_from_is_a_reset(
    doors: Doors, listen: Callable[..., Listening], cursor: str
) -> None:
    """The reader is given one that can."""
    stream = listen(last=cursor)
    ready, reset = heard(stream), heard(stream)
    assert (ready.kind, reset.kind, reset.data) == ("ready", "reset", {"cursor": ready.id})
    doors.opened.save("a.md", "one\n")
    assert heard(stream).data["path"] == "a"


def test_a_cursor_that_no_id_can_be_is_refused(doors: Doors) -> None:
    """Before a stream begins."""
    assert doors.vault("GET", f"events?after={'A' * 201}").code == "http.malformed"
    assert doors.vault("GET", "events", headers={"Last-Event-ID": "A" * 201}).code == "http.malformed"


def test_an_agent_is_told_what_it_may_see_and_no_more(doors: Doors, listen: Callable[..., Listening]) -> None:
    """Another partition, a sensitive page: not there; a page that becomes sensitive goes."""
    stream = listen(token=of_agent(doors))
    heard(stream)
    doors.opened.save("work.md", "---\npartition: work\n---\n")
    doors.opened.save("secret.md", "---\nsensitivity: sensitive\n---\n")
    until(lambda: read.list_pages(doors.opened.memory, doors.opened.person).total == 3)
    doors.opened.save("seen.md", "one\n")
    assert heard(stream).data["path"] == "seen"
    doors.opened.save("boiler.md", "---\nsensitivity: sensitive\n---\n")
    assert heard(stream)[0] == "removed"


def test_a_token_that_is_taken_back_ends_its_streams_at_once(
    doors: Doors, listen: Callable[..., Listening]
) -> None:
    """And opens no other one. The person's goes on."""
    token = of_agent(doors)
    stream, person = listen(token=token), listen()
    heard(stream)
    heard(person)
    consent.revoke(doors.opened.memory, principal=None, token=f"tok_{token[4:12]}")
    assert stream.hear() is None
    assert listen(token=token).response.status == 401
    doors.opened.save("a.md", "one\n")
    assert heard(person).data["path"] == "a"


def test_grants_that_end_end_the_stream_and_others_reset_it(
    doors: Doors, listen: Callable[..., Listening]
) -> None:
    """With more to see, the reader lists again; with nothing, there is no stream to be had."""
    stream = listen(token=of_agent(doors))
    heard(stream)
    wish = consent.Wish("agent:claude", ["read"], partitions=["work"])
    consent.grant(doors.opened.memory, wish)
    assert heard(stream).kind == "reset"
    consent.revoke(doors.opened.memory, principal="agent:claude", token=None)
    assert stream.hear() is None
    refused = listen(token=doors.token())
    assert refused.response.status == 403
    assert json.loads(refused.response.read())["code"] == "access.denied"


def test_a_stream_leaves_a_row_when_it_opens_and_one_when_it_closes(
    doors: Doors, listen: Callable[..., Listening]
) -> None:
    """The second says how many events it told, of which categories; no row says so for each."""
    stream = listen(token=of_agent(doors))
    heard(stream)
    assert len(rows(doors, "open_events")) == 1
    doors.opened.save("a.md", "one\n")
    heard(stream)
    stream.close()
    (row,) = until(lambda: rows(doors, "close_events"))
    assert json.loads(row["counts"])["events"] == 1
    assert "semantic" in row["categories"]
    assert len(rows(doors, "open_events")) == 1


def test_the_owners_end_ends_streams_and_their_rows_are_written(make_doors: Callable[..., Doors]) -> None:
    """Within the time that the owner waits for requests; the reader sees a whole answer."""
    doors = make_doors({"a.md": "text"})
    streams = [Listening(doors, token=of_agent(doors)) for _ in range(8)]
    for stream in streams:
        heard(stream)
    doors._loop.call_soon_threadsafe(doors._stop.set)
    assert [stream.hear() for stream in streams] == [None] * 8
    until(lambda: len(rows(doors, "close_events")) == 8)
    for stream in streams:
        stream.close()


def test_only_so_many_streams_are_open_and_one_that_closes_makes_room(
    doors: Doors, listen: Callable[..., Listening], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one principal, and of all together."""
    monkeypatch.setattr(streams, "MOST_OF_ONE", 2)
    monkeypatch.setattr(streams, "MOST", 3)
    token = of_agent(doors)
    first, _ = listen(token=token), listen(token=token)
    full = listen(token=token)
    assert full.response.status == 503
    assert json.loads(full.response.read())["code"] == "events.too-many"
    listen()
    assert listen().response.status == 503
    first.close()
    until(lambda: listen(token=token).response.status == 200)


def test_quiet_streams_show_life_together(
    make_doors: Callable[..., Doors], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One timer for all of them."""
    monkeypatch.setattr(streams, "BEAT_S", 0.05)
    doors = make_doors({"a.md": "text"})
    quiet = [Listening(doors) for _ in range(3)]
    for stream in quiet:
        heard(stream)
        assert stream.response.readline() == b":\n"
        stream.close()


def test_a_reader_that_takes_nothing_is_hung_up_on_and_holds_up_no_other(
    make_doors: Callable[..., Doors], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it is bounded: one batch and the connection's buffer."""
    monkeypatch.setattr(connection, "STUCK_S", 0.2)
    doors = make_doors({})
    stuck, other = Listening(doors, token=of_agent(doors), tcp=False), Listening(doors)
    heard(other)
    long = "x" * 200
    for n in range(3000):
        (doors.opened.root / long).mkdir(exist_ok=True)
        (doors.opened.root / long / f"{long}{n}.md").write_text("x")
    assert heard(other).kind == "created"
    until(lambda: rows(doors, "close_events"))
    stuck.close()
    other.close()


def test_a_burst_of_changes_rings_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the loop has heard it."""

    async def burst() -> tuple[bool, int]:
        shared = Streams(opened.memory)
        with shared.place("human:sam") as waiting:
            calls: list[object] = []
            loop = asyncio.get_running_loop()
            plain = loop.call_soon_threadsafe

            def counted(*arguments: Any) -> asyncio.Handle:
                calls.append(arguments)
                return plain(*arguments)

            monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
            for _ in range(100):
                opened.memory.listeners.tell()
            return await waiting.sleep(), len(calls)

    assert asyncio.run(burst()) == (False, 1)

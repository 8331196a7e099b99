"""Any user of the machine may connect to loopback: strangers cannot use up what the person's commands need."""

import asyncio
import socket
from contextlib import ExitStack

import pytest

from pcpd.api import connection
from pcpd.gate import guard
from tests.doors import Answer, Doors
from tests.waiting import LONGEST_S, until

HEALTH = b"GET /vault/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _connected(doors: Doors) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", doors.port), LONGEST_S)
    link.settimeout(LONGEST_S)
    return link


def _calling(token: str, *, method: str = "GET") -> bytes:
    return (
        f"{method} /vault/v1/pages/boiler HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    ).encode()


def _is_hung_up(link: socket.socket) -> bool:
    """Waits for the end of a connection; False if something was said first."""
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


def _is_answered(link: socket.socket) -> bool:
    """Asks for health and tells whether that was answered."""
    try:
        link.sendall(HEALTH)
        return link.recv(65536).startswith(b"HTTP/1.1 200 OK")
    except ConnectionError:
        return False


def _goes_on(link: socket.socket) -> bool:
    """Asks for health behind what was answered, and tells whether that is answered too."""
    try:
        link.sendall(HEALTH)
        said = b""
        while b"in_step" not in said:
            piece = link.recv(65536)
            if not piece:
                return False
            said += piece
    except ConnectionError:
        return False
    return True


def test_only_so_many_strangers_are_kept(doors: Doors) -> None:
    """One more is let in, and who has asked nothing for longest goes; the person's socket is served as ever."""
    with ExitStack() as open_links:
        links = [open_links.enter_context(_connected(doors)) for _ in range(connection.MOST_STRANGERS)]
        assert _is_answered(links[0])  # so that it is the second that has waited longest
        late = open_links.enter_context(_connected(doors))
        assert _is_answered(late)
        assert _is_hung_up(links[1])
        assert doors.vault("GET", "health").status == 200
        assert all(_is_answered(link) for link in (links[0], links[2], links[-1]))


def test_who_has_shown_a_token_is_no_stranger(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many strangers come, and however long nothing is asked; a token that is not valid helps nobody."""
    token = doors.token()
    with _connected(doors) as caller, _connected(doors) as pretender:
        assert _is_answered(caller)
        assert _is_answered(pretender)
        assert doors.vault("GET", "health").status == 200  # the loop has done all that belongs to the answers
        monkeypatch.setattr(connection, "MOST_STRANGERS", 2)
        monkeypatch.setattr(connection, "HEAD_S", 0.05)
        caller.sendall(_calling(token))
        assert caller.recv(65536).startswith(b"HTTP/1.1 404 ")  # there is no grant, but the caller is known
        pretender.sendall(_calling("pcp_00000000_" + "x" * 43))
        assert pretender.recv(65536).startswith(b"HTTP/1.1 401 ")
        assert _is_hung_up(pretender)
        for _ in range(5):
            with _connected(doors) as stranger:
                assert _is_hung_up(stranger)
        assert _is_answered(caller)


def test_who_has_shown_a_token_has_only_so_many_connections(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that the owner may open are for all: whoever has most that ask nothing loses one for one more."""
    monkeypatch.setattr(connection, "MOST_CALLERS", 3)
    greedy, modest = doors.token("agent:greedy"), doors.token("agent:modest")
    with ExitStack() as open_links:

        def calls(token: str) -> socket.socket:
            link = open_links.enter_context(_connected(doors))
            link.sendall(_calling(token))
            assert link.recv(9) == b"HTTP/1.1 "
            return link

        first, kept, second = calls(modest), calls(greedy), calls(greedy)
        doors.vault("GET", "health")  # the loop has done all that belongs to the answers
        third = calls(modest)
        assert _goes_on(first)
        assert _goes_on(second)
        assert _goes_on(third)
        assert not _goes_on(kept)


def test_no_caller_is_hung_up_on_in_the_middle_of_an_answer(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all connections of callers are busy, there is no room for one more, but for the person."""
    monkeypatch.setattr(connection, "MOST_CALLERS", 2)
    doors.opened.agent("agent:claude", "read")
    token = doors.token()
    with ExitStack() as open_links:
        for _ in range(2):
            link = open_links.enter_context(_connected(doors))
            link.sendall(_calling(token).replace(b"pages/boiler", b"events"))
            assert link.recv(9) == b"HTTP/1.1 "
        assert _is_hung_up(open_links.enter_context(_connected(doors)))
        assert doors.vault("GET", "health").status == 200


def test_one_caller_has_only_so_many_requests_under_way(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are answered, and so is the caller once one of them has ended; the person is not counted."""
    monkeypatch.setattr(guard, "MOST_UNDER_WAY", 2)
    doors.opened.agent("agent:greedy", "read")
    tokens = {name: f"Bearer {doors.token(name)}" for name in ("agent:greedy", "agent:modest")}

    def asked(name: str) -> Answer:
        return doors.vault("GET", "pages", headers={"Authorization": tokens[name]}, tcp=True)

    with ExitStack() as open_links:
        for _ in range(2):
            link = open_links.enter_context(_connected(doors))
            link.sendall(_calling(tokens["agent:greedy"][7:]).replace(b"pages/boiler", b"events"))
            assert link.recv(9) == b"HTTP/1.1 "
        refused = asked("agent:greedy")
        assert (refused.status, refused.code) == (503, "http.too-many")
        assert asked("agent:modest").status == 200
    until(lambda: asked("agent:greedy").status == 200)


@pytest.mark.parametrize("said", [b"", b"GET /vault/v1/hea", HEALTH + b"GET /va"])
def test_strangers_who_ask_nothing_whole_are_hung_up_on(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """However slowly they go on: with nothing said, half a request, and half of a second one."""
    monkeypatch.setattr(connection, "HEAD_S", 0.05)
    with _connected(doors) as link:
        link.sendall(said)
        heard = b""
        while piece := link.recv(1000):
            heard += piece
    assert heard.count(b"HTTP/1.1") == said.count(b"\r\n\r\n")


def test_the_person_may_take_their_time(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """On their own socket nobody else can connect: a slow request is waited for."""
    monkeypatch.setattr(connection, "HEAD_S", 0.0)
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(LONGEST_S)
        link.connect(str(doors.http_socket))
        link.sendall(HEALTH[:20])
        assert doors.vault("GET", "health").status == 200
        link.sendall(HEALTH[20:])
        assert link.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("size", [10, connection.JOINED_BYTES + 1])
def test_an_answer_is_whole_whether_its_head_is_sent_with_its_body_or_alone(doors: Doors, size: int) -> None:
    """Small ones go out at once, in the order in which they were asked for; HEAD has no body to go with."""
    page = b"HTTP/1.1 is what this page begins with" + b"x" * size
    doors.opened.save("boiler.md", page)
    until(lambda: doors.vault("GET", "pages/boiler").data == page)
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(LONGEST_S)
        link.connect(str(doors.http_socket))
        ask = b"%b /vault/v1/pages/boiler HTTP/1.1\r\nHost: localhost\r\n%b\r\n"
        link.sendall(ask % (b"HEAD", b"") + ask % (b"GET", b"") + ask % (b"GET", b"Connection: close\r\n"))
        heard = b""
        while piece := link.recv(65536):
            heard += piece
    head, first, second = heard.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert head.endswith(b"\r\n\r\n")
    assert first.endswith(b"\r\n\r\n" + page)
    assert second.endswith(b"\r\n\r\n" + page)


def test_a_small_answer_is_one_packet(doors: Doors) -> None:
    """Head and body are there together."""
    with _connected(doors) as link:
        link.sendall(HEALTH)
        head, _, body = link.recv(65536).partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert body


def test_what_is_written_leaves_in_order_and_a_head_with_what_follows_it() -> None:
    """Or alone, before a large body, at the end of the turn, and before the end of the connection."""
    sent: list[bytes] = []

    class Transport(asyncio.Transport):
        """Keeps what it is given."""

        def write(self, data: bytes | bytearray | memoryview) -> None:
            """Keeps a piece."""
            sent.append(bytes(data))

        def close(self) -> None:
            """Says so."""
            sent.append(b"closed")

    async def main() -> None:
        joined = connection._Joined(Transport(), asyncio.get_running_loop())
        large = b"x" * (connection.JOINED_BYTES + 1)
        for piece in (b"HTTP/1.1 a", b"b", b"c", b"HTTP/1.1 d", large, b"HTTP/1.1 e"):
            joined.write(piece)
        await asyncio.sleep(0)
        joined.write(b"f")
        joined.write(b"HTTP/1.1 g")
        joined.close()
        await asyncio.sleep(0)
        assert sent == [
            b"HTTP/1.1 ab",
            b"c",
            b"HTTP/1.1 d",
            large,
            b"HTTP/1.1 e",
            b"f",
            b"HTTP/1.1 g",
            b"closed",
        ]

    asyncio.run(main())

"""Any user of the machine may connect to loopback: strangers cannot use up what the person's commands need."""

import socket
from contextlib import ExitStack

import pytest

from pcpd.api import serve
from tests.doors import Doors
from tests.waiting import LONGEST_S

HEALTH = b"GET /vault/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _connected(doors: Doors) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", doors.port), LONGEST_S)
    link.settimeout(LONGEST_S)
    return link


def _is_hung_up(link: socket.socket) -> bool:
    """Waits for the end of a connection; False if something was said first."""
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


def test_only_so_many_strangers_are_let_in(doors: Doors) -> None:
    """The next one is hung up on; the person's socket and those that are in are served, and a free place is taken."""
    with ExitStack() as open_links:
        links = [open_links.enter_context(_connected(doors)) for _ in range(serve.MOST_STRANGERS)]
        late = open_links.enter_context(_connected(doors))
        assert _is_hung_up(late)
        assert doors.vault("GET", "health").status == 200
        links[-1].sendall(HEALTH)
        assert links[-1].recv(15) == b"HTTP/1.1 200 OK"
        links[0].shutdown(socket.SHUT_WR)
        assert _is_hung_up(links[0])
        assert doors.vault("GET", "health", tcp=True).status == 200


@pytest.mark.parametrize("said", [b"", b"GET /vault/v1/hea", HEALTH + b"GET /va"])
def test_strangers_who_ask_nothing_whole_are_hung_up_on(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """However slowly they go on: with nothing said, half a request, and half of a second one."""
    monkeypatch.setattr(serve, "HEAD_S", 0.05)
    with _connected(doors) as link:
        link.sendall(said)
        heard = b""
        while piece := link.recv(1000):
            heard += piece
    assert heard.count(b"HTTP/1.1") == said.count(b"\r\n\r\n")


def test_the_person_may_take_their_time(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """On their own socket nobody else can connect: a slow request is waited for."""
    monkeypatch.setattr(serve, "HEAD_S", 0.0)
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(LONGEST_S)
        link.connect(str(doors.http_socket))
        link.sendall(HEALTH[:20])
        assert doors.vault("GET", "health").status == 200
        link.sendall(HEALTH[20:])
        assert link.recv(15) == b"HTTP/1.1 200 OK"

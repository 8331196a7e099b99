"""The gate on real sockets: what is no request is no use, and only this user's processes get in at all."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pcpd.api import connection
from pcpd.gate import peer
from pcpd.gate.knock import BODY_LIMIT
from tests.conftest import World
from tests.doors import Doors
from tests.waiting import until


@pytest.mark.parametrize("is_chunked", [True, False])
def test_endless_body_ends_at_the_limit(doors: Doors, *, is_chunked: bool) -> None:
    """With or without a length; the connection is closed and the next request is served."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(60)
        link.connect(os.fspath(doors.http_socket))
        length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {BODY_LIMIT * 10}"
        link.sendall(f"PUT /vault/v1/pages/big HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n".encode())
        piece = b"x" * 65536
        chunk = b"10000\r\n" + piece + b"\r\n" if is_chunked else piece
        try:
            for _ in range(BODY_LIMIT // len(piece) + 200):
                link.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            assert not (doors.opened.root / "big.md").exists()
        else:
            assert link.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert doors.vault("GET", "health").status == 200
    assert not (doors.opened.root / "big.md").exists()


HEAD = b"GET /vault/v1/health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [(b"GET /vault/v1/status HTTP/1.1\r\n\r\n", 400), (b"GET /vault/v1/status HTTP/1.0\r\n\r\n", 421),
     (b"\x16\x03\x01\x02\x00\r\n\r\n", 400), (HEAD + b"Host: evil.example\r\n\r\n", 400),
     (b"GET http://evil.example/vault/v1/health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
     (b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
     (HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n", 400), (HEAD + b"x: a\nb\r\n y\x00: 1\r\n\r\n", 400),
     (HEAD + b"x: " + b"x" * 70_000, 400), (HEAD + b"x: " + b"x" * 40_000 + b"\r\n\r\n", 431),
     (HEAD + b"x: y\r\n" * 100 + b"\r\n", 431), (b"GET /" + b"x" * 40_000 + HEAD[20:] + b"\r\n", 414)],
    ids=["no host", "http 1.0", "tls", "two hosts", "absolute", "two lengths", "coding", "controls", "endless head",
         "long head", "many headers", "long url"],
)  # fmt: skip
def test_malformed_requests_are_refused(doors: Doors, request_: bytes, status: int) -> None:
    """None is served by guessing what it meant, and each is told so in the form of every refusal."""
    with socket.create_connection(("127.0.0.1", doors.port)) as link:
        link.settimeout(60)
        link.sendall(request_)
        head, _, body = link.recv(65536).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"content-type: application/problem+json" in head
    assert b"cache-control: no-store" in head
    assert json.loads(body)["status"] == status


def test_requests_behind_one_another_on_a_connection_are_each_judged(doors: Doors) -> None:
    """In their order, without waiting for answers; who is known for one is not known for the next."""
    ask = b"GET /vault/v1/context HTTP/1.1\r\nHost: localhost\r\n"
    token = f"Authorization: Bearer {doors.token()}\r\n".encode()
    last = b"Connection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", doors.port)) as link:
        link.settimeout(60)
        link.sendall(
            ask + token + b"\r\n" + ask + b"\r\n" + ask + token + b"\r\n" + HEAD + b"\r\n" + ask + last
        )
        said = b"".join(iter(lambda: link.recv(65536), b""))
    assert re.findall(rb"HTTP/1.1 (\d+) ", said) == [b"200", b"401", b"200", b"200", b"401"]


def test_who_has_shown_a_token_may_not_leave_a_request_half_said(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is one of so many; an idle one is kept, half a request is not waited for for ever."""
    monkeypatch.setattr(connection, "CALLER_HEAD_S", 0.05)
    token = f"Authorization: Bearer {doors.token()}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", doors.port)) as link:
        link.settimeout(60)
        link.sendall(HEAD.replace(b"health", b"context") + token)
        assert link.recv(65536).startswith(b"HTTP/1.1 200 ")
        with contextlib.suppress(ConnectionError):
            link.sendall(HEAD)
            assert link.recv(65536) == b""
    assert doors.vault("GET", "health", tcp=True).status == 200


def test_peer_is_known_by_the_kernel_s_word() -> None:
    """This process talks to itself: its own user, and no other."""
    one, other = socket.socketpair()
    with one, other:
        assert peer.is_of(one, os.geteuid())
        assert not peer.is_of(one, os.geteuid() + 1)
    assert not peer.is_of(one, os.geteuid())


@pytest.mark.skipif("os.geteuid() != 0", reason="needs setpriv, which is not installed here")
def test_other_users_get_no_word_even_where_the_mode_lets_them(doors: Doors) -> None:
    """Should folder and socket be opened by accident, the kernel still tells who connects."""
    doors.folder.chmod(0o755)
    code = (
        "import os, socket, sys\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1])\n"
        "try:\n    s.sendall(b'GET /vault/v1/health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "    print(s.recv(9))\nexcept OSError: print(b'')"
    )
    for path in (doors.http_socket, doors.relay_socket):
        path.chmod(0o666)
        said = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "b''"
    assert doors.vault("GET", "health").status == 200


def test_started_owner_listens_on_loopback_and_in_a_closed_folder_alone(world: World) -> None:
    """Its sockets are the person's alone, the port is bound to 127.0.0.1, and only health answers there."""
    vault = world.home / "vault"
    vault.mkdir()
    vault.joinpath("boiler.md").write_text("Gas or heat pump?\n")
    world.pcpd("init", vault)
    owner = world.start("--vault", vault, "run")
    assert owner.stderr
    url = owner.stderr.readline().split()[-1]
    port = int(url.rpartition(":")[2])
    (folder,) = {path.parent for path in Path(world.env["XDG_RUNTIME_DIR"]).rglob("socket")}
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("socket", "mcp.sock"):
        seen = (folder / name).stat()
        assert (seen.st_mode & 0o777, seen.st_uid) == (0o600, os.geteuid())
    assert listening_addresses(owner.pid) <= {("127.0.0.1", port)}
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"GET /vault/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = b"".join(iter(lambda: link.recv(65536), b""))
    health = json.loads(said.partition(b"\r\n\r\n")[2])
    assert (health["ok"], health["pid"]) == (True, owner.pid)
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"GET /vault/v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert link.recv(65536).startswith(b"HTTP/1.1 401 ")
    owner.terminate()
    until(lambda: owner.poll() is not None)
    owner.stderr.close()
    assert owner.stdout
    owner.stdout.close()


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """The TCP addresses on which a process listens (Linux; none elsewhere)."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            inodes.add(link.readlink().name.removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        file = Path(f"/proc/{pid}/net/{table}")
        for line in file.read_text().splitlines()[1:] if file.exists() else []:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                host = socket.inet_ntoa(bytes.fromhex(address)[::-1]) if table == "tcp" else f"[{address}]"
                found.add((host, int(port, 16)))
    return found

"""The two things that every client does on an owner's socket: connect to it safely, and ask a short question.

Written without `http.client`, so that the stdio relay stays small. Source: architecture.md, *The owner*.
"""

import json
import os
import socket
from pathlib import Path

from pcpd.errors import Denied
from pcpd.gate.peer import is_of

ANSWER_LIMIT = 1024 * 1024
PREFIX = "/vault/v1"


def connect(path: Path, timeout_s: float) -> socket.socket | None:
    """Connects to the Unix socket at `path`; gives None where nobody listens (a dead owner's file stays).

    Raises Denied (`owner.foreign`) when another user's process listens there, or may not be reached.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(timeout_s)
        link.connect(os.fspath(path))
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError, TimeoutError, BlockingIOError):
        link.close()
        return None
    except PermissionError as error:
        link.close()
        raise _foreign(path) from error
    except BaseException:
        link.close()
        raise
    if not is_of(link, os.getuid()):
        link.close()
        raise _foreign(path)
    return link


def ask(
    link: socket.socket, method: str, route: str, body: dict[str, object] | None = None
) -> dict[str, object]:
    """Sends one small request and gives the JSON object that answers it; closes the connection.

    Gives an empty object for anything else than a JSON object with status 200. Raises OSError when the owner
    dies meanwhile or does not answer in time.
    """
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {PREFIX}/{route} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with link:
        link.sendall(head.encode() + data)
        answer = _read_all(link)
    header, _, content = answer.partition(b"\r\n\r\n")
    if header.split(b" ", 2)[1:2] != [b"200"]:
        return {}
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _read_all(link: socket.socket) -> bytes:
    """Reads until the owner closes, or until the length it announced has come."""
    answer = b""
    while len(answer) < ANSWER_LIMIT and not _is_whole(answer):
        piece = link.recv(65536)
        if not piece:
            break
        answer += piece
    if not answer:
        raise ConnectionResetError("the owner closed the connection without an answer")
    return answer


def _is_whole(answer: bytes) -> bool:
    """Tells whether head and announced length are there."""
    head, found, body = answer.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n") if found else ():
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False


def _foreign(path: Path) -> Denied:
    return Denied(
        "owner.foreign",
        f"the socket {path} belongs to another user, so pcpd does not talk to it",
        hint="run pcpd as the user who owns the vault",
    )

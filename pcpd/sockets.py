"""The sockets that an owner listens on, and who is connected.

Two are Unix sockets that clients find by the vault's root, one is a port of this machine.

A Unix socket is only as good as its name: folders for sockets are cleared at logout and by cleaners of /tmp,
while the owner lives on. So it looks now and then whether clients still find it, and listens anew where they
look. Source: architecture.md, *The owner*.
"""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pcpd.errors import Broken


@dataclass
class Traffic:
    """Who is connected and when something last came, for owners that end when nobody needs them."""

    monotonic: Callable[[], float]
    open: int = 0
    last: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.last = self.monotonic()

    def change(self, by: int) -> None:
        """Notes that a connection or request began (+1) or ended (-1)."""
        self.open += by
        self.last = self.monotonic()

    def idle_s(self) -> float:
        """Seconds without anybody."""
        return 0.0 if self.open else self.monotonic() - self.last


class Listening:
    """A listening Unix socket of mode 0600. A file that a dead owner left is replaced: we hold the vault's lock."""

    def __init__(self, path: Path) -> None:
        """Listens at `path`, whose folder is private. Raises OSError."""
        self.path = path
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self.socket.bind(os.fspath(path))
        except OSError:
            self.socket.close()
            raise
        finally:
            os.umask(before)
        self.socket.listen(64)
        self.socket.setblocking(False)
        self._identity = _identity(path)

    def is_at(self, path: Path) -> bool:
        """Tells whether clients that look at `path` reach this socket."""
        return path == self.path and self._identity is not None and _identity(path) == self._identity

    def close(self) -> None:
        """Takes the name away, unless it is another socket's by now. Whoever serves the socket closes it."""
        if self.is_at(self.path):
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def loopback(port: int, tell: Callable[[str], None]) -> socket.socket:
    """Binds a port of 127.0.0.1; another free one, of which `tell` is told, where that one is taken."""
    # asyncio turns Nagle's delay off (40 ms an answer) only on sockets that name their protocol.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        if port == 0:
            raise Broken("http.no-port", f"no port can be had on 127.0.0.1: {error.strerror}") from error
        listening.bind(("127.0.0.1", 0))
        tell(f"port {port} is taken ({error.strerror}); another one is used")
    listening.listen(128)
    listening.setblocking(False)
    return listening


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""One HTTP connection: who may have one, for how long, and how what is said on it is sent."""

import asyncio
import os
import socket
from collections import Counter
from typing import Any

from pcpd.api.http1 import Http1
from pcpd.gate import peer
from pcpd.gate.knock import CALLER

MOST_STRANGERS = 128
MOST_CALLERS = 512
HEAD_S = 10.0
"""Seconds in which a stranger's next request must be whole."""
CALLER_HEAD_S = 60.0
"""The same for who has shown a token; longer than an idle connection is kept anyway."""
STUCK_S = 60.0
"""A client that takes nothing of an answer for so long has gone, whatever its connection says."""
JOINED_BYTES = 64 * 1024


class Connection(Http1):
    """One that hangs up on Unix socket peers that are another user's processes.

    Any user of this machine may connect to loopback. Who has shown no valid token there is a stranger: only so many
    of them are kept, and none on whose connection nothing is asked for a while, so that they cannot use up the
    files that the owner may open. Where one more comes, the one that has asked nothing for longest goes. The same
    holds for callers, where one goes of whoever has most that ask nothing; what is under way the gate bounds.
    """

    is_local = False
    """Whether it came by the person's own socket."""
    waiting_since = 0.0
    _called: object | None = None
    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Looks at who connected before a byte is read."""
        link = transport.get_extra_info("socket")
        self.is_local = link is not None and link.family == socket.AF_UNIX
        if link is None or not (peer.is_of(link, os.geteuid()) if self.is_local else self._finds_room()):
            self.transport = transport  # what ends the connection looks at it
            transport.abort()
            return
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing more."""
        for timer in (self._timer, self._stuck):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Waits for the client to take what was sent; the rest of the answer waits with it."""
        super().pause_writing()
        self._stuck = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Goes on."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        self._called = self.caller
        super().on_response_complete()
        self._wait()

    @property
    def caller(self) -> object | None:
        """Gives whose valid token came with a request on this connection, past or under way, if any (see `Gate`)."""
        now = self.cycle.scope["state"].get(CALLER) if self.cycle is not None else None
        return now if now is not None else self._called

    def hang_up(self) -> None:
        """Cuts the connection."""
        self.transport.abort()
        self.connections.discard(self)

    def _finds_room(self) -> bool:
        """Tells whether there is room for one more on loopback; hangs up on somebody for it."""
        others = [each for each in self.connections if isinstance(each, Connection) and not each.is_local]
        strangers = [each for each in others if each.caller is None]
        callers = [each for each in others if each.caller is not None]
        if len(strangers) >= MOST_STRANGERS and not _makes_room(strangers):
            return False
        return len(callers) < MOST_CALLERS or _makes_room(callers)

    def _wait(self) -> None:
        """Hangs up on who has no whole request after a while, however slowly it goes on coming; the person may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.waiting_since = self.loop.time()
        if not self.is_local:
            within_s = HEAD_S if self._called is None else CALLER_HEAD_S
            self._timer = self.loop.call_later(within_s, self._give_up)

    def _give_up(self) -> None:
        if self.is_waiting:
            self.hang_up()


def _makes_room(connections: list[Connection]) -> bool:
    """Hangs up on one on which nothing is asked, of whoever has most of these; False where there is none."""
    idle = [each for each in connections if each.is_waiting]
    if not idle:
        return False
    ((whose, _),) = Counter(each.caller for each in idle).most_common(1)
    min((each for each in idle if each.caller == whose), key=lambda each: each.waiting_since).hang_up()
    return True


class _Joined:
    """A transport that sends an answer's head and its body together, where they come in one turn of the loop.

    uvicorn writes them apart: a system call and a packet more for each answer. All else is the transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """Sends `data`; what looks like a head waits for what follows it, to the end of this turn at most."""
        if self._head:
            if len(data) <= JOINED_BYTES:
                data, self._head = self._head + data, b""
            else:
                self._flush()
        elif data.startswith(b"HTTP/"):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Sends what waits, and closes."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

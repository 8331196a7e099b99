"""The stdio relay, `pcpd mcp`: lines between an MCP client and whoever owns the vault now.

It loads neither SDK nor framework, and one thread does all: it never waits but in `poll`, so that the death
of its client is seen at any time, also while an owner starts. To the owner's `mcp.sock` it says who it is in
one line, `{"pcpd": version, "principal": …, "token": …}`; then lines of JSON-RPC go both ways. An owner that
refuses answers with a line `{"pcpd": version, "error": {"code", "message", "hint"}}` (one that accepts need
not answer, or says `{"pcpd": version}`). Source: architecture.md, *The owner*.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pcpd import __version__
from pcpd.client import owner, session, wire
from pcpd.client.owner import Owner, Start
from pcpd.client.session import Session
from pcpd.errors import PcpError, Unavailable
from pcpd.settings import MCP_SOCKET, Settings

LINE_BYTES = 15 * 1024 * 1024  # of a client; the owner takes 16 MiB, a key of ours included
ANSWER_BYTES = 256 * 1024 * 1024
BUFFER_BYTES = 4 * 1024 * 1024
STEP_MS = 20
LOOK_S = 2.0  # between two looks for an owner where nobody asks, but the client wants to hear of changes
FAREWELL_S = 10.0  # how long answers are still awaited after standard input has ended


@dataclass(frozen=True, slots=True)
class Credential:
    """Who the client says it is, and how it proves it."""

    principal: str
    token: str


class Lines:
    """Cuts a stream into lines; a line that is too long is dropped and counted."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes, without the newline."""
        self._limit, self._rest, self._is_skipping = limit, bytearray(), False
        self.too_long = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Takes the next bytes; gives the lines that they end."""
        *whole, last = data.split(b"\n")
        lines = []
        for piece in whole:
            self._add(piece)
            if not self._is_skipping:
                lines.append(bytes(self._rest))
            self._rest.clear()
            self._is_skipping = False
        self._add(last)
        return lines

    def rest(self) -> bytes:
        """Gives what came after the last newline."""
        return bytes(self._rest)

    def _add(self, piece: bytes) -> None:
        if self._is_skipping:
            return
        self._rest += piece
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._is_skipping = True
            self.too_long += 1


class Relay:
    """One client's relay, from its start until its standard input ends."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        environ: Mapping[str, str],
        credential: Credential,
        *,
        stdin: int = 0,
        stdout: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares; `run` does all else. `clock` gives seconds that only grow."""
        self._root, self._settings, self._environ, self._credential = root, settings, environ, credential
        self._stdin, self._stdout, self._clock = stdin, stdout, clock
        self._session = Session(lambda: os.urandom(16).hex())
        self._client_lines, self._owner_lines = Lines(LINE_BYTES), Lines(ANSWER_BYTES)
        self._to_owner, self._to_client = bytearray(), bytearray()
        self._link: socket.socket | None = None
        self._start: Start | None = None
        self._ended_at: float | None = None
        self._has_heard = False
        self._look_at = 0.0

    def run(self) -> None:
        """Relays until the client is gone. Raises nothing that an owner did: the client is told."""
        self._begin()
        try:
            while not self._is_over():
                self._seek_owner()
                self._wait()
        finally:
            self._leave()
            if self._start:
                self._start.close()

    def _is_over(self) -> bool:
        """Tells whether the client has gone, or has said all and heard all."""
        if self._ended_at is None:
            return False
        is_quiet = not self._session.is_waiting and not self._to_client and not self._to_owner
        return is_quiet or self._clock() - self._ended_at > FAREWELL_S

    def _begin(self) -> None:
        """Starts to look for an owner."""
        self._start = Start(self._root, self._settings, self._environ, self._clock)

    def _seek_owner(self) -> None:
        """Takes one step towards an owner where there is none and somebody waits for it."""
        if self._link is not None:
            return
        if self._start is None and self._session.is_waiting:
            self._begin()
        try:
            if self._start is not None:
                self._connect(self._start.step())
            elif self._session.is_listening and self._clock() >= self._look_at:
                self._look_at = self._clock() + LOOK_S
                self._connect(owner.find(self._root, self._settings))
        except PcpError as error:
            self._give_up(error)
        except OSError as error:
            self._give_up(Unavailable("vault.vanished", f"cannot look at {self._root}: {error.strerror}"))

    def _connect(self, found: Owner | None) -> None:
        """Connects to an owner, if it serves MCP now."""
        link = wire.connect(found.folder / MCP_SOCKET, 1.0) if found else None
        if link is None:
            return
        link.setblocking(False)
        self._link, self._start, self._has_heard = link, None, False
        self._owner_lines = Lines(ANSWER_BYTES)
        greeting = {
            "pcpd": __version__,
            "principal": self._credential.principal,
            "token": self._credential.token,
        }
        self._to_owner = bytearray(
            json.dumps(greeting).encode() + b"\n" + b"".join(self._session.connected())
        )

    def _give_up(self, error: PcpError) -> None:
        """Tells the client why nobody answers; its next message makes another attempt."""
        if self._start:
            self._start.close()
        self._start = None
        message = f"{error.message}. {error.hint}" if error.hint else error.message
        data = {"code": error.code, "hint": error.hint}
        self._to_client += b"".join(self._session.give_up(message, data))

    def _refused(self, error: PcpError) -> None:
        """Tells a client whose token is not good how it can have one; passes other refusals on as errors."""
        if error.code != "token.refused":
            self._give_up(error)
            return
        self._to_client += b"".join(self._session.turn_away(f"{error.message}. {error.hint}".strip()))

    def _wait(self) -> None:
        """Waits until something can be read or written, and does that."""
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT if self._to_client else 0)
        if self._ended_at is None:
            has_room = max(len(self._to_owner), len(self._to_client)) < BUFFER_BYTES
            has_room = has_room and self._session.backlog < LINE_BYTES
            poll.register(self._stdin, select.POLLIN if has_room else 0)
        if self._link:
            wanted = select.POLLOUT if self._to_owner else 0
            wanted |= select.POLLIN if len(self._to_client) < BUFFER_BYTES else 0
            poll.register(self._link, wanted)
        is_hurried = self._start is not None or self._ended_at is not None
        is_looking = self._link is None and self._session.is_listening
        for number, event in poll.poll(STEP_MS if is_hurried else LOOK_S * 1000 if is_looking else None):
            if number == self._stdout:
                self._write_to_client(event)
            elif number == self._stdin:
                self._read_from_client()
            else:
                self._exchange_with_owner(event)

    def _read_from_client(self) -> None:
        """Takes what the client said, or notes that it has said all."""
        data = os.read(self._stdin, 65536)
        too_long = self._client_lines.too_long
        lines = self._client_lines.feed(data)
        if not data:
            self._ended_at = self._clock()
            lines = [self._client_lines.rest()]
        for line in lines:
            out = self._session.from_client(line)
            self._to_owner += b"".join(out.to_owner)
            self._to_client += b"".join(out.to_client)
        for _ in range(self._client_lines.too_long - too_long):
            why = f"a message is longer than {LINE_BYTES} bytes"
            self._to_client += session.failure(None, session.INVALID_REQUEST, why)

    def _write_to_client(self, event: int) -> None:
        """Writes a piece, as much as never waits; a client that reads no more is gone."""
        if event & (select.POLLERR | select.POLLNVAL | select.POLLHUP):
            raise BrokenPipeError
        if self._to_client:
            written = os.write(self._stdout, self._to_client[: select.PIPE_BUF])
            del self._to_client[:written]

    def _exchange_with_owner(self, event: int) -> None:
        """Sends and receives what there is; an owner that closes the connection has ended."""
        if self._link is None:
            return
        try:
            if event & select.POLLOUT:
                sent = self._link.send(self._to_owner)
                del self._to_owner[:sent]
            if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                data = self._link.recv(65536)
                if not data:
                    raise ConnectionResetError
                self._hear(data)
        except BlockingIOError:
            return
        except OSError:
            self._leave()

    def _hear(self, data: bytes) -> None:
        """Passes on what the owner said."""
        for line in self._owner_lines.feed(data):
            if not self._has_heard and (refusal := _refusal(line)):
                self._leave()
                self._refused(refusal)
                return
            self._has_heard = True
            out = self._session.from_owner(line)
            self._to_owner += b"".join(out.to_owner)
            self._to_client += b"".join(out.to_client)

    def _leave(self) -> None:
        """Closes the connection; what may not be asked again is answered with an error."""
        if self._link is None:
            return
        self._link.close()
        self._link = None
        self._to_owner.clear()
        self._to_client += b"".join(self._session.lost())


def _refusal(line: bytes) -> PcpError | None:
    """Gives why an owner does not take us, if that is what its first line says."""
    try:
        answer = json.loads(line)
        if "jsonrpc" in answer:
            return None
        said = answer["error"]
        return Unavailable(str(said["code"]), str(said["message"]), hint=str(said.get("hint") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

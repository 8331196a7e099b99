"""Sessions of MCP over HTTP, for the protocol versions with a handshake: whose each is, how many, and when one ends.

The SDK's transport serves each; its session manager is not used here, since it knows no bound for one client, no
revoked token, and nobody to tell when a session has ended. A session belongs to the token that opened it: for any
other it does not exist.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import CancelScope
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.runner import serve_loop
from mcp.server.streamable_http import StreamableHTTPServerTransport

from pcpd.gate.knock import Message, Receive, Scope, Send
from pcpd.mcp_server.server import Served, options
from pcpd.mcp_server.subscriptions import Subscriptions

log = logging.getLogger("pcpd")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many sessions there may be, and for how long one may be idle (seconds).

    Over `most_of_one`, a principal's, the one of theirs that was idle for longest ends.
    """

    most: int = 512
    most_of_one: int = 64
    idle_s: float = 30 * 60.0


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who opened a session: the principal, and the token by which they did."""

    principal: str
    token: str = field(repr=False)


@dataclass
class Session:
    """One session. `busy` counts its requests and streams under way; `used` grows with each request.

    `asked` are the ids of requests under way, as text: the transport tells `1` and `"1"` not apart, and would leave
    the first of two requests of one id without an answer for ever.
    """

    bearer: Bearer
    transport: StreamableHTTPServerTransport
    server: Served
    subscriptions: Subscriptions
    busy: int = 0
    used: int = 0
    asked: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        """The session's id, which the client sends with each request."""
        return self.transport.mcp_session_id or ""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Has the transport answer one request of this session."""
        self.busy += 1
        try:
            await self.transport.handle_request(scope, receive, send)
        finally:
            self.busy -= 1


class Sessions:
    """The sessions of one owner, on one event loop. `make` gives what serves one, `new_id` a word nobody can guess."""

    def __init__(
        self,
        make: Callable[[], tuple[Served, Subscriptions]],
        new_id: Callable[[], str],
        limits: Limits,
    ) -> None:
        self._make, self._new_id, self._limits = make, new_id, limits
        self._open: dict[str, Session] = {}
        self._uses = 0
        self._tasks: TaskGroup | None = None

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def begin(self, tasks: TaskGroup) -> None:
        """Serves sessions in `tasks` from now on."""
        self._tasks = tasks

    def find(self, id_: str, bearer: Bearer) -> Session | None:
        """Gives a session of this bearer; None for one of another, as for one that never was."""
        session = self._open.get(id_)
        if session is None or session.bearer != bearer:
            return None
        self._uses += 1
        session.used = self._uses
        return session

    def bearers(self) -> set[Bearer]:
        """Gives who has sessions."""
        return {session.bearer for session in self._open.values()}

    async def open(self, bearer: Bearer, scope: Scope, receive: Receive, send: Send) -> bool:
        """Opens a session by the request that asks for it; False where there is no room.

        One whose opening request fails is forgotten again.
        """
        if self._tasks is None or not await self._has_room(bearer):
            return False
        server, subscriptions = self._make()
        transport = StreamableHTTPServerTransport(
            self._new_id(), is_json_response_enabled=True, idle_timeout=self._limits.idle_s
        )
        session = Session(bearer, transport, server, subscriptions)
        self._open[session.id] = session
        self.find(session.id, bearer)
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._tasks.start(self._serve, session)
            await session.handle(scope, receive, watched)
        finally:
            if not 200 <= status < 300:
                await self.end(session)
        return True

    async def end(self, session: Session) -> None:
        """Ends a session and its streams: whoever still names it learns that there is none."""
        self._open.pop(session.id, None)
        if not session.transport.is_terminated:
            await asyncio.shield(asyncio.ensure_future(session.transport.terminate()))

    async def end_of(self, bearer: Bearer) -> None:
        """Ends the sessions of a token that is good no more."""
        for session in [each for each in self._open.values() if each.bearer == bearer]:
            await self.end(session)

    async def _has_room(self, bearer: Bearer) -> bool:
        mine = [each for each in self._open.values() if each.bearer.principal == bearer.principal]
        if len(mine) >= self._limits.most_of_one:
            idle = [each for each in mine if not each.busy]
            if not idle:
                return False
            await self.end(min(idle, key=lambda each: each.used))
        return len(self._open) < self._limits.most

    async def _serve(self, session: Session, *, task_status: TaskStatus[None]) -> None:
        """Serves one session until it ends, by its client's wish, for idleness, or with the owner."""
        transport = session.transport
        async with transport.connect() as (read_stream, write_stream):
            task_status.started()
            try:
                with transport.idle_scope or CancelScope():
                    await serve_loop(
                        session.server,
                        read_stream,
                        write_stream,
                        lifespan_state={},
                        session_id=session.id,
                        init_options=options(session.server),
                    )
            except Exception:
                log.exception("a session of MCP over HTTP met a fault")
            finally:
                await session.subscriptions.close()
                await self.end(session)

"""MCP over streamable HTTP: one endpoint, whose callers the gate has told apart before a request gets here.

Versions with a handshake have sessions (`sessions`); since 2026-07-28 each request stands alone, and the SDK's own
manager serves it. What the SDK does not do stands in front of both: JSON arrays, which are part of 2025-03-26, are
taken apart and answered (`batches`), and a request that could only wait for ever is answered at once.

The SDK's middleware for tokens is not used: the gate checks the token of every request, here as for the API, on
both sockets, and writes refusals down. What lasts longer than a request asks our `verifier` again.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from typing import cast

import mcp_types as types
from anyio import create_task_group
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from pcpd.errors import Denied
from pcpd.gate import arrays
from pcpd.gate.knock import BODY_LIMIT, CALLER, Message, Receive, Scope, Send
from pcpd.gate.threads import Threads
from pcpd.ledger import tokens
from pcpd.mcp_server import batches
from pcpd.mcp_server.asking import Asking, Context
from pcpd.mcp_server.server import Served, build
from pcpd.mcp_server.sessions import Bearer, Limits, Session, Sessions
from pcpd.mcp_server.subscriptions import Streams, Subscriptions
from pcpd.mcp_server.verifier import Verifier
from pcpd.mcp_server.watch import listened
from pcpd.memory.memory import Caller, Memory
from pcpd.policy.decide import Principal

AT_A_TIME = 8
"""Acts of one principal that run at a time where requests stand alone."""
OPENING_LIMIT = 256 * 1024
"""Bytes of a request that opens a session."""
LOOKED_AT = 256 * 1024
"""Bytes of a message whose id is looked at here."""
LOOK_GAP_S = 0.2
"""Between two looks at which tokens are still good."""
ALLOWED = "GET, POST, DELETE"
_LIMITS = Limits()


class HttpDoor:
    """The MCP endpoint of one owner, an ASGI app. `threads` are those on which acts run."""

    def __init__(self, memory: Memory, threads: Threads, limits: Limits = _LIMITS) -> None:
        self._memory, self._threads = memory, threads
        self._verifier = Verifier(memory, threads)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._streams = Streams()
        self._sessions = Sessions(self._made, lambda: memory.ledger.entropy(16).hex(), limits)
        alone = Asking(memory, self._who, threads, turn=self._turn)
        self._alone = StreamableHTTPSessionManager(
            build(alone, Subscriptions(alone, self._streams, _principal)),
            json_response=True,
            max_request_body_size=BODY_LIMIT,
        )
        self._opened, self._is_closed = asyncio.Event(), False

    async def serve(self) -> None:
        """Keeps sessions and streams until cancelled; then all of them end."""
        async with self._alone.run(), create_task_group() as tasks:
            self._sessions.begin(tasks)
            self._opened.set()
            try:
                await self._end_revoked()
            finally:
                self._is_closed = True
                self._streams.ended.set()
                tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request of a caller that the gate knows; one that comes early waits."""
        await self._opened.wait()
        version = _header(scope, b"mcp-protocol-version")
        if self._is_closed:
            await _refuse(send, 503, types.INTERNAL_ERROR, "the owner is shutting down")
        elif version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._alone.handle_request(scope, receive, send)
        else:
            await self._with_session(scope, receive, send)

    async def _with_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request of a version with a handshake."""
        bearer = _bearer(scope)
        id_ = _header(scope, b"mcp-session-id")
        if scope["method"] not in ALLOWED.split(", "):
            await _refuse(send, 405, types.INVALID_REQUEST, "this method is not served", allow=ALLOWED)
            return
        session = self._sessions.find(id_, bearer) if id_ is not None else None
        if id_ is not None and session is None:
            await _refuse(send, 404, types.INVALID_REQUEST, "there is no such session: begin with initialize")
        elif scope["method"] != "POST":
            if session is None:
                await _refuse(send, 400, types.INVALID_REQUEST, "the header Mcp-Session-Id is missing")
                return
            await session.handle(scope, receive, send)
            if session.transport.is_terminated:
                await self._sessions.end(session)
        else:
            await self._post(scope, receive, send, session)

    async def _post(self, scope: Scope, receive: Receive, send: Send, session: Session | None) -> None:
        body = await _whole(receive)
        if body is None:
            return  # the client went away, or was refused
        again = partial(_again, iter([body]), receive)
        if session is None:
            if not _opens(body):
                await _refuse(send, 400, types.INVALID_REQUEST, "the header Mcp-Session-Id is missing")
            elif not await self._sessions.open(_bearer(scope), scope, again, send):
                await _refuse(send, 503, types.INTERNAL_ERROR, "too many sessions are open")
        elif batches.is_batch(body):
            status, answer = await batches.answered(body, partial(_asked, session, scope))
            await _say(send, status, answer, ("mcp-session-id", session.id))
        else:
            await _handed(session, scope, again, send, _id_in(body))

    def _made(self) -> tuple[Served, Subscriptions]:
        asking = Asking(self._memory, self._who, self._threads)
        subscriptions = Subscriptions(asking, Streams())
        return build(asking, subscriptions), subscriptions

    def _who(self, ctx: Context) -> Caller:
        """Gives who sent a request, as its token is good now: one that began a stream may be long past."""
        token = _token(_scope(ctx))
        principal = tokens.verify(self._memory.ledger, token)
        if principal is None:
            raise Denied(
                "token.refused",
                "this token is not valid any more",
                hint="the person can make a new one with `pcpd connect` or `pcpd token create`",
            )
        self._memory.brakes.check(principal)
        return Caller(Principal(principal), "mcp")

    def _turn(self, ctx: Context) -> asyncio.Semaphore:
        return self._turns.setdefault(_principal(ctx), asyncio.Semaphore(AT_A_TIME))

    async def _end_revoked(self) -> None:
        """Ends the sessions whose token was taken back or whose principal is paused, until cancelled."""
        woken = asyncio.Event()
        unlisten = listened(self._memory, woken)
        try:
            while True:
                await woken.wait()
                woken.clear()
                for bearer in self._sessions.bearers():
                    is_good = self._memory.brakes.since(bearer.principal) is None
                    if not is_good or await self._verifier.verify_token(bearer.token) is None:
                        await self._sessions.end_of(bearer)
                await asyncio.sleep(LOOK_GAP_S)
        finally:
            unlisten()


def _principal(ctx: Context) -> str:
    return _bearer(_scope(ctx)).principal


def _scope(ctx: Context) -> Scope:
    return cast("Scope", getattr(ctx.request, "scope", {}))


def _token(scope: Scope) -> str:
    """Gives the bearer token of a request that the gate has let in."""
    return (_header(scope, b"authorization") or "").partition(" ")[2].strip(" ")


def _bearer(scope: Scope) -> Bearer:
    caller: Caller = scope["state"][CALLER]
    return Bearer(caller.principal.name, _token(scope))


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name), None)


def _opens(body: bytes) -> bool:
    """Tells whether a body is the one request that may come without a session."""
    if len(body) > OPENING_LIMIT:
        return False
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("method") == "initialize"


async def _whole(receive: Receive) -> bytes | None:
    """Gives a request's body, which the gate bounds; None where the client goes away meanwhile."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


async def _again(bodies: Iterator[bytes], receive: Receive) -> Message:
    """Gives a body that was read already once more, then what comes after it."""
    body = next(bodies, None)
    return await receive() if body is None else {"type": "http.request", "body": body, "more_body": False}


async def _handed(session: Session, scope: Scope, receive: Receive, send: Send, number: object) -> None:
    """Has a session answer one message; `number` is its id, where it is a request."""
    if number is None:
        await session.handle(scope, receive, send)
        return
    key = str(number)
    if key in session.asked:
        await _refuse(send, 400, types.INVALID_REQUEST, "this id is that of another request", number=number)
        return
    session.asked.add(key)
    try:
        await session.handle(scope, receive, send)
    finally:
        session.asked.discard(key)


def _id_in(body: bytes) -> object:
    """Gives the id of the request in a body, if it is one; of a large one it is not looked for."""
    if len(body) > LOOKED_AT:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return message.get("id") if isinstance(message, dict) and "method" in message else None


async def _asked(session: Session, scope: Scope, message: arrays.Message) -> bytes | None:
    """Has one message of an array served as if it had come alone; gives its answer."""
    pieces: list[bytes] = []

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def collect(said: Message) -> None:
        pieces.append(said.get("body", b""))

    again = partial(_again, iter([json.dumps(message).encode()]), gone)
    await _handed(session, {**scope}, again, collect, message.get("id") if "method" in message else None)
    return b"".join(pieces) or None


async def _refuse(
    send: Send, status: int, code: int, message: str, *, number: object = None, allow: str = ""
) -> None:
    """Answers with an error of JSON-RPC, to the request of that number if there is one."""
    body = json.dumps(arrays.error(number if arrays.is_id(number) else None, message, code)).encode()
    await _say(send, status, body, ("allow", allow))


async def _say(send: Send, status: int, body: bytes, header: tuple[str, str]) -> None:
    named = [(header[0].encode(), header[1].encode())] if header[1] else []
    kind = [(b"content-type", b"application/json")] if body else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*named, *kind, length]})
    await send({"type": "http.response.body", "body": body})

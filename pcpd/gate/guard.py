"""The gate in front of every HTTP door: before any route runs it decides whether a request may pass.

It also finds out who calls (`credentials`): on every route but a short list of open ones a request must show a token,
or come by the owner's Unix socket (0600, same user by peer credentials), which makes it the person's. Every refusal
is noted for the audit trail.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pcpd.errors import Denied, PcpError, Unavailable, Usage
from pcpd.gate.knock import (
    BODY_LIMIT,
    CALLER,
    OPEN_ROUTES,
    App,
    Knock,
    Message,
    Receive,
    Refused,
    Scope,
    Send,
    knock_of,
    refusal,
    too_large,
    wrong_kind,
)
from pcpd.memory.brakes import PausedError

BODY_S = 30.0
"""Seconds in which a body must be whole that comes over loopback, where it takes milliseconds."""

MOST_UNDER_WAY = 128
"""Requests of one caller that are under way at a time over loopback, where connections are few. Streams count."""

Refusal = Callable[[PcpError, int], App]


class Doorkeeper(Protocol):
    """What the gate needs to know who calls, and to have refusals written down."""

    async def caller(self, knock: Knock) -> object:
        """Gives who knocks. Raises `Denied`."""

    async def note(self, knock: Knock, error: PcpError, caller: object | None) -> None:
        """Has a refusal written down; `caller` where it is known."""


class Gate:
    """The ASGI layer in front of an app; `refuse` makes the answer for what may not pass.

    The app finds who calls in `scope["state"]`.
    """

    def __init__(self, app: App, refuse: Refusal, keeper: Doorkeeper) -> None:
        self._app, self._refuse, self._keeper = app, refuse, keeper
        self._under_way: Counter[object] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes an HTTP request on, or refuses it. Nothing else is served: a WebSocket is hung up on."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        knock, state = knock_of(scope), scope.setdefault("state", {})
        if scope["path"] != knock.path:
            scope = {**scope, "path": knock.path}  # the server goes on with its own
        caller, refused = await self._judged(knock)

        async def refuse(why: Refused) -> None:
            await self._keeper.note(knock, why[0], caller)
            await self._refuse(*why)(scope, receive, send)

        if refused is not None:
            await refuse(refused)
            return
        if caller is not None:
            state[CALLER] = caller
        with self._counted(None if knock.is_local else caller):
            if not knock.has_body:
                await self._app(scope, receive, send)
                return
            body = _Body(receive, send, refuse, None if knock.is_local else BODY_S)
            await self._app(scope, body.receive, body.send)

    async def _judged(self, knock: Knock) -> tuple[object | None, Refused | None]:
        """Gives who calls, if that is known, and why the request may not pass, if it may not."""
        refused = refusal(knock)
        if refused is not None or knock.path in OPEN_ROUTES:
            return None, refused
        try:
            caller = await self._keeper.caller(knock)
        except Denied as error:
            return None, (error, 403 if isinstance(error, PausedError) else 401)
        if not knock.is_local and self._under_way[caller] >= MOST_UNDER_WAY:
            return caller, _too_many()
        return caller, wrong_kind(knock)

    @contextmanager
    def _counted(self, caller: object | None) -> Iterator[None]:
        """Counts one more request of a caller, if there is one, for a while."""
        self._under_way[caller] += caller is not None
        try:
            yield
        finally:
            self._under_way[caller] -= caller is not None
            if not self._under_way[caller]:
                del self._under_way[caller]


class _Body:
    """Counts a request's body as it comes, for those that say no length, and waits for it only so long.

    Over a limit the request is refused at once; the app then sees a client that has gone, and whatever it
    still says is dropped.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        refuse: Callable[[Refused], Awaitable[None]],
        within_s: float | None,
    ) -> None:
        self._receive, self._send, self._refuse = receive, send, refuse
        self._ends_at = None if within_s is None else asyncio.get_running_loop().time() + within_s
        self._seen, self._is_whole, self._is_refused = 0, False, False

    async def receive(self) -> Message:
        """Gives the next piece of the body, and after its end what else the server says."""
        if self._is_refused:
            return {"type": "http.disconnect"}
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._ends_at):
                message = await self._receive()
        except TimeoutError:
            return await self._refused(_too_slow())
        self._is_whole = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        return await self._refused(too_large()) if self._seen > BODY_LIMIT else message

    async def send(self, message: Message) -> None:
        """Passes on what the app answers, unless the request was refused."""
        if not self._is_refused:
            await self._send(message)

    async def _refused(self, why: Refused) -> Message:
        self._is_refused = True
        await self._refuse(why)
        return {"type": "http.disconnect"}


def _too_many() -> Refused:
    hint = "ask again when some have been answered"
    return Unavailable("http.too-many", f"{MOST_UNDER_WAY} requests of yours are under way", hint=hint), 503


def _too_slow() -> Refused:
    return Usage(
        "http.too-slow", f"the body was not whole after {BODY_S:g} s", hint="send it again, without pauses"
    ), 408

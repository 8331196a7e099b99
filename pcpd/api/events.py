"""The route of changes: a stream of server-sent events, which goes on where its reader left off.

Each look at what is new asks again who the caller is and what they may see: a token that is taken back, or a
grant that ends, ends the stream. Source: WHATWG HTML, *Server-sent events*.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Query, Request, Response

from pcpd.api.answers import answer
from pcpd.api.caller import CallerOf, OwnerOf, Served, in_thread
from pcpd.api.streams import Streams, Waiting
from pcpd.errors import Denied, Unavailable
from pcpd.gate.knock import Receive, Scope, Send, knock_of
from pcpd.memory.following import Given, close_stream, next_news, open_stream
from pcpd.memory.memory import Caller
from pcpd.memory.subscribe import News

CURSOR_LIMIT = 200
BATCH = 100
PAUSE_S = 0.1
"""Between two looks: a burst of changes is told in few steps."""
GOODBYE_S = 0.5
BEAT = b":\n\n"

router = APIRouter()

Cursor = Annotated[str | None, Query(max_length=CURSOR_LIMIT)]
LastEventId = Annotated[str | None, Header(max_length=CURSOR_LIMIT)]


@router.get("/events")
async def events(
    request: Request,
    owner: OwnerOf,
    caller: CallerOf,
    after: Cursor = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Tells changes of pages as they happen, each as far as the caller may see it.

    A stream begins with `ready`, whose id is the cursor that it starts from: the one in `Last-Event-ID` or
    `after`, else the present one. Then come `created`, `changed` and `removed`, and `reset` where what happened
    cannot be told: list the pages again then. The id of each is the cursor after it. A page that is moved is
    removed and created.
    """
    streams = cast("Streams", request.app.state.streams)
    return Stream(owner, streams, caller, last_event_id or after or None)


class Stream(Response):
    """An answer that ends when the reader goes, may not read any more, or the owner ends."""

    media_type = "text/event-stream"

    def __init__(self, owner: Served, streams: Streams, caller: Caller, cursor: str | None) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._owner, self._streams, self._caller, self._cursor = owner, streams, caller, cursor
        self._given = Given()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the stream from its opening to its end."""
        memory, caller = self._owner.memory, self._caller
        with self._streams.place(caller.principal.name) as waiting:
            news = await in_thread(
                self._owner, lambda: open_stream(memory, caller, self._cursor, limit=BATCH)
            )
            opened_at = memory.clock.monotonic()
            try:
                await self._serve(receive, send, asyncio.create_task(self._tell(scope, send, waiting, news)))
            finally:
                seconds = memory.clock.monotonic() - opened_at
                await self._streams.threads.run(
                    lambda: close_stream(memory, caller, self._given, seconds=seconds)
                )

    async def _serve(self, receive: Receive, send: Send, telling: asyncio.Task[None]) -> None:
        gone = asyncio.create_task(_gone(receive))
        tasks: set[asyncio.Future[Any]] = {telling, gone, asyncio.ensure_future(self._owner.until())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            is_gone, has_told = gone.done(), telling.done()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if has_told:
            telling.result()
        if not is_gone:
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, scope: Scope, send: Send, waiting: Waiting, news: News) -> None:
        """Tells until the caller may not be told any more, or takes nothing."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        cursor = news.cursor if news.is_reset or self._cursor is None else self._cursor
        frames = _frame("ready", cursor, {"cursor": cursor})
        found: News | None = news
        while found is not None:
            self._given.add(found)
            frames += _frames(found)
            if frames:
                await send({"type": "http.response.body", "body": frames, "more_body": True})
            frames = b""
            if len(found.events) < BATCH:
                await asyncio.sleep(PAUSE_S)
                frames = BEAT if await waiting.sleep() else b""
            found = await self._look(scope, found.cursor)

    async def _look(self, scope: Scope, cursor: str) -> News | None:
        """Gives what is new for the caller as they are now; None where they are told nothing any more."""
        try:
            caller = await self._streams.credentials.caller(knock_of(scope))
            return await self._streams.threads.run(
                lambda: next_news(self._owner.memory, caller, cursor, limit=BATCH)
            )
        except (Denied, Unavailable):
            return None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _frames(news: News) -> bytes:
    reset = [_frame("reset", news.cursor, {"cursor": news.cursor})] if news.is_reset else []
    return b"".join([*reset, *(_frame(event.kind, event.id, asdict(event)) for event in news.events)])


def _frame(kind: str, cursor: str, data: Mapping[str, object]) -> bytes:
    """Gives one event. Its data is JSON, which has no line breaks."""
    return f"id: {cursor}\nevent: {kind}\ndata: ".encode() + answer(data).body + b"\n\n"

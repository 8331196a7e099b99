"""Change notices: `resources/subscribe` of the versions with a handshake, and `subscriptions/listen` of later ones.

Both ask policy at every notice, for the caller as they are then: when their token is revoked, notices end.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import mcp_types as types
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourceUpdated,
    ServerEvent,
    event_to_notification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pcpd.errors import Denied, PcpError, Usage
from pcpd.mcp_server.asking import Asking, Context, as_error
from pcpd.mcp_server.uris import no_resource
from pcpd.mcp_server.watch import MOST_LETTERS, MOST_URIS, Wanted, Watch
from pcpd.memory.following import note_subscription
from pcpd.memory.memory import Caller, Memory

MOST_STREAMS = 16
"""Listen streams of one connection, or of one principal where requests stand alone."""

log = logging.getLogger("pcpd")


class Streams:
    """Counts the listen streams that are open, by whose they are, and ends them all."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._open: dict[str, int] = {}

    @contextmanager
    def counted(self, whose: str) -> Iterator[None]:
        """Counts one more for a while. Raises `Usage` (`resource.too-many`)."""
        if self._open.get(whose, 0) >= MOST_STREAMS:
            raise Usage("resource.too-many", f"{MOST_STREAMS} streams are open", hint="close one first")
        self._open[whose] = self._open.get(whose, 0) + 1
        try:
            yield
        finally:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]


class Subscriptions:
    """The handlers of one connection, or of a door whose requests stand alone. `close` ends what it tells.

    `whose` says by what listen streams are counted; nothing where that is the connection.
    """

    def __init__(
        self, asking: Asking, streams: Streams, whose: Callable[[Context], str] = lambda _ctx: ""
    ) -> None:
        self._asking, self._streams, self._whose = asking, streams, whose
        self._watch: Watch | None = None
        self._beginning = asyncio.Lock()
        self._telling: asyncio.Task[None] | None = None

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Has a resource's changes told from now on, whether it is there, may be seen, or not."""
        watch = await self._watching(ctx)
        admitted = partial(_admitted, wanted=watch.wanted.copy(), uri=params.uri)
        await self._asking.answer(ctx, "subscribe", admitted)
        async with watch.looking:
            watch.wanted.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, _ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Has a resource's changes told no more."""
        if self._watch is not None:
            self._watch.wanted.remove(params.uri)
        return types.EmptyResult()

    async def listed(self, ctx: Context) -> None:
        """Notes that a client of a connection has seen the list of resources: it is told when that changes."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            watch = await self._watching(ctx)
            async with watch.looking:
                watch.wanted.lists = True

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serves one listen stream until the client or the owner ends it, or the token is revoked."""
        wanted, honoured = _honoured(params.notifications)
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        acknowledged = types.SubscriptionsAcknowledgedNotification(
            params=types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
        )
        try:
            with self._streams.counted(self._whose(ctx)), closing(Watch(self._asking, ctx, wanted)) as watch:
                await watch.begin()
                await self._asking.run(
                    ctx, "subscribe", partial(note_subscription, resources=len(wanted.keys))
                )
                await ctx.session.send_notification(acknowledged, ctx.request_id)
                await self._tell_stream(ctx, watch, meta)
        except PcpError as error:
            raise as_error(error, ctx.protocol_version) from None
        return types.SubscriptionsListenResult(_meta=meta)

    async def close(self) -> None:
        """Tells nothing more."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _watching(self, ctx: Context) -> Watch:
        """Gives the watch of this connection's client; the first time, changes are told from then on."""
        async with self._beginning:
            if self._watch is None or self._telling is None or self._telling.done():
                watch = Watch(self._asking, ctx, Wanted())
                await watch.begin()
                self._watch, self._telling = watch, asyncio.create_task(_tell(ctx, watch))
            return self._watch

    async def _tell_stream(self, ctx: Context, watch: Watch, meta: dict[str, Any]) -> None:
        """Tells a stream what there is, until the owner ends."""
        ended = asyncio.create_task(self._streams.ended.wait())
        coming = asyncio.create_task(watch.next())
        try:
            while not ended.done():
                await asyncio.wait({ended, coming}, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    told, coming = coming.result(), asyncio.create_task(watch.next())
                    for event in told:
                        await ctx.session.send_notification(
                            event_to_notification(event, meta), ctx.request_id
                        )
        finally:
            ended.cancel()
            coming.cancel()
            await asyncio.gather(ended, coming, return_exceptions=True)


async def _tell(ctx: Context, watch: Watch) -> None:
    """Tells a connection what there is, as long as its token is good."""
    try:
        while True:
            for event in await watch.next():
                await ctx.session.send_notification(_notification(event))
    except Denied:
        return
    except Exception:
        log.exception("the change notices of a connection met a fault")
    finally:
        watch.close()


def _admitted(memory: Memory, caller: Caller, *, wanted: Wanted, uri: str) -> None:
    """Has a subscription written down. Raises `PcpError` for one too many, and for what can be no resource."""
    if not _has_room(wanted, uri):
        many = f"{len(wanted.keys)} resources are subscribed to"
        raise Usage("resource.too-many", many, hint="leave some first")
    if not wanted.add(uri):
        raise no_resource("resource.unknown")
    note_subscription(memory, caller, resources=1)


def _has_room(wanted: Wanted, uri: str) -> bool:
    is_bounded = len(wanted.keys) < MOST_URIS and wanted.letters + len(uri) <= MOST_LETTERS
    return is_bounded or uri in wanted.keys


def _notification(event: ServerEvent) -> types.ServerNotification:
    """Gives a notice without the marks of a stream."""
    if isinstance(event, ResourceUpdated):
        return types.ResourceUpdatedNotification(
            params=types.ResourceUpdatedNotificationParams(uri=event.uri)
        )
    return types.ResourceListChangedNotification()


def _honoured(asked: types.SubscriptionFilter) -> tuple[Wanted, types.SubscriptionFilter]:
    """Gives what of a filter is told: what is no resource of ours, or beyond the bound, is left out."""
    wanted, uris = Wanted(lists=asked.resources_list_changed is True), list[str]()
    for uri in dict.fromkeys(asked.resource_subscriptions or ()):
        if _has_room(wanted, uri) and wanted.add(uri):
            uris.append(uri)
    honoured = types.SubscriptionFilter(
        resources_list_changed=wanted.lists or None, resource_subscriptions=uris or None
    )
    return wanted, honoured

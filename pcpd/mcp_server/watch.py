"""Looks for changes of the pages that one client has subscribed to. What it is told follows from its grants then.

Subscribing tells nothing about a page. A subscription to a page that is absent, or outside the grants, is accepted
like any other, and brings notices from the moment on at which the caller may see the page.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from pcpd.errors import Broken, Unavailable
from pcpd.mcp_server.asking import Asking, Context
from pcpd.mcp_server.uris import is_profile, path_of
from pcpd.memory import subscribe
from pcpd.memory.following import note_notices
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.profile import PROFILE
from pcpd.memory.subscribe import Event
from pcpd.pages.paths import lookup_key

log = logging.getLogger("pcpd")

MOST_URIS = 1_000
MOST_LETTERS = 256 * 1024
"""Of all their addresses together: they are kept for as long as a connection lasts."""
GAP_S = 0.1
"""Between two looks: what changes meanwhile is told together."""
AFTER_TROUBLE_S = 2.0
EVENTS_AT_ONCE = 500


_PROFILE_KEY = ""


@dataclass
class Wanted:
    """What a client wants to hear of: resources, by the addresses that it wrote, and whether their list."""

    lists: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    letters: int = 0

    def add(self, uri: str) -> bool:
        """Adds a resource; False for an address that can be none of ours."""
        path = path_of(uri)
        if path is None and not is_profile(uri):
            return False
        self.remove(uri)
        self.keys[uri] = _PROFILE_KEY if is_profile(uri) or path is None else lookup_key(path)
        self.letters += len(uri)
        return True

    def remove(self, uri: str) -> None:
        """Takes a resource out, if it is there."""
        if self.keys.pop(uri, None) is not None:
            self.letters -= len(uri)

    def copy(self) -> "Wanted":
        """Gives a copy for another thread."""
        return Wanted(self.lists, dict(self.keys), self.letters)

    def told_of(self, events: Iterable[Event]) -> dict[str, set[str]]:
        """Gives, for each changed page that concerns a resource here, the addresses of these."""
        by_key: dict[str, set[str]] = {}
        for uri, key in self.keys.items():
            by_key.setdefault(key, set()).add(uri)
        found: dict[str, set[str]] = {}
        for event in events:
            uris = by_key.get(lookup_key(event.path), set())
            if event.category == PROFILE:
                uris = uris | by_key.get(_PROFILE_KEY, set())
            if uris:
                found.setdefault(event.path, set()).update(uris)
        return found


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look gave: what to tell, and where the next one begins."""

    events: tuple[ServerEvent, ...]
    cursor: str
    is_last: bool


class Watch:
    """Looks for changes after each wake, for one client. For one event loop; `close` ends it.

    What is `wanted` is added to while `looking` is held: a look under way would miss what changes just then.
    """

    def __init__(self, asking: Asking, ctx: Context, wanted: Wanted) -> None:
        self.wanted = wanted
        self.looking = asyncio.Lock()
        self._asking, self._ctx = asking, ctx
        self._woken = asyncio.Event()
        self._cursor, self._not_before = "", 0.0
        self._unlisten: Callable[[], None] = lambda: None

    async def begin(self) -> None:
        """Looks from now on. Raises `MCPError`."""
        self._unlisten = listened(self._asking.memory, self._woken)
        try:
            self._cursor = await self._asking.answer(self._ctx, "subscribe", _now)
        except BaseException:
            self.close()
            raise

    async def next(self) -> tuple[ServerEvent, ...]:
        """Waits for changes that the client wants to hear of. Raises `Denied` when they may ask no more."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
            self._woken.clear()
            try:
                async with self.looking:
                    look = await self._look()
            except (
                Unavailable,
                Broken,
            ) as error:  # an index that is locked, full or made anew: it comes back
                log.warning("%s: changes cannot be told now: %s", error.code, error.message)
                self._look_again(AFTER_TROUBLE_S)
                continue
            self._not_before = asyncio.get_running_loop().time() + GAP_S
            if not look.is_last:
                self._woken.set()
            if look.events:
                return look.events

    async def _look(self) -> _Look:
        look = await self._asking.run(
            self._ctx, "subscribe", partial(_looked, cursor=self._cursor, wanted=self.wanted.copy())
        )
        self._cursor = look.cursor
        return look

    def _look_again(self, after_s: float) -> None:
        self._not_before = asyncio.get_running_loop().time() + after_s
        self._woken.set()

    def close(self) -> None:
        """Looks no more."""
        self._unlisten()


def listened(memory: Memory, woken: asyncio.Event) -> Callable[[], None]:
    """Has an event of the running loop set when looking is worth it; gives what ends that."""
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    return subscribe.listen(memory, wake)


def _now(memory: Memory, caller: Caller) -> str:
    return subscribe.since(memory, caller, None).cursor


def _looked(memory: Memory, caller: Caller, *, cursor: str, wanted: Wanted) -> _Look:
    news = subscribe.since(memory, caller, cursor, limit=EVENTS_AT_ONCE)
    if news.is_reset:
        return _Look(_told(set(wanted.keys), is_list_changed=wanted.lists), news.cursor, is_last=True)
    concerned = wanted.told_of(news.events)
    note_notices(memory, caller, [event for event in news.events if event.path in concerned])
    is_list_changed = wanted.lists and any(event.kind != "changed" for event in news.events)
    told = _told(set().union(*concerned.values()), is_list_changed=is_list_changed)
    return _Look(told, news.cursor, is_last=len(news.events) < EVENTS_AT_ONCE)


def _told(uris: set[str], *, is_list_changed: bool) -> tuple[ServerEvent, ...]:
    updated = tuple(ResourceUpdated(uri) for uri in sorted(uris))
    return (ResourcesListChanged(), *updated) if is_list_changed else updated

"""The owner: the one process that has a vault. Puts memory and doors together, serves, and ends cleanly.

Order at the start: lock, media, sockets; then the first scan runs beside the import of the framework, and when
the scan is done and the doors are open it says `ready`; the MCP SDK is imported after that, while calls wait in
the socket's queue. Source: architecture.md, *The owner*.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pcpd import __version__, heap, journal, sockets
from pcpd.errors import Broken, PcpError, Unavailable
from pcpd.memory import begin
from pcpd.memory.commits import Committer
from pcpd.memory.identity import CONTEXT_FILE, claim, is_moved, locate, read_context
from pcpd.memory.keeper import Urgency
from pcpd.memory.lock import VaultLock, is_locked
from pcpd.memory.memory import Clock, Memory, Place
from pcpd.memory.steward import Steward
from pcpd.settings import MCP_SOCKET, SOCKET, Settings

DRAIN_S = 1.0
DOOR_THREADS = 16
IDLE_BEAT_S = 5.0
REACH_BEAT_S = 5.0
POLL_S = 2.0
# A request takes Python's lock several times, and waits so long for each thread that scans, indexes or commits.
SWITCH_S = 0.0005

log = logging.getLogger("pcpd")


def system_clock() -> Clock:
    """The clocks of this machine."""
    return Clock(lambda: datetime.now(UTC), time.time_ns, time.monotonic)


def initialise(root: Path, settings: Settings, *, features: Sequence[str], new_id: bool) -> dict[str, object]:
    """Makes a folder a vault; leaves no owner behind. Raises as `memory.begin.initialise` does.

    Gives `root`, `id`, `created`, `features`, and `history`: why no history is kept, or empty.
    """
    if new_id or not (root / CONTEXT_FILE).exists():
        _refuse_owned(root, settings)
    begun = begin.initialise(root, _world(settings), secrets.token_bytes(8), features=features, new_id=new_id)
    return {
        "root": str(root),
        "id": begun.context.id,
        "created": begun.created,
        "features": list(begun.context.features),
        "history": begun.history,
    }


def _world(settings: Settings) -> begin.World:
    return begin.World(system_clock(), settings.environment)


def _refuse_owned(root: Path, settings: Settings) -> None:
    """An owner that runs knows the vault by the id that it has: it must end before that can be another one."""
    if root.is_dir() and is_locked(root):
        raise Unavailable(
            "vault.owned",
            f"a process owns {root}, so that its id cannot change now",
            hint="end it (`pcpd status` tells which) and try again",
            details={"folders": [str(folder) for folder in settings.socket_folders(root)]},
        )


def run(
    root: Path,
    settings: Settings,
    *,
    announce: Callable[[str], None],
    idle_exit_s: float | None = None,
    port: int | None = None,
) -> int:
    """Owns the vault and serves it until told to end; gives the exit status.

    `announce` is told the URL once it serves and the scan is done. `idle_exit_s`: ends after so many seconds
    without a client; owners that clients start have it. Raises `Unavailable` (`vault.owned`) when the vault is
    owned already, and what opening the media or the first scan raises.
    """
    heap.use_one_arena()
    sys.setswitchinterval(SWITCH_S)
    root = root.resolve()
    lock = VaultLock()
    media = None
    try:
        memory, copy_of = _open(root, settings, lock)
        media = Running(
            memory,
            _failed,
            quiet_s=settings.commit_quiet_s,
            longest_s=settings.commit_longest_s,
            poll=settings.watch == "polling",
            poll_s=settings.poll_s,
        )
        _tell_of_copy(memory, copy_of)
        doors = Doors(
            media,
            folder=partial(settings.socket_folder, root),
            is_moved=partial(is_moved, root, memory.context.id, lock),
            announce=announce,
            idle_exit_s=idle_exit_s,
        )
        return asyncio.run(doors.serve(settings.port if port is None else port))
    except BaseExceptionGroup as failures:
        raise _cause(failures) from failures
    finally:
        if media is not None:
            media.close()
        lock.release()


def _cause(failure: BaseException) -> BaseException:
    """Gives what tasks failed with first: an error of ours has code and status, the group that wraps it has none."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _open(root: Path, settings: Settings, lock: VaultLock) -> tuple[Memory, str | None]:
    context = read_context(root)
    lock.take(root)
    found = locate(root, context.id, settings.state_base)
    folders = settings.folders_for(found.name)
    try:
        folders.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.take(folders.state)
        claim(root, found, settings.state_base)
        journal.open_in(folders.state / "log", settings.log_level, time.monotonic)
    except OSError as error:
        raise Broken(
            "state.unwritable",
            f"the state folder {folders.state} cannot be written: {error.strerror}",
            hint="look at its disk and permissions, or set XDG_STATE_HOME to another folder; the vault is untouched",
        ) from error
    place = Place(root, folders.state, folders.config, settings.state_base)
    memory = begin.open_memory(place, context, _world(settings), attachment_limit=settings.attachment_limit)
    return memory, found.copy_of


def _tell_of_copy(memory: Memory, copy_of: str | None) -> None:
    memory.health.notice(
        "copy",
        copy_of
        and f"this is a copy of the vault at {copy_of}, with no grants or tokens: `pcpd init --new-id` makes it a "
        "vault of its own, `pcpd accept --copy` if it replaces that one",
    )


class Running:
    """An opened memory and the threads that serve it.

    The waits are those of `Committer`, in seconds. With `poll`, and where the system gives no events, changes
    are looked for every `poll_s` seconds.
    """

    def __init__(
        self,
        memory: Memory,
        on_failure: Callable[[PcpError], None],
        *,
        quiet_s: float = 2.0,
        longest_s: float = 30.0,
        poll: bool = False,
        poll_s: float = POLL_S,
    ) -> None:
        self.memory = memory
        self.committer = Committer(memory, on_failure, quiet_s=quiet_s, longest_s=longest_s)
        self.steward = Steward(memory, on_failure, poll=poll, poll_s=poll_s)
        memory.keeper.start()
        memory.trail.start()

    def start(self) -> None:
        """Watches and scans; returns when the index is in step."""
        self.steward.start()
        self.committer.start()

    def close(self) -> None:
        """Commits what is at rest, ends the threads and closes the media.

        Media that the keeper still works on after a second are left to the system: as after a kill, the next
        start completes what it was at.
        """
        self.steward.close()
        self.committer.close(DRAIN_S)
        is_at_rest = self.memory.keeper.close(DRAIN_S)
        self.memory.trail.close()
        if is_at_rest:
            self.memory.close()
        else:
            log.warning("ended in the middle of a change; the next start completes it")


class Doors:
    """The sockets of one owner and what is served on them."""

    def __init__(
        self,
        running: Running,
        *,
        folder: Callable[[], Path],
        is_moved: Callable[[], bool],
        announce: Callable[[str], None],
        idle_exit_s: float | None,
    ) -> None:
        """`folder` makes and gives the folder where clients look for the sockets, as the root is now."""
        self._folder = folder
        self._is_moved = is_moved
        self._root = running.memory.place.root
        self._listening: dict[str, sockets.Listening] = {}
        self._to_serve: dict[str, asyncio.Queue[socket.socket]] = {
            name: asyncio.Queue() for name in (SOCKET, MCP_SOCKET)
        }
        self._running = running
        self._announce = announce
        self._memory = running.memory
        self._idle_exit_s = idle_exit_s
        self._traffic = sockets.Traffic(running.memory.clock.monotonic)
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._url = ""

    async def serve(self, port: int) -> int:
        """Serves until a signal, a handover or idleness ends it."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        tcp = sockets.loopback(port, partial(self._memory.health.notice, "port"))
        self._url = f"http://127.0.0.1:{tcp.getsockname()[1]}"
        with ExitStack() as names:
            for name in (SOCKET, MCP_SOCKET):
                self._listen(names, self._folder() / name)
            async with asyncio.TaskGroup() as tasks:
                imported = tasks.create_task(asyncio.to_thread(self._build_app))
                scanned = tasks.create_task(self._scan())
                tasks.create_task(self._end_when_idle())
                tasks.create_task(self._serve_http(await imported, tcp))
                await self._get_ready(scanned)
                tasks.create_task(self._stay_reachable(names))
                await self._serve_relays()
        return 0

    def _listen(self, names: ExitStack, path: Path) -> None:
        """Listens at `path`, for whoever serves sockets of that name."""
        listening = sockets.Listening(path)
        names.callback(listening.close)
        self._listening[path.name] = listening
        self._to_serve[path.name].put_nowait(listening.socket)

    async def _stay_reachable(self, names: ExitStack) -> None:
        """Listens anew where clients look, when they find us no more; ends when the vault was moved away."""
        beats_away = 0
        while not await self._is_told_to_end(REACH_BEAT_S):
            beats_away = beats_away + 1 if await asyncio.to_thread(self._is_moved) else 0
            if beats_away > 1:
                log.warning("the vault is no longer at %s; at its new place another owner begins", self._root)
                self._stop.set()
            with suppress(OSError, PcpError):  # the root is away, or nothing can be made: the next beat sees
                folder = await asyncio.to_thread(self._folder)
                for name, listening in list(self._listening.items()):
                    if not listening.is_at(folder / name):
                        self._listen(names, folder / name)
                        log.warning("the socket %s was gone; it is made anew", folder / name)

    async def _scan(self) -> None:
        """Has the vault watched and scanned. That the owner's end cuts the scan short is no error."""
        try:
            await asyncio.to_thread(self._running.start)
        except Unavailable:
            if not self._stop.is_set():
                raise

    async def _get_ready(self, scanned: asyncio.Task[None]) -> None:
        """Waits for the first scan; one that is told to end meanwhile is not waited for."""
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({scanned, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._stop.is_set():
            self._memory.keeper.refuse(Urgency.SCAN, Urgency.EVENT)
            return
        self._memory.health.ready = True
        log.info("ready at %s", self._url)
        self._announce(self._url)

    async def _serve_http(self, built: tuple[Any, Any], tcp: socket.socket) -> None:
        serve, app = built

        async def counted(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            self._traffic.change(1)
            try:
                await app(scope, receive, send)
            finally:
                self._traffic.change(-1)

        await serve(counted, [tcp], self._stop.wait, more=self._to_serve[SOCKET])

    def _build_app(self) -> tuple[Any, Any]:
        with heap.importing():
            from anyio import CapacityLimiter

            from pcpd.api.app import build
            from pcpd.api.caller import Served
            from pcpd.api.serve import serve

            served = Served(
                memory=self._memory,
                describe=self._describe,
                hand_over=self._hand_over,
                end=self._end,
                limiter=CapacityLimiter(DOOR_THREADS),
            )
            return serve, build(served)

    async def _serve_relays(self) -> None:
        """Imports the SDK and serves stdio relays; they wait in the socket's queue until then.

        Nothing else imports meanwhile: two threads that import one package meet it half made.
        """
        if self._stop.is_set():
            return
        door = await asyncio.to_thread(self._build_relay_door)
        serving = asyncio.create_task(door.serve(self._to_serve[MCP_SOCKET]))
        await self._stop.wait()
        serving.cancel()
        await door.close()

    def _build_relay_door(self) -> Any:
        with heap.importing():
            from anyio import CapacityLimiter

            from pcpd.mcp_server.relay_door import RelayDoor

            return RelayDoor(self._memory, CapacityLimiter(DOOR_THREADS), self._traffic.change)

    async def _end_when_idle(self) -> None:
        if self._idle_exit_s is None:
            return
        while not await self._is_told_to_end(min(IDLE_BEAT_S, self._idle_exit_s)):
            if self._traffic.idle_s() >= self._idle_exit_s:
                self._stop.set()

    async def _is_told_to_end(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), within_s)
        return self._stop.is_set()

    def _describe(self) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "version": __version__,
            "url": self._url,
            "idle_exit_s": self._idle_exit_s,
            "watch": self._running.steward.mode,
        }

    def _hand_over(self, version: str) -> bool:
        """Ends this owner if a client started it, or if a newer version asks; tells whether it does."""
        if self._idle_exit_s is None and not _is_newer(version):
            return False
        self._end()
        return True

    def _end(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)


def _is_newer(version: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".") if part.isdigit()]

    return numbers(version) > numbers(__version__)


def _failed(error: PcpError) -> None:
    """What went wrong on a thread that nobody waits for goes to the log, which counts what repeats."""
    log.error("%s: %s", error.code, error.message)

"""The owner: the one process that has a vault. Puts memory and doors together, serves, and ends cleanly.

Order at the start: lock, media, sockets; then the first scan runs beside the import of the framework, and when
the scan is done and the doors are open it says `ready`; the MCP SDK is imported after that, while calls wait in
the socket's queue. Source: architecture.md, *The owner*.
"""

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pcpd import heap, journal
from pcpd.doors import Doors
from pcpd.errors import Broken, PcpError, Unavailable
from pcpd.memory import begin, strangers
from pcpd.memory.commits import Committer
from pcpd.memory.identity import CONTEXT_FILE, claim, is_moved, locate, read_context
from pcpd.memory.lock import VaultLock, is_locked
from pcpd.memory.memory import Clock, Memory, Place
from pcpd.memory.quotas import Limits
from pcpd.memory.steward import Steward
from pcpd.settings import Settings

DRAIN_S = 1.0
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
            memory,
            media.start,
            watch_mode=lambda: media.steward.mode if media else "",
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
    limits = Limits(settings.quota_writes, settings.quota_proposals, settings.quota_bytes)
    memory = begin.open_memory(
        place, context, _world(settings), attachment_limit=settings.attachment_limit, limits=limits
    )
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
        strangers.write_all(self.memory)
        self.memory.trail.close()
        if is_at_rest:
            self.memory.close()
        else:
            log.warning("ended in the middle of a change; the next start completes it")


def _failed(error: PcpError) -> None:
    """What went wrong on a thread that nobody waits for goes to the log, which counts what repeats."""
    log.error("%s: %s", error.code, error.message)

"""Finds the owner of a vault, starts one where there is none, and waits until it serves.

Everything here is a step that returns at once, so that the relay can go on listening to its client while an
owner starts; `ensure_owner` repeats the steps for those who may block. The kernel's lock decides between two
owners that start together: the one that loses says so by exit status 3, and its client goes to the other.
Source: architecture.md, *The owner*.
"""

import fcntl
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pcpd import __version__
from pcpd.client import wire
from pcpd.errors import Denied, Unavailable
from pcpd.settings import SOCKET, Settings

if TYPE_CHECKING:
    import subprocess

ANSWER_S = 10.0  # a live owner answers `health` in a millisecond; one that is stopped never does
LOCKED_S = 10.0  # how long a taken lock may stay without a socket: an owner binds it soon after locking
START_S = 60.0  # how long a started owner may take until its socket is there
RETRY_S = 0.5
STEP_S = 0.02


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that owns the vault and answers: where its sockets lie, and what `health` said."""

    folder: Path
    pid: int
    version: str
    vault: str
    is_ready: bool


def find(root: Path, settings: Settings) -> Owner | None:
    """Gives the vault's owner, or None where none listens in any of the folders it could use.

    Raises Unavailable (`owner.silent`) when one listens and does not answer, Denied (`owner.foreign`).
    """
    for folder in settings.socket_folders(root):
        link = wire.connect(folder / SOCKET, ANSWER_S) if _is_ours(folder) else None
        if link is None:
            continue
        try:
            health = wire.ask(link, "GET", "health")
        except TimeoutError as error:
            raise Unavailable(
                "owner.silent",
                f"the owner of {root} listens at {folder / SOCKET} and does not answer",
                hint="look whether that process is stopped; end it, and pcpd starts another",
            ) from error
        except OSError:
            continue  # it died in this moment
        if health.get("ok"):
            return _owner(folder, health)
    return None


def hand_over(owner: Owner) -> bool:
    """Asks the owner to drain and end; tells whether it agreed.

    It owns the vault until its socket is gone.
    """
    link = wire.connect(owner.folder / SOCKET, ANSWER_S)
    if link is None:
        return True
    try:
        return bool(wire.ask(link, "POST", "handover", {"version": __version__}).get("ends"))
    except OSError:
        return True  # it ended before it could answer


def work(root: Path, settings: Settings) -> Mapping[str, object] | None:
    """Tells how far the owner's long work is: `what`, `done`, `total`; None when it has none, or is not there."""
    try:
        for folder in settings.socket_folders(root):
            link = wire.connect(folder / SOCKET, ANSWER_S) if _is_ours(folder) else None
            if link:
                said = wire.ask(link, "GET", "work").get("work")
                return said if isinstance(said, dict) else None
    except (OSError, Denied):
        return None
    return None


class Start:
    """One attempt to have an owner, in steps that never wait."""

    def __init__(
        self, root: Path, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds that only grow."""
        self._root, self._settings, self._environ, self._clock = root, settings, environ, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._turn: int | None = None
        self._begun_at = clock()
        self._locked_at: float | None = None
        self._retry_at = 0.0
        self._asked_pid: int | None = None

    def step(self) -> Owner | None:
        """Gives the owner once it listens; it need not be ready. None means: step again soon.

        Raises what the started owner failed with, and Unavailable (`owner.unreachable`, `owner.slow`).
        """
        owner = find(self._root, self._settings)
        if owner is None:
            self._without_owner()
        elif is_older(owner.version, __version__) and self._gives_way(owner):
            return None
        elif owner:
            self.close()
        return owner

    def close(self) -> None:
        """Lets others start an owner; a child that was started goes on."""
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def _gives_way(self, owner: Owner) -> bool:
        """Asks an older owner once to hand over; tells whether to wait for that."""
        if self._asked_pid == owner.pid:
            return self._clock() - self._begun_at < LOCKED_S
        self._asked_pid = owner.pid
        return hand_over(owner)

    def _without_owner(self) -> None:
        """Starts an owner if it is our turn, or looks at what became of the one that we started."""
        from pcpd.client import launch

        now = self._clock()
        if self._child is not None:
            self._look_at_child(now)
        elif now >= self._retry_at and self._take_turn():
            self._child = launch.start(self._root, self._log(), self._environ)
        if self._locked_at is not None and now - self._locked_at > LOCKED_S:
            raise self._unreachable()
        if now - self._begun_at > START_S:
            raise Unavailable(
                "owner.slow",
                f"no owner of {self._root} listens after {START_S:.0f} s",
                hint=f"look into {self._log()}, or start it yourself: pcpd --vault {self._root} run",
            )

    def _look_at_child(self, now: float) -> None:
        """Goes on when the child lost the lock to another owner; raises what else it ended with."""
        if self._child is None or (status := self._child.poll()) is None:
            return
        from pcpd.client import launch

        self._child = None
        failure = launch.failure(status, self._log())
        if not isinstance(failure, Unavailable):
            self.close()
            raise failure
        self._retry_at = now + RETRY_S
        self._locked_at = self._locked_at or now

    def _take_turn(self) -> bool:
        """Tells whether this client is the one that starts an owner; others wait for its socket."""
        if self._turn is None:
            turn = os.open(self._log().with_name("start.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(turn)
                return False
            self._turn = turn
        return True

    def _log(self) -> Path:
        """Where the started owner's first words go; the folder is made."""
        folder = self._settings.socket_folder(self._root)
        return folder / "start.log"

    def _unreachable(self) -> Unavailable:
        folders = ", ".join(str(each) for each in self._settings.socket_folders(self._root))
        return Unavailable(
            "owner.unreachable",
            f"another process owns {self._root}, and there is no socket of it in {folders}",
            hint="run pcpd with the HOME and XDG_RUNTIME_DIR of that process, or end it",
            details={"folders": [str(each) for each in self._settings.socket_folders(self._root)]},
        )


def ensure_owner(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    wait_ready: bool = True,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Owner:
    """Gives the vault's owner, started if there was none, once it is ready (or just listens).

    Waits without limit for one that is still reading the vault: it says how far it is (`work`). Raises as
    `Start.step` does.
    """
    start = Start(root, settings, environ, clock)
    try:
        while True:
            owner = start.step()
            if owner and (owner.is_ready or not wait_ready):
                return owner
            sleep(STEP_S)
    finally:
        start.close()


def is_older(theirs: str, ours: str) -> bool:
    """Tells whether version `theirs` comes before `ours`; what is no version is never older."""
    numbers = [tuple(int(part) for part in text.split(".") if part.isdigit()) for text in (theirs, ours)]
    return all(numbers) and numbers[0] < numbers[1]


def _is_ours(folder: Path) -> bool:
    """Tells whether a folder is there and belongs to this user: what strangers put up is no owner."""
    try:
        return folder.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _owner(folder: Path, health: Mapping[str, object]) -> Owner:
    """Reads what `health` answered."""
    pid = health.get("pid")
    return Owner(
        folder=folder,
        pid=pid if isinstance(pid, int) else 0,
        version=str(health.get("version", "")),
        vault=str(health.get("vault", "")),
        is_ready=bool(health.get("ready")),
    )

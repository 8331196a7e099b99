"""A memory on a real vault, for tests of the acts: real files, git and SQLite, and no doors."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pcpd.daemon import Running, system_clock
from pcpd.errors import PcpError
from pcpd.memory.begin import World, initialise, open_memory
from pcpd.memory.identity import read_context
from pcpd.memory.memory import Caller, Clock, Memory, Place
from pcpd.policy.decide import Principal
from pcpd.policy.grants import CATEGORIES, Grant
from pcpd.vault.inode import version_of

ENTROPY = bytes(range(8))


@dataclass
class Opened:
    """A vault that is owned by this test. `restart` closes it and opens it again, as an owner's restart does.

    `ahead_s` sets its wall clock forward: git's files then look old, and no commit waits for the gate.
    `quiet_s` is how long a page must be quiet before it is committed; with `poll_s`, changes are polled for.
    """

    base: Path
    features: tuple[str, ...] = ("review",)
    ahead_s: int = 0
    quiet_s: float = 2.0
    poll_s: float | None = None
    failures: list[PcpError] = field(default_factory=list)
    running: Running | None = None

    @property
    def root(self) -> Path:
        """The vault's folder."""
        return self.base / "vault"

    @property
    def memory(self) -> Memory:
        """The memory that is open now."""
        assert self.running is not None
        return self.running.memory

    @property
    def person(self) -> Caller:
        """The controller at the command line."""
        return Caller(Principal(self.memory.context.controller, is_controller=True), "cli")

    def version(self, path: str) -> str:
        """Gives the version of a page as it is on disk."""
        return version_of((self.root / f"{path}.md").read_bytes())

    def agent(
        self, name: str = "agent:claude", *rights: str, key: str = "", partition: str = "personal"
    ) -> Caller:
        """An agent, with a grant for everything in one partition when rights are named."""
        if rights:
            self.memory.access.grant(Grant(name, (partition,), CATEGORIES, rights))
        return Caller(Principal(name), "mcp", key=key)

    def clock(self) -> Clock:
        """The clocks of this vault."""
        plain, ahead = system_clock(), timedelta(seconds=self.ahead_s)
        return Clock(
            lambda: plain.now() + ahead, lambda: plain.now_ns() + self.ahead_s * 10**9, plain.monotonic
        )

    def open(self, *, scan: bool = True) -> "Opened":
        """Makes the vault when it is none yet, opens its media and brings the index in step."""
        outside = World(self.clock(), dict(os.environ))
        initialise(self.root, outside, ENTROPY, features=self.features)
        place = Place(self.root, self.base / "state" / "v", self.base / "config" / "v", self.base / "state")
        memory = open_memory(place, read_context(self.root), outside)
        self.running = Running(
            memory,
            self.failures.append,
            quiet_s=self.quiet_s,
            poll=self.poll_s is not None,
            poll_s=self.poll_s or 2.0,
        )
        if scan:
            self.running.start()
        return self

    def close(self) -> None:
        """Ends the owner's threads and closes the media."""
        if self.running is not None:
            self.running.close()
            self.running = None

    def restart(self) -> "Opened":
        """Closes and opens again."""
        self.close()
        return self.open()

    def save(self, file: str, text: str | bytes) -> Path:
        """Writes a file as an editor does that writes a temporary one and renames it."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.editor")
        temporary.write_bytes(text.encode() if isinstance(text, str) else text)
        os.replace(temporary, path)  # noqa: PTH105
        return path


@pytest.fixture
def make_opened(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Gives what opens vaults; all are closed at the end, and none may have failed in the background."""
    made: list[Opened] = []

    def make(name: str = "one", **options: Any) -> Opened:
        opened = Opened(tmp_path / name, **options)
        made.append(opened)
        return opened

    yield make
    for opened in made:
        opened.close()
        assert not opened.failures, [each.message for each in opened.failures]


@pytest.fixture
def opened(make_opened: Callable[..., Opened]) -> Opened:
    """One empty vault, open."""
    return make_opened().open()

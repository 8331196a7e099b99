"""One machine with a real pcpd on it, started as a person or a client would start it."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until

GENEROUS_S = 60.0


@dataclass
class Machine:
    """The person's machine."""

    world: Any
    vault: Path
    owners: list["subprocess.Popen[str]"] = field(default_factory=list)

    def pcpd(self, *arguments: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Runs a command on the vault."""
        done: subprocess.CompletedProcess[str] = self.world.pcpd(
            "--vault", self.vault, *arguments, check=check
        )
        return done

    def json(self, *arguments: str | Path) -> Any:
        """Runs a command on the vault; gives its document."""
        return json.loads(self.pcpd(*arguments, "--json").stdout)

    def run(self, vault: Path | None = None) -> "subprocess.Popen[str]":
        """Starts `pcpd run` and waits until it is ready."""
        owner: subprocess.Popen[str] = self.world.start("--vault", vault or self.vault, "run")
        self.owners.append(owner)
        assert owner.stderr
        line = owner.stderr.readline()
        assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+\n", line), line + owner.stderr.read()
        return owner

    def owner_pid(self) -> int:
        """Who owns the vault now; starts an owner where there is none."""
        return int(self.json("status")["owner"]["pid"])

    @property
    def env(self) -> Mapping[str, str]:
        """What programs see."""
        env: Mapping[str, str] = self.world.env
        return env


@pytest.fixture
def machine(world: Any) -> Iterator[Machine]:
    """A vault with one page, under a name with a space and a letter beyond ASCII."""
    vault = world.home / "my väult"
    world.pcpd("init", vault)
    (vault / "boiler.md").write_text("# Boiler\n\nServiced in May.\n")
    made = Machine(world, vault)
    yield made
    for owner in made.owners:
        owner.kill()
        owner.communicate()


def gone(pid: int) -> bool:
    """Tells whether a process has ended (also one whose parent has not looked yet)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kills a process as power would, and waits for its end."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))

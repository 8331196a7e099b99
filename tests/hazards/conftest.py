"""Hazards that concern the whole are tested on real vaults (`tests/vaults.py`) and real owners (`machine`)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pcpd.memory import read
from pcpd.memory.doctor import compare, status
from tests.service.conftest import machine
from tests.vaults import Opened, make_opened
from tests.waiting import until

__all__ = ["Asked", "machine", "make_opened"]


class Asked:
    """What is asked of an open vault again and again."""

    def __init__(self, opened: Opened) -> None:
        """Asks nothing yet."""
        self.opened = opened

    def found(self, text: str) -> list[str]:
        """The paths of the pages that a search for `text` finds."""
        return [hit.path for hit in read.search(self.opened.memory, self.opened.person, text).results]

    def status(self) -> dict[str, object]:
        """What `pcpd status` tells."""
        return status(self.opened.memory)

    def notice(self, topic: str) -> str:
        """What `pcpd status` says on a topic, or nothing."""
        notices = {each["topic"]: each["text"] for each in status(self.opened.memory)["notices"]}
        return str(notices.get(topic, ""))

    def is_in_step(self) -> bool:
        """Tells whether `pcpd status` says that the index is in step."""
        return bool(status(self.opened.memory)["index"]["in_step"])

    def equals_a_rebuild(self) -> bool:
        """Tells whether the index is what a rebuild would be."""
        return not compare(self.opened.memory)

    def commit_all(self) -> None:
        """Waits until every version is committed."""
        until(lambda: status(self.opened.memory)["history"]["waiting"] == 0)

    def commits(self, *paths: str) -> list[str]:
        """What the commits that touched these paths did to them, as git says (`A`, `M`, `D`), the newest first."""
        if not git(self.opened.root, "for-each-ref"):
            return []
        return git(self.opened.root, "log", "--format=", "--name-status", "--", *paths).split("\n")[:-1]


def git(root: Path, *arguments: str) -> str:
    """Runs git as a person does; gives what it prints."""
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def opened(make_opened: Callable[..., Opened]) -> Opened:
    """One empty vault, open, which commits soon: git's files look old to it, and pages are at rest at once."""
    return make_opened(ahead_s=3600, quiet_s=0.05).open()


@pytest.fixture
def ask(opened: Opened) -> Asked:
    """What is asked of the one vault."""
    return Asked(opened)

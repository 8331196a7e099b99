"""A vault of the person's, and owners of it that are only played."""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pcpd.settings import Settings, load
from tests.client.fake_owner import FakeOwner


@dataclass
class Scene:
    """A vault in a world of its own. No real owner starts: it always seems that another client is starting one."""

    root: Path
    env: Mapping[str, str]
    settings: Settings
    owners: list[FakeOwner] = field(default_factory=list)

    def owner(self, **how: Any) -> FakeOwner:
        """Plays an owner of the vault."""
        made = FakeOwner(self.settings.socket_folder(self.root), **how)
        self.owners.append(made)
        return made


@pytest.fixture
def make_vault(world: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes vaults that only look like ones, and gives this process their world's folders."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, world.env[name])

    def make(name: str) -> Path:
        root: Path = world.home / name
        (root / ".pcp").mkdir(parents=True)
        (root / ".pcp" / "context.yaml").write_text("id: ctx_1763000000_a3f2b1c4\n")
        return root.resolve()

    return make


@pytest.fixture
def scene(world: Any, make_vault: Callable[[str], Path]) -> Iterator[Scene]:
    """One vault, whose name holds a space and a letter beyond ASCII."""
    root = make_vault("my väult")
    settings = load(world.env)
    turn = os.open(settings.socket_folder(root) / "start.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(turn, fcntl.LOCK_EX)
    scene = Scene(root, world.env, settings)
    yield scene
    os.close(turn)
    for owner in scene.owners:
        owner.kill()

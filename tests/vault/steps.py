"""The art of failing at step n: counts what changes the disk, and does something just before one step."""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pcpd import durable

CALLS = ("write", "fsync", "fchmod", "rename", "link", "unlink", "mkdir")


class Died(BaseException):
    """The process is gone: nothing that it would still have done happens."""


class Steps:
    """Counts every step that changes the disk, and does something just before the one that was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Changes nothing until it is used as a block."""
        self._monkeypatch = monkeypatch
        self._dead = False
        self._is_outside = False
        self.count = 0

    @contextmanager
    def at(self, plan: Mapping[int, Callable[[], None]]) -> Iterator[None]:
        """Within the block, calls what is planned just before each step, the first being 1."""
        self.count, self._dead = 0, False
        with self._monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self._counted(getattr(os, name), plan, tears=name == "write"))
            patch.setattr(durable, "_renameat", self._counted(durable._renameat, plan, tears=False))
            yield

    def dying(self, step: int) -> AbstractContextManager[None]:
        """Within the block, the process dies before that step; a write is torn in half first."""
        return self.at({step: self.die})

    def full(self, step: int) -> AbstractContextManager[None]:
        """Within the block, the disk is full at that step."""

        def refuse() -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return self.at({step: refuse})

    def die(self) -> None:
        """Ends the process, as far as it can be told."""
        self._dead = True
        raise Died

    def _counted(
        self, real: Any, plan: Mapping[int, Callable[[], None]], *, tears: bool
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._dead:
                raise Died
            if self._is_outside:
                return real(*arguments, **options)
            self.count += 1
            if act := plan.get(self.count):
                if tears and act == self.die:
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                # What an editor does meanwhile is not a step of ours.
                self._is_outside = True
                try:
                    act()
                finally:
                    self._is_outside = False
            return real(*arguments, **options)

        return call


def tree(root: Path) -> dict[str, bytes]:
    """Gives every file below `root` with its bytes."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}

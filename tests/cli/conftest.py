"""The command line, run inside the test's process before an owner that is only played."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pcpd.cli.main import run
from tests.client.conftest import Scene, make_vault, scene

__all__ = ["make_vault", "scene"]


@dataclass(frozen=True)
class Done:
    """What came of one call."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Its results as text."""
        return self.out.decode()

    def json(self) -> Any:
        """Its result, which must be one document."""
        return json.loads(self.out)


Pcpd = Callable[..., Done]


@pytest.fixture
def pcpd(scene: Scene, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Pcpd:
    """Calls pcpd on the scene's vault."""
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, scene.env[name])
    monkeypatch.setenv("PCPD_VAULT", str(scene.root))

    def call(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(arguments)
        out, err = capsysbinary.readouterr()
        return Done(status, out, err.decode())

    return call

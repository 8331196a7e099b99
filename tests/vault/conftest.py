"""What the tests of the vault share: an empty vault, and its files at a fixed time."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pcpd.vault.files import Files
from tests.vault.steps import Steps


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty vault."""
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def files(root: Path) -> Files:
    """The files of the vault, at noon."""
    return Files(root, lambda: datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The steps that change the disk, to be failed one by one."""
    return Steps(monkeypatch)

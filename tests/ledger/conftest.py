"""A ledger in a folder of its own, with a clock that the test moves."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pcpd.ledger.ledger import Ledger


@dataclass
class Clock:
    """A wall clock that stands still until it is moved."""

    instant: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Gives the instant."""
        return self.instant

    def pass_time(self, **parts: float) -> None:
        """Moves it on."""
        self.instant += timedelta(**parts)


@pytest.fixture
def clock() -> Clock:
    """Noon, 30 November 2026, UTC."""
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    """A new ledger."""
    opened = Ledger.open(tmp_path, clock)
    yield opened
    opened.close()

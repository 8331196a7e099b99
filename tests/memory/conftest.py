"""Acts are tested on real vaults (`tests/vaults.py`)."""

from tests.vaults import make_opened, opened

__all__ = ["make_opened", "opened"]

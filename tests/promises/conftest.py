"""Promises are tested on vaults that a person could have (`tests/vaults.py`)."""

from tests.vaults import make_opened, opened

__all__ = ["make_opened", "opened"]

"""The fixtures of the doors."""

from tests.doors import doors, make_doors
from tests.vaults import make_opened, opened

__all__ = ["doors", "make_doors", "make_opened", "opened"]

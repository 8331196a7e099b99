"""What may be tried against a vault is tried on real ones (`tests/vaults.py`), behind real doors (`tests/doors.py`)."""

from tests.doors import doors, make_doors
from tests.hazards.conftest import Asked
from tests.service.conftest import machine
from tests.vaults import make_opened, opened

__all__ = ["Asked", "doors", "machine", "make_doors", "make_opened", "opened"]

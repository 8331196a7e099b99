"""The MCP doors with the newest release of the SDK; see `scripts/newest-sdk`."""

import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution
from pathlib import Path

from environment import LOCK, ROOT, ready

TESTS = (
    "test_every_client.py",
    "test_http_door.py",
    "test_relay_door.py",
    "test_resources.py",
    "test_subscriptions.py",
)
INSTALL_S, TESTS_S = 180, 900


def main() -> int:
    """Gives 1 where a release that pyproject.toml allows does not hold; 0 also where none can be had."""
    python = str(ready(development=True))
    with tempfile.TemporaryDirectory(prefix="pcpd-sdk-") as folder:
        install = [
            python,
            "-m",
            "pip",
            "-q",
            "--disable-pip-version-check",
            "install",
            "--target",
            folder,
            "mcp",
        ]
        try:
            subprocess.run(install, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
        except subprocess.SubprocessError as error:
            print(f"the newest SDK cannot be had here: {error}")
            return 0
        newest, locked = installed(Path(folder)), re.search(r"^mcp==(\S+)", LOCK.read_text(), re.MULTILINE)
        if locked is not None and newest == locked[1]:
            print(f"mcp {newest} is the newest, and the one that all tests run with")
            return 0
        status = tests(python, folder)
        print(f"mcp {newest}: {'holds' if status == 0 else 'DOES NOT HOLD'}")
        return status if allowed(newest) else 0


def installed(folder: Path) -> str:
    """Gives the version of the SDK in a folder."""
    (information,) = folder.glob("mcp-*.dist-info")
    return Distribution.at(information).version


def allowed(version: str) -> bool:
    """Tells whether pyproject.toml lets pcpd run with that version."""
    bound = re.search(r'"mcp>=[\d.]+,<(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return bound is not None and int(version.partition(".")[0]) < int(bound[1])


def tests(python: str, folder: str) -> int:
    """Runs the tests of the doors with what lies in `folder` before all else."""
    command = [python, "-m", "pytest", "-q", *(str(ROOT / "tests" / "mcp_server" / name) for name in TESTS)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": folder}, timeout=TESTS_S, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

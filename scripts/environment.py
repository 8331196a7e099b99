"""The checkout's own Python environment, `.venv`: made once, brought up to date when the lock changes.

Standard library only, since this runs before anything is installed. Where the environment is up to date,
pip is not called and nothing is asked of the network.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
RUNTIME_MARK = "# == to run =="
DEVELOPMENT_MARK = "# == for development =="


class SetUpError(Exception):
    """The environment cannot be made; the message says why and what to do."""


def ready(*, development: bool = False) -> Path:
    """Gives the environment's Python, after installing what the lock names where that is not done yet."""
    folder = ROOT / ".venv"
    runtime, extra = sections(LOCK.read_text(encoding="utf-8"))
    wanted = {"run": runtime} | ({"development": extra} if development else {})
    if not _missing(folder, wanted):
        return folder / "bin" / "python"
    with _alone():
        if "run" in _missing(folder, wanted):
            _make(folder)
            _install(folder, runtime)
            _pip(folder, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
            _remember(folder, "run", runtime)
        if "development" in _missing(folder, wanted):
            _install(folder, extra)
            _remember(folder, "development", extra)
    return folder / "bin" / "python"


def sections(lock: str) -> tuple[str, str]:
    """Splits the lock's text into what pcpd runs on and what its development needs besides."""
    runtime, mark, development = lock.partition(DEVELOPMENT_MARK)
    if not mark or RUNTIME_MARK not in runtime:
        raise SetUpError(f"{LOCK.name} has lost its section marks; scripts/lock makes it again.")
    return runtime, development


def _missing(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Names the sections that are not installed as the lock has them now."""
    return [name for name, text in wanted.items() if _installed(folder, name) != _fingerprint(text)]


def _installed(folder: Path, name: str) -> str:
    stamp = folder / f"installed-{name}"
    return stamp.read_text() if stamp.exists() and (folder / "bin" / "python").exists() else ""


def _remember(folder: Path, name: str, text: str) -> None:
    (folder / f"installed-{name}").write_text(_fingerprint(text))


def _fingerprint(section: str) -> str:
    """Names what an installation depends on: the section, this Python, this place, our own metadata."""
    parts = (section, sys.version, str(ROOT), (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Lets one first start install while another waits for it."""
    with LOCK.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    """Makes the environment from nothing; one of another Python, or a half-made one, is replaced."""
    print("Setting up pcpd's own Python environment in .venv (once) …", file=sys.stderr, flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        said = (made.stdout + made.stderr).strip()
        raise SetUpError(
            f"Python could not make an environment in {folder}:\n{said}\n"
            "On Debian and Ubuntu: apt-get install python3-venv, then start again."
        )


def _install(folder: Path, section: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write(section)
        names.flush()
        _pip(folder, "--require-hashes", "--no-deps", "--requirement", names.name)


def _pip(folder: Path, *what: str) -> None:
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}  # a build tool's advice to developers of packages
    done = subprocess.run(
        [*command, *what], env=env, stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise SetUpError("pip could not install what requirements.lock names (see above). Start again.")

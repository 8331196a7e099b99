"""What all tests share: a clean world around them, programs that may be missing, and the soak factor.

- `needs(tool)`: the test is skipped where the program is absent, and counted by its name at the end.
- `soak`: 1 in a normal run; `scripts/soak` raises it, for random histories and for Hypothesis alike.
- `world`: a home, state, configuration and runtime folder of its own, for tests that start owners.
- `unprivileged`: a folder, and the rights of a user who owns nothing else, for tests about permissions.
"""

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

SOAK = max(1, int(os.environ.get("PCPD_SOAK", "1")))
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "emacs": ("emacs", "emacs-nox"),
    "node": ("node", "nodejs"),
}
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import inspector  # noqa: E402

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "CI", "PCPD_SOAK", "PYTHONPATH", "VIRTUAL_ENV", "TERM")
_STARTED_HERE = "PCPD_TESTS_WORLD"  # marks the processes of one world, so that its end can find them
_restore = pytest.StashKey[dict[str, str]]()
_home = pytest.StashKey[str]()

# Short runs draw the same examples every time; long ones look for new ones.
hypothesis.settings.register_profile("pcpd", deadline=None, derandomize=SOAK == 1)
hypothesis.settings.load_profile("pcpd")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option by which CI refuses skips that no missing program explains."""
    parser.addoption(
        "--strict-skips",
        action="store_true",
        help="fail when a test is skipped for another reason than a program that is missing here",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Puts the run into an empty home before any room is imported: the person's own is never touched."""
    config.stash[_restore] = dict(os.environ)
    config.stash[_home] = home = tempfile.mkdtemp(prefix="pcpd-home-")
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept | _places(Path(home)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Gives the environment back and removes the home."""
    before: dict[str, str] = config.stash[_restore]
    os.environ.clear()
    os.environ.update(before)
    shutil.rmtree(config.stash[_home], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Skips what needs a missing program; marks random tests, and lengthens them by the soak factor."""
    for item in items:
        for mark in item.iter_markers("needs"):
            for tool in mark.args:
                if program(tool) is None:
                    item.add_marker(pytest.mark.skip(reason=f"needs {tool}, which is not installed here"))
        if isinstance(item, pytest.Function):
            examples = _lengthened(item)
            if examples or "soak" in item.fixturenames:
                item.add_marker("soak")
            item.user_properties.append(("examples", examples))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the programs that were missing, with the number of tests each of them cost."""
    reasons = [reason for _, reason in _skips(terminalreporter)]
    for tool, count in sorted(Counter(_missing_tool(reason) for reason in reasons).items()):
        if tool:
            terminalreporter.write_line(f"skipped {count} for want of {tool}", yellow=True)
    for test, reason in _skips(terminalreporter):
        if not _missing_tool(reason):
            terminalreporter.write_line(f"skipped for another reason: {test}: {reason}", yellow=True)
    if SOAK > 1:
        held = terminalreporter.stats.get("passed", [])
        examples = sum(dict(report.user_properties).get("examples", 0) for report in held)
        terminalreporter.write_line(f"soak: {len(held)} random tests held, {SOAK} times longer than usual")
        terminalreporter.write_line(f"soak: up to {examples:,} examples drawn by Hypothesis")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With --strict-skips, a skip that no missing program explains fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not session.config.getoption("--strict-skips") or not reporter or exitstatus != 0:
        return
    if not all(_missing_tool(reason) for _, reason in _skips(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skips(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """Lists the skipped tests with their reasons."""
    return [
        (report.nodeid, report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr))
        for report in reporter.stats.get("skipped", [])
    ]


def _missing_tool(reason: str) -> str:
    """Gives what a skip's reason says is missing here, a program or the rights of root, or nothing."""
    said = re.search(r"needs (?:(\S+), which is not installed here|(root|a file system))", reason)
    return (said[1] or said[2]) if said else ""


def program(tool: str) -> str | None:
    """Gives the path of a program by the name that tests call it, or nothing where it is missing.

    `inspector` is what `scripts/inspector` installs; it is on no PATH.
    """
    if tool == "inspector":
        return next(iter(inspector.command() or ()), None)
    return next((path for name in PROGRAMS.get(tool, (tool,)) if (path := shutil.which(name))), None)


def _lengthened(item: pytest.Function) -> int:
    """Multiplies a Hypothesis test's examples and gives their number; 0 for a test that is none.

    Rule-based machines carry their settings on the class.
    """
    function = getattr(item.obj, "__func__", item.obj)
    for place, name in ((function, "_hypothesis_internal_use_settings"), (item.cls, "settings")):
        present = getattr(place, name, None)
        if isinstance(present, hypothesis.settings):
            if not getattr(place, "lengthened_by_soak", SOAK == 1):
                present = hypothesis.settings(present, max_examples=present.max_examples * SOAK)
                setattr(place, name, present)
                place.lengthened_by_soak = True
            return present.max_examples
    return 0


def _places(home: Path) -> dict[str, str]:
    """Names the folders of a new home, made if missing; the runtime folder is the person's alone."""
    folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / "config",
        "XDG_STATE_HOME": home / "state",
        "XDG_DATA_HOME": home / "data",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_RUNTIME_DIR": home / "run",
    }
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Sam\n\temail = sam@example.org\n[init]\n\tdefaultBranch = main\n", encoding="utf-8"
    )
    # Any free port: owners of several tests run at a time.
    return {name: str(folder) for name, folder in folders.items()} | {"PCPD_PORT": "0"}


@pytest.fixture(scope="session")
def soak() -> int:
    """How many times longer than usual random tests shall run."""
    return SOAK


@dataclass(frozen=True)
class World:
    """One person's machine: their home, and the environment that their programs see."""

    home: Path
    env: Mapping[str, str]

    def pcpd(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs the pcpd of this checkout to its end, as the person would."""
        return subprocess.run(
            [sys.executable, "-m", "pcpd", *map(str, arguments)],
            env=dict(self.env), cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=check, timeout=120,
        )  # fmt: skip

    def start(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        """Starts a pcpd that stays, such as an owner; the world's end ends it."""
        return subprocess.Popen(
            [sys.executable, "-m", "pcpd", *map(str, arguments)],
            env=dict(self.env), cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


@pytest.fixture
def world() -> Iterator[World]:
    """A home of its own under a short path (sockets need one); every process started in it ends with it."""
    home = Path(tempfile.mkdtemp(prefix="pcpd-", dir="/tmp"))
    name = uuid.uuid4().hex
    env = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        _STARTED_HERE: name,
        **_places(home),
    }
    try:
        yield World(home, env)
    finally:
        _end_processes_of(name)
        shutil.rmtree(home, ignore_errors=True)


def _end_processes_of(world: str) -> None:
    """Kills what still runs with the world's mark in its environment (Linux; elsewhere owners idle out)."""
    mark = f"{_STARTED_HERE}={world}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of the user `nobody`, whose rights the test has meanwhile; as it is for a run without root."""
    folder = Path(tempfile.mkdtemp(prefix="pcpd-", dir="/tmp"))
    groups = os.getgroups()
    try:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            os.setgroups([])
            os.setegid(nobody.pw_gid)
            os.seteuid(nobody.pw_uid)
        yield folder
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        shutil.rmtree(folder, ignore_errors=True)

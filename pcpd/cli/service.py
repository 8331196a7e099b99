"""The command service: an owner that the system starts at login, by systemd or launchd."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pcpd.cli import output
from pcpd.cli.entry import program_path
from pcpd.cli.invocation import MARK, Invocation, common
from pcpd.cli.output import line, plain, say
from pcpd.errors import Broken, Invalid, NotFound

if TYPE_CHECKING:
    from pcpd.settings import Settings

START_S = 15.0
SERVICE_PATH = "/usr/local/bin:/usr/bin:/bin"  # as in the service files
_FOLDERS = ("XDG_STATE_HOME", "XDG_CONFIG_HOME")  # the owner must look where its commands look
_MAC_PATH = f"/opt/homebrew/bin:{SERVICE_PATH}"


@dataclass(frozen=True, slots=True)
class Unit:
    """The service of one vault: its name, its file, what the file holds, and the commands of the system."""

    name: str
    file: Path
    text: bytes
    log: Path | None
    start: Sequence[Sequence[str]]
    stop: Sequence[Sequence[str]]
    state: Sequence[str]


@click.group("service", short_help="Have the system start the owner at login")
def service_command() -> None:
    """Have the system start the owner at login, by systemd or launchd"""


@service_command.command("install", short_help="Write the service of this vault, and start it")
@click.option("--no-start", is_flag=True, help="Only write the file.")
@common
@click.pass_obj
def service_install(invocation: Invocation, *, no_start: bool) -> int:
    """Write the service of this vault, and start it

    First tries to read and write all that the service will, with the environment that it will have.
    """
    root, settings = invocation.root(), invocation.settings
    unit = unit_of(root, settings, invocation.environ)
    try_as_service(root, settings, invocation.environ)
    unit.file.parent.mkdir(parents=True, exist_ok=True)
    if unit.log:
        unit.log.parent.mkdir(parents=True, exist_ok=True)
    from pcpd import durable

    durable.write(unit.file, unit.text, mode=0o644)
    trouble = None if no_start else _start(unit, root, settings)
    if invocation.is_json:
        output.document({"name": unit.name, "file": str(unit.file), "started": not no_start and trouble is None,
                         "trouble": trouble})  # fmt: skip
    else:
        say(f"Wrote {plain(unit.file)}.")
        say(
            trouble or ("It starts at your next login." if no_start else "It runs, and starts at each login.")
        )
        if not sys.platform.startswith("darwin"):
            say("It ends when you log out, unless you allow it to stay: loginctl enable-linger")
    return 1 if trouble else 0


@service_command.command("uninstall", short_help="Stop the service of this vault, and remove it")
@common
@click.pass_obj
def service_uninstall(invocation: Invocation) -> None:
    """Stop the service of this vault, and remove it

    The vault, its history and what pcpd knows of it stay as they are.
    """
    unit = unit_of(invocation.root(), invocation.settings, invocation.environ)
    was_there = unit.file.exists()
    for command in unit.stop:
        _called(command)
    unit.file.unlink(missing_ok=True)
    if unit.log:
        unit.log.unlink(missing_ok=True)
    if invocation.is_json:
        output.document({"name": unit.name, "removed": was_there})
    else:
        say(f"Removed {plain(unit.file)}." if was_there else "There was no service of this vault.")


@service_command.command("status", short_help="Tell whether the service is installed and runs")
@common
@click.pass_obj
def service_status(invocation: Invocation) -> None:
    """Tell whether the service is installed and runs"""
    root, settings = invocation.root(), invocation.settings
    unit = unit_of(root, settings, invocation.environ)
    from pcpd.client import owner

    present = owner.find(root, settings)
    said = _called(unit.state)[1].strip().splitlines()
    answer = {
        "name": unit.name,
        "file": str(unit.file),
        "installed": unit.file.exists(),
        "state": said[0] if said else "unknown",
        "owner": present and {"pid": present.pid, "version": present.version, "ready": present.is_ready},
    }
    if invocation.is_json:
        output.document(answer)
        return
    line(
        f"{plain(unit.file)}: {'installed' if unit.file.exists() else 'not installed'}, {plain(answer['state'])}"
    )
    line(f"owner: process {present.pid}" if present else "owner: none runs")


def unit_of(root: Path, settings: "Settings", environ: Mapping[str, str]) -> Unit:
    """Gives the service of a vault; its name comes from the vault's path, so that each has one.

    Raises NotFound (`service.no-program`), Invalid (`service.path`) for a path that no service file can hold.
    """
    program = program_path()
    if program is None:
        hint = "install pcpd (pipx install .) and call it as `pcpd`"
        raise NotFound(
            "service.no-program", "there is no `pcpd` command that a service could start", hint=hint
        )
    slug = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:40] or "vault"
    name = f"{slug}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"
    try:
        if sys.platform == "darwin":
            return _launchd(name, program, root, settings)
        return _systemd(name, program, root, environ)
    except ValueError as error:
        raise Invalid("service.path", str(error), hint="rename the folder") from error


def try_as_service(root: Path, settings: "Settings", environ: Mapping[str, str]) -> None:
    """Reads and writes what the service will; raises Broken (`service.check`) that names all that is missing."""
    problems = [
        problem
        for problem in (
            _try("read the vault", lambda: _read(root)),
            _try("write to the vault", lambda: _write(root / ".pcp")),
            _try("write its state", lambda: _write(settings.state_base)),
            _try("find git", lambda: _find_git(environ)),
        )
        if problem
    ]
    if problems:
        raise Broken(
            "service.check", f"the service could not {'; could not '.join(problems)}", hint="then try again"
        )


def _systemd(name: str, program: Path, root: Path, environ: Mapping[str, str]) -> Unit:
    from pcpd.cli.service_files import systemd_unit

    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    unit = f"pcpd-{name}.service"
    folders = {key: environ[key] for key in _FOLDERS if Path(environ.get(key, "")).is_absolute()}
    call = ("systemctl", "--user")
    return Unit(
        name=unit,
        file=home / "systemd" / "user" / unit,
        text=systemd_unit(program, root, folders).encode(),
        log=None,
        start=((*call, "daemon-reload"), (*call, "enable", "--now", unit)),
        stop=((*call, "disable", "--now", unit), (*call, "daemon-reload")),
        state=(*call, "is-active", unit),
    )


def _launchd(name: str, program: Path, root: Path, settings: "Settings") -> Unit:
    from pcpd.cli.service_files import launchd_agent

    label, domain = f"org.pcpd.{name}", f"gui/{os.getuid()}"
    file = Path.home() / "Library" / "LaunchAgents" / f"{label}.plist"
    log = settings.state_base / f"{label}.log"
    return Unit(
        name=label,
        file=file,
        text=launchd_agent(label, program, root, log),
        log=log,
        start=(("launchctl", "bootout", f"{domain}/{label}"), ("launchctl", "bootstrap", domain, str(file))),
        stop=(("launchctl", "bootout", f"{domain}/{label}"),),
        state=("launchctl", "print", f"{domain}/{label}"),
    )


def _start(unit: Unit, root: Path, settings: "Settings") -> str | None:
    """Starts the service and waits until the owner answers; gives what went wrong, in words."""
    from pcpd.client import owner

    status, said = 0, ""
    for command in unit.start:
        status, said = _called(command)
    if status:
        return f"The system did not start it: {plain(said.strip())}"
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at:
        if owner.find(root, settings):
            return None
        time.sleep(owner.STEP_S)
    return f"No owner answers after {START_S:.0f} s; the system's log tells why ({' '.join(unit.state)})."


def _called(command: Sequence[str]) -> tuple[int, str]:
    """Runs one of the system's commands; gives its status and what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, f"{command[0]}: {error}"
    return done.returncode, done.stdout + done.stderr


def _try(what: str, act: Callable[[], None]) -> str | None:
    """Gives what could not be done and why, or None."""
    try:
        act()
    except OSError as error:
        return f"{what} ({error.filename or ''}: {error.strerror or error})"
    return None


def _read(root: Path) -> None:
    (root / MARK).read_bytes()
    with os.scandir(root) as entries:
        next(entries, None)


def _write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"pcpd")


def _find_git(environ: Mapping[str, str]) -> None:
    path = _MAC_PATH if sys.platform == "darwin" else SERVICE_PATH
    seen = {"PATH": path, "HOME": environ.get("HOME", ""), "LANG": "C.UTF-8"}
    subprocess.run(["git", "--version"], env=seen, capture_output=True, check=True)

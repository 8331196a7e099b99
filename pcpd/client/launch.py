"""Starts an owner as a process of its own, which outlives the client and holds nothing of it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pcpd
from pcpd import errors
from pcpd.errors import Broken, PcpError

IDLE_EXIT = "10m"
_CLASSES: Mapping[int, type[PcpError]] = {
    1: Broken,
    2: errors.Usage,
    3: errors.Unavailable,
    4: errors.NotFound,
    5: errors.Denied,
    6: errors.Conflict,
}
_started: list["subprocess.Popen[bytes]"] = []  # kept to be reaped when they end
_LOG_BYTES = 64 * 1024


def start(root: Path, log: Path, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Starts `pcpd run --idle-exit 10m`: own session, at `/`, its first words in `log` (begun anew).

    Raises Broken (`owner.failed`) when the system starts no process.
    """
    command = [
        sys.executable, "-m", "pcpd", "--vault", os.fspath(root), "run", "--idle-exit", IDLE_EXIT, "--json",
    ]  # fmt: skip
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        words = os.open(log, flags, 0o600)
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd="/",
                env=environment(environ),
                start_new_session=True,
            )
            _started[:] = [*(each for each in _started if each.poll() is None), child]
            return child
        finally:
            os.close(words)
    except OSError as error:
        raise Broken("owner.failed", f"cannot start an owner of {root}: {error}") from error


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Gives what the owner may see of a client's environment.

    An agent's token is not its business, and git variables (set inside git hooks) would point its git at
    another repository. A pcpd that runs from a checkout stays findable from another folder.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in {"PCPD_TOKEN", "PCPD_VAULT"} and not name.startswith("GIT_")
    }
    home = checkout()
    if home is not None:
        path = [str(home), *filter(None, [environ.get("PYTHONPATH")])]
        kept["PYTHONPATH"] = os.pathsep.join(path)
    return kept


def checkout() -> Path | None:
    """Gives the folder that pcpd runs from where that is none of Python's own for packages."""
    home = Path(pcpd.__file__).resolve().parent.parent
    return None if home.name in {"site-packages", "dist-packages"} else home


def failure(status: int, log: Path) -> PcpError:
    """Gives the error that an owner ended with, in the owner's own words where it left them."""
    try:
        with log.open("rb") as words:
            words.seek(max(0, log.stat().st_size - _LOG_BYTES))
            lines = words.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    kind = _CLASSES.get(status, Broken)
    for line in reversed(lines):
        try:
            said = json.loads(line)["error"]
            return kind(said["code"], said["message"], hint=said.get("hint", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    why = lines[-1] if lines else "it said nothing"
    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return kind("owner.failed", f"the owner ended with {ended}: {why}", hint=f"look into {log}")

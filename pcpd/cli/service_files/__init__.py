"""The files by which a system starts an owner at login: a systemd user unit, a launchd agent.

The templates beside this module are working files in themselves (`systemd/` and `launchd/` at the top of
the checkout point to them). Here their two variable parts, the program and the vault, become absolute paths.
"""

import plistlib
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

UNIT = "pcpd@.service"
AGENT = "org.pcpd.vault.plist"


def systemd_unit(program: Path, vault: Path, environment: Mapping[str, str] | None = None) -> str:
    """Gives the unit of one vault. Paths may hold spaces, `%` and `$`, the vault's also quotes.

    `environment`: variables that the owner gets besides; their values are absolute paths.

    Raises ValueError for a path that is not absolute, or that a unit file cannot hold.
    """
    text = files(__package__).joinpath(UNIT).read_text(encoding="utf-8")
    if set(_plain(program)) & set("\"'\\"):
        raise ValueError(f"systemd starts no program whose path holds quotes or backslashes: {program}")
    unit = text[text.index("[Unit]") :].replace("%f", _plain(vault).replace("%", "%%"))
    start = f"ExecStart={_quoted(_plain(program))} --vault {_quoted(_plain(vault)).replace('$', '$$')} run"
    unit = re.sub(r"^ExecStart=.*$", lambda _: start, unit, flags=re.MULTILINE)
    more = "".join(
        f" {_quoted(f'{name}={_plain(Path(path))}')}" for name, path in (environment or {}).items()
    )
    return re.sub(r"^Environment=.*$", lambda line: line[0] + more, unit, flags=re.MULTILINE)


def launchd_agent(label: str, program: Path, vault: Path, log: Path) -> bytes:
    """Gives the agent of one vault as a property list; what the owner says goes to `log`."""
    agent = plistlib.loads(files(__package__).joinpath(AGENT).read_bytes())
    agent |= {
        "Label": label,
        "ProgramArguments": [_plain(program), "--vault", _plain(vault), "run"],
        "StandardErrorPath": _plain(log),
    }
    return plistlib.dumps(agent)


def _plain(path: Path) -> str:
    """Gives the path as text that a line of a unit file can hold."""
    text = str(path)
    if not path.is_absolute() or any(ord(letter) < 32 for letter in text):
        raise ValueError(f"not an absolute path on one line: {text!r}")
    return text


def _quoted(text: str) -> str:
    """Quotes for systemd: specifiers (`%`) are doubled, quotes and backslashes escaped."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'

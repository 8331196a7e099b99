"""What of this pcpd goes into a client's entry: the program to start, and where its things lie."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pcpd.client import launch, programs
from pcpd.errors import Usage
from pcpd.policy import principals


def start_command() -> list[str]:
    """Gives what starts this pcpd, with absolute paths: a client has no shell and no PATH."""
    program = program_path()
    return [str(program)] if program else [sys.executable, "-m", "pcpd"]


def variables(token: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Gives the environment of a client's entry; a pcpd that runs from a checkout stays findable."""
    checkout = None if program_path() else launch.checkout()
    found = {"PYTHONPATH": str(checkout)} if checkout else {}
    return {**programs.variables(token, environ), **found}


def program_path() -> Path | None:
    """Gives the absolute path of the `pcpd` command that runs, or None where there is none (`python -m pcpd`).

    Links stay links: pipx and package managers keep them pointing to the program through upgrades.
    """
    for candidate in (Path(sys.argv[0]), Path(sys.executable).with_name("pcpd")):
        if candidate.name == "pcpd" and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    return None


def check_name(name: str | None) -> None:
    """Raises `Usage` for what no client can call a server; None is no name."""
    if name is not None and (not name.strip() or not name.isprintable()):
        raise Usage("cli.usage", f"--name cannot be {name!r}", hint="such as --name notes")


def check_principal(principal: str) -> None:
    """Raises `Usage` (`consent.principal`) for a principal that no token and no grant can be for."""
    problem = principals.problem_of(principal)
    if problem:
        raise Usage("consent.principal", problem, hint="such as agent:claude")

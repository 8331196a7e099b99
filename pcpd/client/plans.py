"""What connecting a client would do: looked at before anybody agrees, and nothing changed by it."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcpd.client import config_file, entries, programs
from pcpd.client.config_file import ConfigFile
from pcpd.client.programs import Program
from pcpd.client.receipts import Receipt, Receipts
from pcpd.errors import Conflict, Invalid, NotFound

Ask = Callable[[str, str, Mapping[str, object] | None], dict[str, Any]]
"""Asks the owner: method, route and body."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for. `grant` is the grant as the owner takes it; `file` the client's configuration file.

    `command` starts pcpd; `variables` gives the entry's environment for a token; `name` is what the client shall
    call the server, or empty. `is_named`: the person named the file. `home`: below it, a file that others can read
    is closed to them; None leaves every file's mode as it is.
    """

    program: Program
    root: Path
    grant: Mapping[str, object]
    command: Sequence[str]
    variables: Callable[[str], dict[str, str]]
    file: Path
    name: str = ""
    is_named: bool = False
    home: Path | None = None

    @property
    def principal(self) -> str:
        """Who the agent will be."""
        return str(self.grant["principal"])

    def entry(self, token: str) -> dict[str, object]:
        """Gives the client's entry."""
        return programs.entry(self.program, self.command, self.root, self.principal, self.variables(token))


@dataclass(frozen=True, slots=True)
class Plan:
    """What connecting would do, to be shown: the file as it is, the entry's name in it, and what is given.

    `is_replaced`: an entry of this vault stands there already. `former` is what an earlier connect left. `closes`:
    the file's mode becomes one for its owner alone.
    """

    wanted: Wanted
    file: ConfigFile
    name: str
    is_replaced: bool
    preview: Mapping[str, Any]
    former: Receipt | None
    receipts: Receipts
    closes: bool = False


def plan(ask: Ask, wanted: Wanted) -> Plan:
    """Looks at everything that connecting needs, and changes nothing.

    Raises what the steps would raise: a file that is no JSON or taken by another server, a grant that cannot be.
    """
    for path in (wanted.root, Path(wanted.command[0]), wanted.file):
        _check(path)
    receipts = Receipts(Path(ask("GET", "principals", None)["state"]))
    former = next(iter(receipts.of(wanted.program.name, str(wanted.file))), None)
    going = [each for each in former.grants if receipts.heir(former, each) is None] if former else []
    preview = ask("POST", "grants/preview", {**wanted.grant, "without": going})
    file = config_file.read(wanted.file)
    _check_folder(wanted, file)
    name, is_replaced = _chosen(wanted, file, former)
    file.edited(lambda text: entries.put(text, wanted.program.key, name, wanted.entry("")))
    return Plan(wanted, file, name, is_replaced, preview, former, receipts, _closes(wanted, file))


def check_name(wanted: Wanted, file: ConfigFile, name: str) -> None:
    """Raises `Conflict` (`connect.taken`) where another server's entry has the name in the file."""
    there = _there(wanted, file)
    if name in there and not programs.is_for(there[name], wanted.root):
        raise Conflict(
            "connect.taken",
            f"{wanted.file} has another server called {name}",
            hint="choose a name with --name",
        )


def cautions(planned: Plan, environ: Mapping[str, str]) -> list[str]:
    """Says what a person should know about the file before they agree."""
    wanted, file = planned.wanted, planned.file
    program, said = wanted.program, list(planned.preview["warnings"])
    if program.places and not program.is_installed(environ):
        said.append(f"{program.title} does not seem to be installed here")
    where = (wanted.file, file.target)
    if any(each.is_relative_to(wanted.root) for each in where):
        said.append(f"{wanted.file} lies in the vault, and the token in it would travel with the vault")
    elif repository := next(filter(None, map(_repository, where)), None):
        said.append(f"{wanted.file} lies in the git repository {repository}: do not commit the token")
    if planned.closes:
        said.append(
            f"its mode becomes {file.mode & 0o700:04o}, for you alone, because it will hold a token"
            f" (--keep-mode leaves it {file.mode:04o})"
        )
    elif file.data is not None and file.mode & 0o077:
        said.append(f"other users can read {wanted.file}, which will hold a token: chmod 600 it")
    if not program.reads_notes and not file.edited(entries.is_plain):
        said.append(
            f"{program.title} reads plain JSON: no comments, no comma before a bracket, no byte order mark;"
            f" {wanted.file} has some, so it may not take the file at all"
        )
    if program.expands and any(program.expands in each for each in (*wanted.command, os.fspath(wanted.root))):
        said.append(
            f"{program.title} takes {program.expands} in a path for a variable, so it may not start pcpd"
        )
    return said


def _closes(wanted: Wanted, file: ConfigFile) -> bool:
    """Tells whether the file is one of the person's own that others can read; `read` has seen whose it is."""
    if wanted.home is None or file.data is None or not file.mode & 0o077:
        return False
    return file.target.is_relative_to(os.path.realpath(wanted.home))


def _check_folder(wanted: Wanted, file: ConfigFile) -> None:
    """A client's own folder is made where it is missing; in a path that was typed, it may be a slip of the pen."""
    folder = file.target.parent
    if wanted.is_named and not folder.is_dir():
        raise NotFound(
            "connect.no-folder",
            f"{wanted.file} cannot be made: there is no folder {folder}",
            hint=f"look at the path, or make the folder: `mkdir -p {shlex.quote(os.fspath(folder))}`",
        )


def _chosen(wanted: Wanted, file: ConfigFile, former: Receipt | None) -> tuple[str, bool]:
    """Gives what the entry is called, and whether one of this vault stands there already."""
    there = _there(wanted, file)
    ours = [name for name, value in there.items() if programs.is_for(value, wanted.root)]
    if wanted.name:
        names = [wanted.name]
    elif former is not None and former.name in ours:
        names = [former.name]
    else:
        names = [*ours[:1], programs.SERVER, f"{programs.SERVER}-{_slug(wanted.root.name)}"]
    name = next((each for each in names if each not in there or each in ours), names[-1])
    check_name(wanted, file, name)
    return name, name in there


def _there(wanted: Wanted, file: ConfigFile) -> dict[str, object]:
    found = file.edited(lambda text: entries.entries(text, wanted.program.key))
    return {each.name: each.value for each in found}


def _slug(text: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in text.lower())
    return kept.strip("-") or "vault"


def _repository(path: Path) -> Path | None:
    return next((each for each in path.parents if (each / ".git").exists()), None)


def _check(path: Path) -> None:
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise Invalid(
            "connect.path",
            f"{os.fspath(path)!r} is not UTF-8, so no client's configuration can hold it",
            hint="move it to a path that is",
        ) from None

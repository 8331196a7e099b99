"""Which clients there are on this machine, and which of them are connected to a vault."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pcpd.client import config_file, entries, programs
from pcpd.client.plans import Ask
from pcpd.client.programs import Program
from pcpd.client.receipts import Receipt, Receipts
from pcpd.errors import PcpError


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """Whether one client is connected, by what one configuration file of it says.

    `state`: `connected`, or what is missing for that: `not connected`, `entry gone` (pcpd connect put it in, and
    somebody took it out), `token revoked`, `no grant`, `unreadable` (the file). `problem` says that in words, with
    what to do. `last_used` is its principal's last act, RFC 3339 UTC.
    """

    client: str
    config: str
    installed: bool
    state: str
    principal: str | None = None
    last_used: str | None = None
    problem: str | None = None


def survey(ask: Ask, root: Path, environ: Mapping[str, str]) -> list[ClientStatus]:
    """Gives the status of every known client, and of every configuration file that `pcpd connect` wrote to."""
    told = ask("GET", "principals", None)
    people = {row["principal"]: row for row in told["principals"]}
    places = {
        (each.name, str(each.file(environ))): each for each in programs.PROGRAMS if each is not programs.OTHER
    }
    left = {(each.client, each.config): each for each in Receipts(Path(told["state"])).all()}
    for client, config in left:
        program = programs.known(client)
        if program is not None:
            places[client, config] = program
    return [
        replace(
            _standing(program, Path(config), root, people, left.get((program.name, config))),
            installed=program.is_installed(environ),
        )
        for (_, config), program in places.items()
    ]


def _standing(
    program: Program, path: Path, root: Path, people: Mapping[str, Any], receipt: Receipt | None
) -> ClientStatus:
    def told(state: str, principal: str | None = None, problem: str | None = None) -> ClientStatus:
        last = people.get(principal or "", {}).get("last_used")
        return ClientStatus(program.name, str(path), False, state, principal, last, problem)

    known = None if receipt is None else receipt.principal
    again = f"`pcpd connect {program.name}` puts it right, `--undo` takes all of it back"
    try:
        there = config_file.read(path).edited(lambda text: entries.entries(text, program.key))
    except PcpError as error:
        return told("unreadable", known, error.message)
    ours = next((each.value for each in there if programs.is_for(each.value, root)), None)
    if ours is None:
        if receipt is None:
            return told("not connected")
        is_good = any(_holder(people, token) for token in receipt.tokens)
        rest = "still valid" if is_good else "revoked"
        return told("entry gone", known, f"the entry is gone from the file, its token is {rest}: {again}")
    principal = _holder(people, programs.token_id(ours))
    if principal is None:
        who = programs.principal_of(ours) or known
        return told("token revoked", who, f"the token in the entry opens nothing any more: {again}")
    if not people[principal]["grants"]:
        return told("no grant", principal, f"{principal} has no grant, so it sees nothing: {again}")
    return told("connected", principal)


def _holder(people: Mapping[str, Any], token: str | None) -> str | None:
    """Gives whose good token that is."""
    return next((name for name, row in people.items() if token in row["tokens"]), None)

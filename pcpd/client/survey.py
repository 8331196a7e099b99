"""Which clients there are on this machine, and which of them are connected to a vault."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcpd.client import config_file, entries, programs
from pcpd.client.plans import Ask
from pcpd.client.programs import Program
from pcpd.client.receipts import Receipts
from pcpd.errors import PcpError


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """Whether one client is connected, by what one configuration file of it says.

    `state`: `connected`, or what is missing for that: `not connected`, `token not valid`, `no grant`, or what is
    wrong with the file. `last_used` is its principal's last act, RFC 3339 UTC.
    """

    client: str
    config: str
    installed: bool
    state: str
    principal: str | None = None
    last_used: str | None = None


def survey(ask: Ask, root: Path, environ: Mapping[str, str]) -> list[ClientStatus]:
    """Gives the status of every known client, and of every configuration file that `pcpd connect` wrote to."""
    told = ask("GET", "principals", None)
    people = {row["principal"]: row for row in told["principals"]}
    places = {
        (each.name, str(each.file(environ))): each for each in programs.PROGRAMS if each is not programs.OTHER
    }
    for receipt in Receipts(Path(told["state"])).all():
        program = programs.known(receipt.client)
        if program is not None:
            places[receipt.client, receipt.config] = program
    return [
        _standing(program, Path(config), root, people, program.is_installed(environ))
        for (_, config), program in places.items()
    ]


def _standing(
    program: Program, path: Path, root: Path, people: Mapping[str, Any], is_installed: bool
) -> ClientStatus:
    def told(state: str, principal: str | None = None) -> ClientStatus:
        last = people.get(principal or "", {}).get("last_used")
        return ClientStatus(program.name, str(path), is_installed, state, principal, last)

    try:
        there = config_file.read(path).edited(lambda text: entries.entries(text, program.key))
    except PcpError as error:
        return told(error.message)
    ours = next((each.value for each in there if programs.is_for(each.value, root)), None)
    token = programs.token_id(ours)
    if ours is None:
        return told("not connected")
    principal = next((name for name, row in people.items() if token in row["tokens"]), None)
    if principal is None:
        return told("token not valid")
    return told("connected" if people[principal]["grants"] else "no grant", principal)

"""Commands by which a person lets agents in and out: token, grant, revoke."""

from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command, common
from pcpd.cli.output import counted, line, plain, say, styled
from pcpd.errors import Usage

RIGHTS = "read, propose, write, review, forget, record"
CATEGORIES = "semantic, episodic, procedural, profile, conversation"


@click.group("token", short_help="Make, list and revoke the tokens of agents")
def token_command() -> None:
    """Make, list and revoke the tokens of agents"""


@token_command.command("create", short_help="Make a token; it is shown this once")
@click.option("--principal", required=True, metavar="NAME", help="Whose token it is, such as agent:claude.")
@common
@click.pass_obj
def token_create(invocation: Invocation, principal: str) -> None:
    """Make a token; it is shown this once

    A principal that the context does not list yet is added as an agent. A token alone opens nothing: see
    `pcpd grant`.
    """
    made = invocation.ask("POST", "tokens", body={"principal": principal}).json()
    if invocation.is_json:
        output.document(made)
        return
    line(str(made["token"]))
    say(f"Its id is {made['id']}. Keep the token where only the agent finds it: it is not shown again.")


@token_command.command("list", short_help="List tokens, without their secrets")
@common
@click.pass_obj
def token_list(invocation: Invocation) -> None:
    """List tokens, without their secrets"""
    answer = invocation.ask("GET", "tokens").json()
    if invocation.is_json:
        output.document(answer)
        return
    rows = answer["tokens"] if isinstance(answer["tokens"], list) else []
    columns = ("id", "principal", "created_at", "revoked_at")
    output.table(columns, [[row.get(column) for column in columns] for row in rows])


@token_command.command("revoke", short_help="Revoke one token")
@click.argument("token", metavar="ID")
@common
@click.pass_obj
def token_revoke(invocation: Invocation, token: str) -> None:
    """Revoke one token, at once"""
    _revoke(invocation, {"token": token})


@command("grant", short_help="Let a principal see or change a part of the vault")
@click.argument("principal", default="")
@click.option("--rights", metavar="LIST", help=f"What it may do: {RIGHTS}.")
@click.option("--partitions", metavar="LIST", help="Where (default: the default partition).")
@click.option(
    "--categories", metavar="LIST", help=f"On which pages: {CATEGORIES} (default: all but conversation)."
)
@click.option(
    "--sensitivity",
    type=click.Choice(["normal", "sensitive"]),
    default="normal",
    show_default=True,
    help="`sensitive` covers both.",
)
@click.option("--until", metavar="DATE", help="When it ends (default: never).")
def grant_command(
    invocation: Invocation,
    *,
    principal: str,
    rights: str | None,
    partitions: str | None,
    categories: str | None,
    sensitivity: str,
    until: str | None,
) -> None:
    """Let a principal see or change a part of the vault

    Without a grant an agent sees nothing. LIST has commas between its words. Without PRINCIPAL: list the
    grants in force.
    """
    if not principal:
        _list_grants(invocation)
        return
    if not rights:
        raise Usage("cli.usage", "a grant needs --rights", hint="such as --rights read,write")
    wish = {
        "principal": principal,
        "rights": words(rights),
        "partitions": words(partitions),
        "categories": words(categories),
        "sensitivity": sensitivity,
        "until": until,
    }
    body = {name: value for name, value in wish.items() if value is not None}
    answer: dict[str, Any] = invocation.ask("POST", "grants", body=body).json()
    if invocation.is_json:
        output.document(answer)
    else:
        given = answer["grant"]
        what, places, kinds = (_cell(given[key]) for key in ("rights", "partitions", "categories"))
        word = "Granted" if answer["granted"] else "Granted already"
        say(f"{word} to {principal}: {what}. Where: {places}. On: {kinds}.")
        for each in answer["warnings"]:
            say(f"{styled('warning:', 'yellow')} {plain(each)}")


@command("revoke", short_help="Take all grants and tokens of a principal back")
@click.argument("principal")
def revoke_command(invocation: Invocation, principal: str) -> None:
    """Take all grants and tokens of a principal back, at once"""
    _revoke(invocation, {"principal": principal})


def _revoke(invocation: Invocation, body: dict[str, object]) -> None:
    """Asks for it and says what was taken back."""
    answer = invocation.ask("POST", "revoke", body=body).json()
    if invocation.is_json:
        output.document(answer)
        return
    grants, tokens = (
        value if isinstance(value := answer.get(key), int) else 0 for key in ("grants", "tokens")
    )
    taken = [] if "token" in body else [counted(grants, "grant")]
    say(f"Taken back: {', '.join([*taken, counted(tokens, 'token')])}.")


def _list_grants(invocation: Invocation) -> None:
    answer = invocation.ask("GET", "grants").json()
    if invocation.is_json:
        output.document(answer)
        return
    columns = ("principal", "rights", "partitions", "categories", "sensitivity", "until")
    rows = answer["grants"] if isinstance(answer["grants"], list) else []
    output.table(columns, [[_cell(row.get(column)) for column in columns] for row in rows])
    if answer.get("notice"):
        say(str(answer["notice"]))


def _cell(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def words(text: str | None) -> list[str] | None:
    """Gives the words of a list with commas."""
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]

"""The command mcp: the relay that MCP clients start, and the entry by which they start it."""

import json
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, common
from pcpd.cli.output import line, say
from pcpd.client import programs
from pcpd.client.programs import OTHER, PROGRAMS, SERVER, TOKEN
from pcpd.errors import Usage

_PLACEHOLDER = "put the token here: pcpd token create"


@click.group(
    "mcp", invoke_without_command=True, short_help="Relay MCP between an agent's client and the owner"
)
@click.option(
    "--principal", metavar="NAME", help="Who the agent is, such as agent:claude (default: the token tells)."
)
@common
@click.pass_context
def mcp_command(ctx: click.Context, principal: str | None) -> None:
    """Relay MCP over stdio between an agent's client and the owner

    This is what MCP clients start; `pcpd mcp config` prints their entry. The agent proves who it is by the
    token in PCPD_TOKEN. Ends with its standard input.
    """
    if ctx.invoked_subcommand:
        return
    from pcpd.client.relay import Credential, Relay

    invocation = ctx.find_object(Invocation)
    if invocation is None:
        return
    credential = Credential(principal or "", invocation.environ.get(TOKEN, ""))
    Relay(invocation.root(), invocation.settings, invocation.environ, credential).run()


@mcp_command.command("config", short_help="Print the entry for an MCP client's configuration")
@click.option("--principal", required=True, metavar="NAME", help="Who the agent is, such as agent:claude.")
@click.option(
    "--client",
    type=click.Choice([each.name for each in PROGRAMS]),
    default=OTHER.name,
    show_default=True,
    help="Whose configuration it is for.",
)
@click.option("--name", default=SERVER, show_default=True, help="What the client calls the server.")
@click.option("--token", help="The agent's token (default: a placeholder).")
@click.option("--new-token", is_flag=True, help="Make a token and put it in.")
@common
@click.pass_obj
def mcp_config(
    invocation: Invocation, principal: str, client: str, name: str, token: str | None, *, new_token: bool
) -> None:
    """Print the entry for an MCP client's configuration

    As JSON on stdout. `pcpd connect` grants and writes it into the client's file, with your consent; this is for
    those who do it by hand.
    """
    from pcpd.cli.entry import check_name, check_principal, start_command, variables

    check_principal(principal)
    check_name(name)
    if token and new_token:
        raise Usage("cli.usage", "--token and --new-token exclude each other")
    root = invocation.root()
    if new_token:
        token = str(invocation.ask("POST", "tokens", body={"principal": principal}).json()["token"])
    program = programs.known(client) or OTHER
    environment = variables(token or _PLACEHOLDER, invocation.environ)
    entry = programs.entry(program, start_command(), root, principal, environment)
    entries = {program.key: {name: entry}}
    if invocation.is_json:
        output.document(entries)
    else:
        line(json.dumps(entries, ensure_ascii=False, indent=2))
    if not token:
        say(
            f"Make the token with `pcpd token create --principal {principal}` and put it where the entry says so."
        )
    if not new_token or not _has_grant(invocation, principal):
        say(f"Without a grant the agent sees nothing: pcpd grant {principal} --rights read")


def _has_grant(invocation: Invocation, principal: str) -> bool:
    """Tells whether there is a grant to just this principal: one to `agent:a` is none to `agent:a/2` (policy)."""
    answer: dict[str, Any] = invocation.ask("GET", "grants").json()
    return any(grant["principal"] == principal for grant in answer["grants"])

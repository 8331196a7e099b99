"""The command mcp: the relay that MCP clients start, and the entry by which they start it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, common
from pcpd.cli.output import line, say
from pcpd.errors import Usage

TOKEN = "PCPD_TOKEN"  # noqa: S105 - the variable's name
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
@click.option("--name", default="pcpd", show_default=True, help="What the client calls the server.")
@click.option("--token", help="The agent's token (default: a placeholder).")
@click.option("--new-token", is_flag=True, help="Make a token and put it in.")
@common
@click.pass_obj
def mcp_config(
    invocation: Invocation, principal: str, name: str, token: str | None, *, new_token: bool
) -> None:
    """Print the entry for an MCP client's configuration

    For the `mcpServers` of Claude Desktop, Claude Code, Cursor and others, as JSON on stdout.
    """
    if token and new_token:
        raise Usage("cli.usage", "--token and --new-token exclude each other")
    root = invocation.root()
    if new_token:
        token = str(invocation.ask("POST", "tokens", body={"principal": principal}).json()["token"])
    entry = {"mcpServers": {name: server_entry(root, principal, token or _PLACEHOLDER)}}
    if invocation.is_json:
        output.document(entry)
    else:
        line(json.dumps(entry, ensure_ascii=False, indent=2))
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


def server_entry(root: Path, principal: str, token: str) -> dict[str, object]:
    """Gives what an MCP client needs to start the relay: absolute paths, since it has no shell and no PATH."""
    program = program_path()
    command = [str(program)] if program else [sys.executable, "-m", "pcpd"]
    return {
        "command": command[0],
        "args": [*command[1:], "--vault", str(root), "mcp", "--principal", principal],
        "env": {TOKEN: token},
    }


def program_path() -> Path | None:
    """Gives the absolute path of the `pcpd` command that runs, or None where there is none (`python -m pcpd`).

    Links stay links: pipx and package managers keep them pointing to the program through upgrades.
    """
    for candidate in (Path(sys.argv[0]), Path(sys.executable).with_name("pcpd")):
        if candidate.name == "pcpd" and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    return None

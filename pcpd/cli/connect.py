"""The command connect: the moment of consent, in words, and what comes of it."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pcpd.cli import consent_words, output
from pcpd.cli.consent import CATEGORIES, RIGHTS, words
from pcpd.cli.entry import start_command, variables
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import counted, line, plain, say
from pcpd.client import connecting, plans, programs
from pcpd.client.plans import Plan, Wanted
from pcpd.client.programs import OTHER, PROGRAMS, Program
from pcpd.client.receipts import Receipts
from pcpd.client.survey import survey
from pcpd.errors import Denied, NotFound, Usage

READ_AND_PROPOSE = ["read", "propose"]
READ_AND_WRITE = ["read", "write"]
TYPES_AND_PROFILE = ["semantic", "episodic", "procedural", "profile"]


@command("connect", short_help="Let an agent's client in: shows what it gets, asks, and sets it up")
@click.argument("client", default="")
@click.option("--write", is_flag=True, help="Let it write by itself, not only propose.")
@click.option("--conversations", is_flag=True, help="Let it read recorded conversations too.")
@click.option("--partitions", metavar="LIST", help="Where (default: the default partition).")
@click.option(
    "--categories", metavar="LIST", help=f"On which pages: {CATEGORIES} (default: all but the last)."
)
@click.option("--rights", metavar="LIST", help=f"What it may do: {RIGHTS} (default: read,propose).")
@click.option("--sensitivity", type=click.Choice(["normal", "sensitive"]), default="normal", show_default=True,
              help="`sensitive` covers both.")  # fmt: skip
@click.option("--until", metavar="DATE", help="When the grant ends (default: never).")
@click.option("--principal", metavar="NAME", help="Who the agent is (default: agent:CLIENT).")
@click.option(
    "--config", metavar="FILE", help="The client's configuration file (default: where it lies usually)."
)
@click.option("--name", default="", metavar="NAME", help="What the client calls the server (default: pcpd).")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--dry-run", is_flag=True, help="Show what it would get, and change nothing.")
@click.option("--undo", is_flag=True, help="Take it back: grant, token and entry.")
def connect_command(invocation: Invocation, *, client: str, undo: bool, **options: Any) -> int:
    """Let an agent's client in: shows what it gets, asks, and sets it up

    CLIENT is claude-desktop, claude-code, cursor, vscode, windsurf, zed, gemini-cli or other. Without it: lists
    them, and which are connected. Its configuration file gets an entry that starts `pcpd mcp` with a token of its
    own; all else in the file stays. Connecting again makes a new token and revokes the old one.
    """
    if not client:
        return _list(invocation)
    program = programs.known(client)
    if program is None:
        names = ", ".join(each.name for each in PROGRAMS)
        raise Usage("connect.unknown", f"no client called {client!r} is known", hint=f"choose from {names}")
    if undo:
        return _undo(invocation, program, options["config"])
    return _connect(invocation, program, options)


def _connect(invocation: Invocation, program: Program, options: Mapping[str, Any]) -> int:
    """Shows, asks, does it and tells what was done."""
    wanted = _wanted(invocation, program, options)
    planned = plans.plan(lambda *asked: _ask(invocation, *asked), wanted)
    cautions = plans.cautions(planned, invocation.environ)
    is_asked = not options["yes"] and not options["dry_run"]
    if is_asked and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Usage(
            "connect.no-terminal",
            "consent needs your answer, and there is no terminal to ask on",
            hint="see what it would get with --dry-run; --yes agrees to it",
        )
    if is_asked or not invocation.is_json:
        for each in consent_words.shown(planned, cautions):
            say(each)
    if options["dry_run"]:
        if invocation.is_json:
            output.document(_document(planned, cautions))
        return 0
    if is_asked and not click.confirm("Connect?", default=False, err=True):
        raise Denied("connect.declined", "nothing was changed", hint="run it again when you want to")
    done = connecting.connect(lambda *asked: _ask(invocation, *asked), planned)
    if invocation.is_json:
        backup = None if done.backup is None else str(done.backup)
        output.document({**_document(planned, cautions), "granted": done.grant, "token_id": done.token,
                         "backup": backup, "next": program.again})  # fmt: skip
    else:
        say(f"{program.title} is connected. Next: {program.again}.")
        say(f"To take it back: pcpd connect {program.name} --undo")
    return 0


def _wanted(invocation: Invocation, program: Program, options: Mapping[str, Any]) -> Wanted:
    """Gives what the options ask for."""
    if options["rights"] and options["write"]:
        raise Usage("cli.usage", "--rights and --write exclude each other")
    principal = options["principal"] or f"agent:{program.name}"
    categories = words(options["categories"]) or list(TYPES_AND_PROFILE)
    if options["conversations"] and "conversation" not in categories:
        categories.append("conversation")
    wish = {
        "principal": principal,
        "rights": words(options["rights"]) or (READ_AND_WRITE if options["write"] else READ_AND_PROPOSE),
        "partitions": words(options["partitions"]),
        "categories": categories,
        "sensitivity": options["sensitivity"],
        "until": options["until"],
    }
    return Wanted(
        program=program,
        root=invocation.root(),
        grant={name: value for name, value in wish.items() if value is not None},
        command=start_command(),
        variables=lambda token: variables(token, invocation.environ),
        file=_file(invocation, program, principal, options["config"]),
        name=options["name"],
    )


def _file(invocation: Invocation, program: Program, principal: str, given: str | None) -> Path:
    """Gives the configuration file: for a client that is not known, one beside the vault's state."""
    if given:
        return Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100 - links stay links
    if program is OTHER:
        return (
            _receipts(invocation).folder / "other" / f"{principal.replace(':', '-').replace('/', '-')}.json"
        )
    return program.file(invocation.environ)


def _undo(invocation: Invocation, program: Program, config: str | None) -> int:
    """Takes back what connects of a client gave."""
    receipts = _receipts(invocation)
    file = None if config is None else str(_file(invocation, program, "", config))
    found = receipts.of(program.name, file)
    if not found:
        raise NotFound(
            "connect.absent",
            f"pcpd connect has connected no {program.name} to this vault"
            + (f" through {file}" if file else ""),
            hint="`pcpd connect` lists what is connected; `pcpd revoke PRINCIPAL` takes grants and tokens back",
        )
    if len(found) > 1:
        files = ", ".join(shlex.quote(each.config) for each in found)
        raise Usage(
            "connect.several",
            f"{program.name} is connected through {len(found)} files",
            hint=f"name one with --config: {files}",
        )
    done = connecting.undo(lambda *asked: _ask(invocation, *asked), receipts, found[0], invocation.root())
    if done.trouble is not None:
        done.trouble.message += "; its grant and token are taken back"
        raise done.trouble
    if invocation.is_json:
        said = {"client": program.name, "principal": done.principal, "config": done.config,
                "tokens": done.tokens, "grants": done.grants, "entry_removed": done.is_out}  # fmt: skip
        output.document(said)
        return 0
    say(
        f"Taken back from {done.principal}: {counted(done.grants, 'grant')}, {counted(done.tokens, 'token')}."
    )
    what = "The entry is out of" if done.is_out else "There was no entry of this vault any more in"
    say(f"{what} {plain(done.config)}. To let {program.title} see that: {program.again}.")
    return 0


def _list(invocation: Invocation) -> int:
    """Lists the known clients and how they stand."""
    rows = survey(lambda *asked: _ask(invocation, *asked), invocation.root(), invocation.environ)
    if invocation.is_json:
        output.document({"clients": [asdict(row) for row in rows]})
        return 0
    output.table(
        ("client", "here", "state", "principal", "last used", "file"),
        [
            (
                row.client,
                "yes" if row.installed else "no",
                row.state,
                row.principal,
                row.last_used,
                row.config,
            )
            for row in rows
        ],
    )
    if sys.stdout.isatty():
        line()
        line(
            "pcpd connect CLIENT shows what a client would get, and asks. For any other client: pcpd connect other"
        )
    return 0


def _receipts(invocation: Invocation) -> Receipts:
    return Receipts(Path(_ask(invocation, "GET", "principals", None)["state"]))


def _ask(
    invocation: Invocation, method: str, route: str, body: Mapping[str, object] | None
) -> dict[str, Any]:
    answer: dict[str, Any] = invocation.ask(method, route, body=body).json()
    return answer


def _document(planned: Plan, cautions: list[str]) -> dict[str, object]:
    """Gives a plan as JSON; nowhere in it is the token."""
    wanted, preview = planned.wanted, planned.preview
    return {
        "client": wanted.program.name,
        "principal": wanted.principal,
        "grant": preview["grant"],
        "pages": preview["pages"],
        "config": str(wanted.file),
        "name": planned.name,
        "warnings": cautions,
    }

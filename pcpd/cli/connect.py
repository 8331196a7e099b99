"""The command connect: the moment of consent, in words, and what comes of it."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pcpd.cli import consent_words, output
from pcpd.cli.consent import CATEGORIES, RIGHTS, words
from pcpd.cli.consent_words import sentence
from pcpd.cli.entry import check_name, start_command, variables
from pcpd.cli.errors import status_of
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import line, say
from pcpd.client import connecting, plans, programs
from pcpd.client.plans import Plan, Wanted
from pcpd.client.programs import OTHER, PROGRAMS, Program
from pcpd.client.receipts import Receipt, Receipts
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
@click.option("--name", metavar="NAME", help="What the client calls the server (default: pcpd).")
@click.option("--keep-mode", is_flag=True, help="Leave the file's mode, also where others can read it.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.option("--undo", is_flag=True, help="Take it back: grant, token and entry.")
def connect_command(invocation: Invocation, *, client: str, undo: bool, **options: Any) -> int:
    """Let an agent's client in: shows what it gets, asks, and sets it up

    CLIENT is claude-desktop, claude-code, cursor, vscode, windsurf, zed, gemini-cli or other. Without it: lists
    them, and which are connected. Its configuration file gets an entry that starts `pcpd mcp` with a token of its
    own; all else in the file stays, but for its mode: a file of yours that others can read becomes yours alone.
    Connecting again makes a new token and revokes the old one. Answering no changes nothing; the exit status is 5.
    """
    if not client:
        if undo or any(value not in {None, False, "normal"} for value in options.values()):
            raise Usage(
                "cli.usage", "these options need a CLIENT", hint="`pcpd connect` alone lists the clients"
            )
        return _list(invocation)
    program = programs.known(client)
    if program is None:
        names = [each.name for each in PROGRAMS]
        near = [each for each in names if each.startswith(client)] or get_close_matches(client, names, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        hint += f"choose from {', '.join(names)}"
        raise Usage("connect.unknown", f"no client called {client!r} is known", hint=hint)
    if undo:
        return _undo(invocation, program, options)
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
    if is_asked and not _agreed():
        if invocation.is_json:
            raise Denied("connect.declined", "nothing was changed", hint="run it again when you want to")
        say("Nothing was changed.")
        return status_of(Denied("connect.declined", ""))
    done = connecting.connect(lambda *asked: _ask(invocation, *asked), planned)
    if invocation.is_json:
        backup = None if done.backup is None else str(done.backup)
        output.document({**_document(planned, cautions), "granted": done.grant, "token_id": done.token,
                         "backup": backup, "next": program.to_take_up(planned.name)})  # fmt: skip
    else:
        say(f"{sentence(program.title)} is connected. Next: {program.to_take_up(planned.name)}.")
        say(f"To take it back: {_way_back(invocation, program, options['config'])}")
    return 0


def _agreed() -> bool:
    """Asks; whoever ends the program instead of answering hears what that comes to."""
    try:
        return click.confirm("Connect?", default=False, err=True)
    except click.Abort:
        say("\nNothing was changed.")
        raise


def _way_back(invocation: Invocation, program: Program, config: str | None) -> str:
    """Gives the command that takes it back, with what it needs to mean the same vault and file."""
    vault = ["--vault", str(invocation.root())] if invocation.vault else []
    file = ["--config", str(_file(invocation, program, "", config))] if config else []
    return shlex.join(["pcpd", *vault, "connect", program.name, "--undo", *file])


def _wanted(invocation: Invocation, program: Program, options: Mapping[str, Any]) -> Wanted:
    """Gives what the options ask for."""
    if options["rights"] and options["write"]:
        raise Usage("cli.usage", "--rights and --write exclude each other")
    check_name(options["name"])
    home = invocation.environ.get("HOME")
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
        name=options["name"] or "",
        is_named=bool(options["config"]),
        home=Path(home) if home and not options["keep_mode"] else None,
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


def _undo(invocation: Invocation, program: Program, options: Mapping[str, Any]) -> int:
    """Takes back what connects of a client gave, or tells what that would be."""
    config, is_dry = options["config"], bool(options["dry_run"])
    receipts = _receipts(invocation)
    receipt = _connection(
        receipts, program, None if config is None else _file(invocation, program, "", config)
    )
    act = connecting.foresee_undo if is_dry else connecting.undo
    done = act(lambda *asked: _ask(invocation, *asked), receipts, receipt, invocation.root())
    if done.trouble is not None:
        done.trouble.message += f"; its grant and token {'would be' if is_dry else 'are'} taken back"
        raise done.trouble
    if invocation.is_json:
        said = {"client": program.name, "principal": done.principal, "config": done.config,
                "tokens": done.tokens, "grants": done.grants, "entry_removed": done.is_out,
                "file_removed": done.is_gone, "dry_run": is_dry}  # fmt: skip
        output.document(said)
        return 0
    for each in consent_words.taken_back(done, program, is_dry=is_dry):
        say(each)
    return 0


def _connection(receipts: Receipts, program: Program, file: Path | None) -> Receipt:
    """Gives the one connection that is meant. Raises `NotFound` (`connect.absent`), `Usage` (`connect.several`)."""
    found = receipts.of(program.name, None if file is None else str(file))
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
    return found[0]


def _list(invocation: Invocation) -> int:
    """Lists the known clients and how they stand."""
    rows = survey(lambda *asked: _ask(invocation, *asked), invocation.root(), invocation.environ)
    if invocation.is_json:
        output.document({"clients": [asdict(row) for row in rows]})
        return 0
    told = [
        (row.client, "yes" if row.installed else "no", row.state, row.principal, row.last_used)
        for row in rows
    ]
    columns = ("client", "here", "state", "principal", "principal last used")
    if not sys.stdout.isatty():
        more = [(row.config, row.problem) for row in rows]
        output.table(
            (*columns, "file", "problem"), [(*row, *rest) for row, rest in zip(told, more, strict=True)]
        )
        return 0
    home = invocation.environ.get("HOME", "")
    notes = [(output.short_path(row.config, home), *([row.problem] if row.problem else [])) for row in rows]
    output.table(columns, told, notes=notes)
    line()
    line("pcpd connect CLIENT shows what a client would get, and asks.")
    line("For any other client: pcpd connect other")
    return 0


def _receipts(invocation: Invocation) -> Receipts:
    return Receipts(Path(_ask(invocation, "GET", "principals", None)["state"]))


def _ask(
    invocation: Invocation, method: str, route: str, body: Mapping[str, object] | None
) -> dict[str, Any]:
    answer: dict[str, Any] = invocation.ask(method, route, body=body).json()
    return answer


def _document(planned: Plan, cautions: list[str]) -> dict[str, object]:
    """Gives a plan as JSON; nowhere in it is the token. `pages` are what all grants together let it read."""
    wanted, preview = planned.wanted, planned.preview
    return {
        "client": wanted.program.name,
        "principal": wanted.principal,
        "grant": preview["grant"],
        "replaces": preview["replaces"],
        "keeps": preview["keeps"],
        "pages": preview["pages"],
        "config": str(wanted.file),
        "name": planned.name,
        "warnings": cautions,
    }

"""The command `pcpd`: what is common to all commands, and the edge at which every error ends.

Exit status: 0 done, 1 failed, 2 usage, 3 owned elsewhere or unavailable, 4 not found, 5 denied, 6 conflict,
130 interrupted. Results go to stdout, all else to stderr; a closed pipe ends quietly with 0, since what was
asked for was done. With --json, stdout holds one JSON document, and an error is one on stderr.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from pcpd import __version__
from pcpd.cli import errors
from pcpd.cli.invocation import Invocation, common
from pcpd.errors import PcpError

COMMANDS = {
    "init": "owner",
    "run": "owner",
    "status": "upkeep",
    "search": "search",
    "read": "pages",
    "list": "search",
    "links": "search",
    "recent": "search",
    "log": "history",
    "diff": "history",
    "show": "history",
    "restore": "history",
    "undo": "undo",
    "write": "pages",
    "edit": "edit",
    "move": "pages",
    "remove": "pages",
    "review": "review",
    "accept": "upkeep",
    "doctor": "upkeep",
    "rebuild": "upkeep",
    "connect": "connect",
    "token": "consent",
    "grant": "consent",
    "revoke": "consent",
    "access": "access",
    "pause": "access",
    "resume": "access",
    "audit": "audit",
    "mcp": "mcp",
    "config": "config",
    "service": "service",
}


class ClosedPipeError(Exception):
    """Nobody reads any more."""


class Commands(click.Group):
    """Loads a command's module when the command is asked for: a start costs what its command needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Gives all names, in the order of a first day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Gives one command, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"pcpd.cli.{COMMANDS[cmd_name]}")
        command = getattr(module, f"{cmd_name}_command")
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; takes a closed pipe out of click's hands, which would make it a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipeError from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names near commands when one is not known."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=3)
            also = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{also}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=Commands, context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pcpd", message="%(prog)s %(version)s")
@common
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Serve a folder of Markdown to you and your agents, indexed and versioned

    Commands find the vault by --vault, else by PCPD_VAULT, else around the current folder. They talk to the
    process that owns the vault, and start one where there is none.

    Exit status: 0 done, 1 failed, 2 usage, 3 owned elsewhere or unavailable, 4 not found, 5 denied,
    6 conflict.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


def run(arguments: Sequence[str]) -> int:
    """Runs one command; gives the exit status. Nothing passes this edge."""
    is_json = "--json" in arguments
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # text streams both
        status = cli.main(
            list(arguments), prog_name="pcpd", standalone_mode=False, obj=Invocation(os.environ)
        )
        sys.stdout.flush()
    except (ClosedPipeError, BrokenPipeError):
        _forget_stdout()
        return 0
    except (click.Abort, KeyboardInterrupt):
        return errors.INTERRUPTED
    except (PcpError, click.ClickException, OSError) as error:
        return errors.tell(error, is_json=is_json)
    except Exception as error:  # the outermost edge: a fault of ours, told as one
        if os.environ.get("PCPD_DEBUG"):
            raise
        return errors.tell(errors.fault(error), is_json=is_json)
    return status if isinstance(status, int) else 0


def main() -> NoReturn:
    """The entry point of the `pcpd` command."""
    sys.exit(run(sys.argv[1:]))


def _forget_stdout() -> None:
    """Keeps Python from lamenting, at its end, the bytes that nobody reads."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

"""Commands that make a vault and own it: init, run."""

import contextlib
import re
import shlex
import time
from pathlib import Path

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import plain, say
from pcpd.errors import Unavailable, Usage

HANDOVER_S = 10.0
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A time such as 90s, 10m or 1h; a bare number is seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Gives seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value), re.ASCII)
        if match is None:
            self.fail(f"{value!r} is no duration: write it as 90s, 10m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@command("init", short_help="Make a folder a vault")
@click.argument("folder", metavar="DIR", default="")
@click.option(
    "--review/--no-review",
    default=True,
    show_default=True,
    help="Whether what agents may only propose waits for your review.",
)
@click.option("--new-id", is_flag=True, help="Give a copied vault an id of its own.")
def init_command(invocation: Invocation, folder: str, *, review: bool, new_id: bool) -> None:
    """Make a folder a vault

    Writes .pcp/context.yaml, and begins a git history where there is none. Your files stay as they are. A
    folder that is a vault already is left alone.
    """
    from pcpd.daemon import begin

    named = folder or invocation.vault
    if not named:
        raise Usage("cli.usage", "DIR is missing", hint="`pcpd init .` makes this folder a vault")
    root = Path(named).expanduser().resolve()
    begun = begin(root, features=("review",) if review else (), new_id=new_id)
    name = f"{plain(root)} ({begun.context.id})"
    if invocation.is_json:
        made = {"root": str(root), "id": begun.context.id, "features": list(begun.context.features)}
        output.document({**made, "created": begun.created, "history": begun.history or None})
    elif begun.created:
        say(f"{name} is a vault now. Serve it with: pcpd --vault {shlex.quote(str(root))} run")
    else:
        say(f"{name} has a new id." if new_id else f"{name} is a vault already; nothing was changed.")
    if begun.history and not invocation.is_json:
        say(f"No history is kept: {plain(begun.history)}")


@command("run", short_help="Own the vault: watch, index, version and serve it")
@click.option(
    "--idle-exit", type=Duration(), metavar="TIME", help="End when unused for so long (default: never)."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve HTTP on this port of localhost (default: the setting `port`, else any free one).",
)
def run_command(invocation: Invocation, idle_exit: float | None, port: int | None) -> int:
    """Own the vault: watch, index, version and serve it, until interrupted

    Says `ready http://127.0.0.1:PORT` on stderr once the vault is read. One process owns a vault at a time: a
    second one says who and ends with status 3; an owner that a command started hands over.
    """
    root, settings = invocation.root(), invocation.settings
    _ask_for_the_vault(root, invocation, is_lasting=idle_exit is None)
    from pcpd.daemon import run

    return int(
        run(root, settings, announce=lambda url: say(f"ready {url}"), idle_exit_s=idle_exit, port=port)
    )


def _ask_for_the_vault(root: Path, invocation: Invocation, *, is_lasting: bool) -> None:
    """Makes an owner that a client started hand over; raises Unavailable where another one stays."""
    from pcpd.client import owner

    present = owner.find(root, invocation.settings)
    if present is None:
        return
    if is_lasting and owner.hand_over(present, reason="pcpd run"):
        ends_at = time.monotonic() + HANDOVER_S
        while time.monotonic() < ends_at:
            present = owner.find(root, invocation.settings)
            if present is None:
                return
            time.sleep(owner.STEP_S)
    raise Unavailable(
        "vault.owned",
        f"process {present.pid} owns {root} already",
        hint="`pcpd status` tells about it; commands and agents use it as it is",
        details={"pid": present.pid, "version": present.version},
    )

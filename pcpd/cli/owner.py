"""Commands that make a vault and own it: init, run."""

import contextlib
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from pcpd.cli import output
from pcpd.cli.invocation import MARK, Invocation, command
from pcpd.cli.output import plain, say
from pcpd.errors import Unavailable, Usage

HANDOVER_S = 10.0  # how long an owner that hands over may take until its lock is free
NAMED_S = 2.0  # how long an owner that has the lock may take until its socket says who it is
STEP_S = 0.05
if TYPE_CHECKING:
    from pcpd.settings import Settings

T = TypeVar("T")

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
    from pcpd.daemon import initialise

    named = folder or invocation.vault
    if not named:
        raise Usage("cli.usage", "DIR is missing", hint="`pcpd init .` makes this folder a vault")
    root = Path(named).expanduser().resolve()
    features = ("review",) if review else ()
    made = _unowned(
        root,
        invocation.settings,
        lambda: initialise(root, invocation.settings, features=features, new_id=new_id),
    )
    if invocation.is_json:
        output.document(made)
        return
    name = f"{plain(root)} ({made['id']})"
    if made["created"]:
        say(f"{name} is a vault now. Serve it with: pcpd --vault {shlex.quote(str(root))} run")
        if outer := next((each for each in root.parents if (each / MARK).is_file()), None):
            say(f"It lies in the vault {plain(outer)}, which goes on serving its pages too.")
    else:
        say(f"{name} has a new id." if new_id else f"{name} is a vault already; nothing was changed.")
    if made["history"]:
        say(f"No history is kept: {plain(made['history'])}")


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
    from pcpd.daemon import run

    root, settings = invocation.root(), invocation.settings
    is_lasting = idle_exit is None
    hands_over, ends_at = False, time.monotonic() + HANDOVER_S
    while True:
        hands_over = _ask_for_the_vault(root, settings, is_lasting=is_lasting) or hands_over
        try:
            return run(root, settings, announce=_announce, idle_exit_s=idle_exit, port=port)
        except Unavailable as error:
            if error.code != "vault.owned" or not is_lasting or time.monotonic() > ends_at:
                raise
            if not hands_over and time.monotonic() > ends_at - HANDOVER_S + NAMED_S:
                raise
        time.sleep(STEP_S)


def _ask_for_the_vault(root: Path, settings: "Settings", *, is_lasting: bool) -> bool:
    """Makes an owner that a client started hand over; tells whether one does.

    Raises Unavailable (`vault.owned`), which names the owner, where it stays.
    """
    from pcpd.client import owner

    present = owner.find(root, settings)
    if present is None:
        return False
    if is_lasting and owner.hand_over(present):
        return True
    raise Unavailable(
        "vault.owned",
        f"process {present.pid} owns {root} already",
        hint="`pcpd status` tells about it; commands and agents use it as it is",
        details={"pid": present.pid, "version": present.version},
    )


def _unowned(root: Path, settings: "Settings", act: Callable[[], T]) -> T:
    """Does what cannot be done to an owned vault, once an owner that a command started has handed over."""
    from pcpd.client import owner

    has_agreed, ends_at = False, time.monotonic() + HANDOVER_S
    while True:
        try:
            return act()
        except Unavailable as error:
            if error.code != "vault.owned" or time.monotonic() > ends_at:
                raise
            present = owner.find(root, settings)
            has_agreed = has_agreed or (present is not None and owner.hand_over(present))
            if not has_agreed:
                raise
        time.sleep(STEP_S)


def _announce(url: str) -> None:
    """Says the line that scripts wait for; nobody need be there to read it."""
    with contextlib.suppress(OSError):
        say(f"ready {url}")

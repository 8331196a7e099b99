"""The command that takes an agent's act back: undo."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.errors import EXIT
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import line, plain, say, styled
from pcpd.errors import Conflict

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_DONE = {
    "restored": "it says again what it said before",
    "merged": "taken out of what it says now; what changed since stays",
    "removed": "the page that was made is gone",
    "moved": "it is back at its place",
    "unchanged": "nothing to do: it is as it was before",
}


@command("undo", short_help="Take back the last act of an agent, or a given one")
@click.argument("act", required=False)
@click.option("--principal", metavar="NAME", help="The last act of NAME, such as agent:claude.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
def undo_command(invocation: Invocation, act: str | None, principal: str | None, *, dry_run: bool) -> int:
    """Take back the last act of an agent, or a given one, as a new version

    ACT is a version from `pcpd log` or the id of a row of `pcpd audit --json`; without it, the last act of an agent
    that was not taken back yet. What changed on the page since is kept: the two are merged. Where both changed the same
    place, that is shown, nothing is changed, and the exit status is 6.
    """
    body = {"act": act, "principal": principal, "dry_run": dry_run}
    answer: dict[str, Any] = invocation.ask("POST", "undo", body=body).json()
    if invocation.is_json:
        output.document(answer)
    else:
        for text in _told(answer, dry_run=dry_run):
            line(text)
    return EXIT[Conflict] if answer["outcome"] == "clash" else 0


def _told(answer: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    """Gives what is said of it, a line each."""
    who, at, rev = (plain(answer[key]) for key in ("principal", "at", "rev"))
    say(f"{plain(answer['subject'])}, by {who or 'you'} at {at} (version {rev[:12]})")
    if answer["outcome"] == "clash":
        say("Both this act and what came after changed the same place. Nothing was changed:")
        for clash in answer["clashes"]:
            yield from _clash(clash)
        say(f"Edit {plain(answer['path'])} by hand, or `pcpd restore` one of its versions.")
        return
    for text in answer["diff"].splitlines():
        colour = _COLOURS.get(text[:1]) if sys.stdout.isatty() else None
        yield styled(plain(text), colour) if colour else plain(text)
    would = "Would be: " if dry_run else ""
    say(f"{would}{plain(answer['path'])}: {_DONE[answer['outcome']]}")


def _clash(clash: Mapping[str, Any]) -> Iterator[str]:
    """Shows each side of what clashes."""
    yield styled(f"{plain(clash['key']) or 'the text'}:", "cyan")
    for side, what in (("base", "the act made it"), ("ours", "it is now"), ("theirs", "it was before")):
        said = clash[side]
        yield f"  {what}:" + (" (nothing)" if said is None else "")
        yield from (f"    {plain(each)}" for each in (said or "").splitlines())

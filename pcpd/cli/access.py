"""Commands that show and hold what agents may do: access, pause, resume."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import counted, line, plain, say, styled

EVERYBODY = "*"


@command("access", short_help="Show who can do what, where, since when and until when")
def access_command(invocation: Invocation) -> None:
    """Show who can do what, where, since when and until when

    For each agent its grants, its tokens, when it was last seen, and whether it is paused. `pcpd revoke NAME` takes
    all of it back, `pcpd pause NAME` holds it for a while.
    """
    answer: dict[str, Any] = invocation.ask("GET", "access").json()
    if invocation.is_json:
        output.document(answer)
        return
    for each in answer["principals"]:
        for text in _about(each):
            line(text)
    for text in answer["notices"]:
        say(plain(text))
    if not answer["principals"]:
        say("Nobody but you can read or write here. `pcpd connect` lets an agent in.")


@command("pause", short_help="Cut every agent off at once, or one of them, until resume")
@click.argument("principal", required=False)
def pause_command(invocation: Invocation, principal: str | None) -> None:
    """Cut every agent off at once, or one of them, until resume

    Open connections end, and every call is refused with `access.paused`, also after a restart. Grants and tokens stay
    as they are. Without a NAME everybody with a token is paused.
    """
    answer = invocation.ask("POST", "pause", body={"principal": principal}).json()
    _tell(invocation, answer, f"Paused: {plain(principal or 'every agent')}.")


@command("resume", short_help="Let paused agents back")
@click.argument("principal", required=False)
def resume_command(invocation: Invocation, principal: str | None) -> None:
    """Let paused agents back: all of them, or one"""
    answer: dict[str, Any] = invocation.ask("POST", "resume", body={"principal": principal}).json()
    _tell(invocation, answer, f"Ended: {counted(answer['resumed'], 'pause')}.")


def _tell(invocation: Invocation, answer: Mapping[str, Any], done: str) -> None:
    if invocation.is_json:
        output.document(dict(answer))
        return
    names = [plain("every agent" if each == EVERYBODY else each) for each in answer["paused"]]
    say(f"{done} Paused now: {', '.join(names) or 'nobody'}.")


def _about(standing: Mapping[str, Any]) -> Iterator[str]:
    """Gives what is to be said of one principal, a line each."""
    seen = f"last seen {plain(standing['last_used'])}" if standing["last_used"] else "never seen"
    held = (
        styled(f", paused since {plain(standing['paused_since'])}", "red") if standing["paused_since"] else ""
    )
    yield f"{plain(standing['principal'])}: {seen}{held}"
    for grant in standing["grants"]:
        rights, places, kinds = (
            plain(", ".join(grant[key])) for key in ("rights", "partitions", "categories")
        )
        also = ", also sensitive ones" if grant["sensitivity"] == "sensitive" else ""
        since = f" Since {plain(grant['since'])}." if grant["since"] else ""
        end = "Ended" if grant["has_ended"] else "Until"
        until = f" {end} {plain(grant['until'])}." if grant["until"] else ""
        yield f"  may {rights} in {places}: {kinds}{also}.{since}{until}"
    for token in standing["tokens"]:
        label = f" ({plain(token['label'])})" if token["label"] else ""
        yield f"  token {plain(token['id'])}{label}, made {plain(token['created_at'])}"
    for note in standing["notes"]:
        yield f"  {styled('note:', 'yellow')} {plain(note)}"

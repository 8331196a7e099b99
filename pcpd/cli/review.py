"""The command review: what agents proposed, and what the person decides about it."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from pcpd.cli import output, proposals, review_walk, review_words
from pcpd.cli.errors import EXIT
from pcpd.cli.invocation import Invocation, common
from pcpd.cli.output import counted, say
from pcpd.cli.proposals import Item
from pcpd.errors import Conflict, Invalid, NotFound, Usage

F = TypeVar("F", bound=Callable[..., Any])
NOT_FOUND = "proposal.not-found"


def _narrowed(command: F) -> F:
    """Adds the options that choose among proposals."""
    for option in (
        click.option(
            "--page-under",
            "under",
            metavar="FOLDER",
            default="",
            help="Only of pages in this folder and below.",
        ),
        click.option(
            "--by", metavar="NAME", default="", help="Only by this principal, such as agent:claude."
        ),
    ):
        command = option(command)
    return command


def _sub(name: str, short_help: str) -> Callable[[Callable[..., Any]], click.Command]:
    def made(function: Callable[..., Any]) -> click.Command:
        return review_command.command(name, short_help=short_help)(common(click.pass_obj(function)))

    return made


@click.group(
    "review",
    invoke_without_command=True,
    short_help="Decide what agents proposed: approve, edit, reject",
)
@click.option("--interactive", is_flag=True, help="Go through them one by one, as `pcpd review next` does.")
@click.option("--rejected", is_flag=True, help="List what was rejected instead.")
@_narrowed
@common
@click.pass_context
def review_command(
    ctx: click.Context, *, by: str, under: str, interactive: bool, rejected: bool
) -> int | None:
    """Decide what agents proposed: approve, edit, reject

    Alone, it lists what waits for you, the oldest first. State `open` can be approved as it is; `stale`: the page
    changed since, and both still go together; `conflict`: they do not; `orphan`: the page is gone.

    ID is an id of that list, its beginning where only one has it, or the page's path.
    """
    if ctx.invoked_subcommand is not None:
        return None
    invocation: Invocation = ctx.obj
    if interactive:
        return _walk(invocation, by, under)
    items = proposals.waiting(invocation, state="rejected" if rejected else "open")
    items = proposals.chosen(items, by=by, under=under)
    if invocation.is_json:
        output.document({"items": items, "total": len(items), "cursor": None})
        return 0
    _table(items)
    say(f"{counted(len(items), 'proposal')} {'rejected' if rejected else 'waiting'}.{_next(items, rejected)}")
    return 0


@_sub("show", "Show what a proposal would change, word by word")
@click.argument("id_", metavar="ID")
@click.option(
    "--context", default=review_words.CONTEXT, show_default=True, type=click.IntRange(0), help="Lines."
)
def review_show(invocation: Invocation, id_: str, context: int) -> None:
    """Show what a proposal would change, word by word

    In colour on a terminal; else `[-what would go-]` and `{+what would come+}`. Where the page has changed in the same
    places, both sides are shown.
    """
    shown = proposals.shown(invocation, proposals.named(invocation, [id_], state="all")[0])
    if invocation.is_json:
        output.document(shown)
        return
    review_walk.show(shown, context=context)


@_sub("approve", "Let proposals become pages")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--all", "is_all", is_flag=True, help="All that wait, or those that --by and --page-under name."
)
@click.option("--yes", is_flag=True, help="With --all: do not ask first.")
@_narrowed
def review_approve(
    invocation: Invocation, ids: Sequence[str], *, by: str, under: str, is_all: bool, yes: bool
) -> int:
    """Let proposals become pages

    Each is decided for itself: what conflicts is told, and left waiting (then the status is 6).
    """
    return _decide(invocation, "approve", _ids(invocation, ids, _Choice("Approve", by, under, is_all, yes)))


@_sub("reject", "Reject proposals; the same is not asked again")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--reason", default="", metavar="TEXT", help="Why; whoever proposes the same again is told.")
@click.option(
    "--all", "is_all", is_flag=True, help="All that wait, or those that --by and --page-under name."
)
@click.option("--yes", is_flag=True, help="With --all: do not ask first.")
@_narrowed
def review_reject(
    invocation: Invocation, ids: Sequence[str], *, reason: str, by: str, under: str, is_all: bool, yes: bool
) -> int:
    """Reject proposals; the same is not asked again"""
    chosen = _ids(invocation, ids, _Choice("Reject", by, under, is_all, yes))
    return _decide(invocation, "reject", chosen, reason)


@_sub("edit", "Change what is proposed, and approve that")
@click.argument("id_", metavar="ID")
@click.option(
    "--file", "source", type=click.Path(path_type=Path), help="Take the text from a file; `-`: stdin."
)
def review_edit(invocation: Invocation, id_: str, source: Path | None) -> int:
    """Change what is proposed, and approve that

    The proposed page opens in VISUAL or EDITOR; what you save becomes the page. Saved as it was, nothing is approved.
    """
    found = proposals.named(invocation, [id_])[0]
    if source is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage("review.terminal", "there is no terminal for an editor", hint="name the text with --file")
    shown = proposals.shown(invocation, found)
    if source is None:
        decided = review_walk.edit_and_approve(invocation, found, shown)
    else:
        data = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
        decided = proposals.decide_one(invocation, found, _edited_body(data, shown))
    return _told(invocation, [] if decided is None else [decided])


@_sub("next", "Go through what waits, one by one")
@_narrowed
def review_next(invocation: Invocation, *, by: str, under: str) -> int:
    """Go through what waits, one by one

    Each is shown, and one key decides: a approve, e edit and approve, r reject, s skip, q quit. What you decide is what
    you saw: a proposal that changes meanwhile is told, and waits.
    """
    return _walk(invocation, by, under)


@_sub("expire", "Take away proposals that have waited for 90 days")
def review_expire(invocation: Invocation) -> int:
    """Take away proposals that have waited for 90 days

    They stay in history. Unlike what was rejected, the same may be proposed again.
    """
    old = [str(each["id"]) for each in proposals.waiting(invocation) if each["is_expired"]]
    return _decide(invocation, "expire", old)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which proposals a command is about, where it names none, and what to ask before."""

    verb: str
    by: str
    under: str
    is_all: bool
    is_sure: bool


def _ids(invocation: Invocation, texts: Sequence[str], choice: _Choice) -> list[str]:
    """Gives the ids of what is decided. Raises `Usage` (`review.which`) where none, or both ways, are named."""
    if bool(texts) == choice.is_all or (texts and (choice.by or choice.under)):
        raise Usage(
            "review.which",
            "name proposals, or --all (with --by and --page-under), not both",
            hint="`pcpd review` lists those that wait",
        )
    if texts:
        return proposals.named(invocation, texts)
    items = proposals.chosen(proposals.waiting(invocation), by=choice.by, under=choice.under)
    if items and not choice.is_sure and sys.stdin.isatty() and sys.stdout.isatty():
        _table(items)
        click.confirm(f"{choice.verb} {counted(len(items), 'proposal')}?", abort=True, err=True)
    return [str(each["id"]) for each in items]


def _decide(invocation: Invocation, decision: str, ids: Sequence[str], reason: str = "") -> int:
    return _told(invocation, proposals.decide(invocation, ids, decision, reason))


def _told(invocation: Invocation, decided: Sequence[Item]) -> int:
    """Prints what came of each decision; gives the exit status: 6 where something could not be decided."""
    if invocation.is_json:
        output.document({"decided": decided})
    else:
        for each in decided:
            say(review_words.outcome(each))
        if not decided:
            say("Nothing was decided.")
    refused = [each for each in decided if not proposals.is_done(each)]
    if not refused:
        return 0
    return EXIT[NotFound if all(each["code"] == NOT_FOUND for each in refused) else Conflict]


def _edited_body(data: bytes, shown: Item) -> dict[str, object]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid("page.content", f"the text is not UTF-8 at byte {error.start}") from None
    return {"decision": "approve", "page": text, "if_digest": shown["digest"]}


def _walk(invocation: Invocation, by: str, under: str) -> int:
    if invocation.is_json:
        raise Usage(
            "review.terminal", "--json asks nobody", hint="use `pcpd review --json`, then approve or reject"
        )
    items = proposals.chosen(proposals.waiting(invocation), by=by, under=under)
    if not items:
        say("Nothing waits for review.")
        return 0
    return review_walk.walk(invocation, items)


def _table(items: Sequence[Item]) -> None:
    now_s, is_short = time.time(), sys.stdout.isatty()
    output.table(review_words.COLUMNS, [review_words.row(each, now_s, is_short=is_short) for each in items])


def _next(items: Sequence[Item], rejected: bool) -> str:
    return " `pcpd review next` goes through them one by one." if items and not rejected else ""

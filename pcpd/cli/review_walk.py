"""Going through what waits for review, one by one: each is shown, and one key decides it."""

import os
import sys
import termios
import tty
from collections.abc import Callable, Sequence

import click

from pcpd.cli import proposals, review_words
from pcpd.cli.edit import edited
from pcpd.cli.errors import EXIT, tell
from pcpd.cli.invocation import Invocation
from pcpd.cli.output import counted, line, say
from pcpd.cli.proposals import Item
from pcpd.errors import Conflict, Invalid, NotFound, Usage

KEYS = "a approve, e edit and approve, r reject, s skip, q quit"
LINES_SHOWN = 400
"""Lines of one proposal that are shown here; `pcpd review show` shows all."""
KEY_BYTES = 64
UNREADABLE = "\ufffd"
"""What stands for bytes that are no text: they would be lost."""
UNDECIDED = (Conflict, Invalid, NotFound)
"""Refusals that concern one proposal: it is told, and the next one is shown."""


def walk(invocation: Invocation, items: Sequence[Item]) -> int:
    """Shows each proposal and carries out what the person wants; gives the exit status.

    Raises `Usage` (`review.terminal`) where there is nobody to ask.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage(
            "review.terminal",
            "this asks one by one, and there is no terminal",
            hint="scripts use `pcpd review approve`, `reject` and `edit --file`",
        )
    status, done = 0, 0
    for number, item in enumerate(items, 1):
        line()
        say(f"{number} of {len(items)}")
        came = _one(invocation, str(item["id"]))
        if came is None:
            break
        done += came == "done"
        status = EXIT[Conflict] if came == "conflict" else status
    say(f"{counted(done, 'proposal')} decided, {len(items) - done} still waiting.")
    return status


def show(shown: Item, most: int | None = None, *, context: int = review_words.CONTEXT) -> None:
    """Prints one proposal: what it is, where it contradicts the page, and what would change."""
    for each in (*review_words.head(shown), *review_words.clashes(shown)):
        line(each)
    lines = list(review_words.difference(shown["diff"], is_coloured=is_coloured(), context=context))
    for each in lines[:most]:
        line(each)
    if most is not None and len(lines) > most:
        say(f"… {counted(len(lines) - most, 'more line')}: `pcpd review show` shows all")


def is_coloured() -> bool:
    """Tells whether colours alone can say what went and what came."""
    context = click.get_current_context(silent=True)
    return sys.stdout.isatty() and (context is None or context.find_root().color is not False)


def _one(invocation: Invocation, id_: str) -> str | None:
    """Shows one and asks until it is decided, skipped or left: done, conflict, skipped; None to quit."""
    try:
        shown = proposals.shown(invocation, id_)
    except NotFound as gone:  # decided meanwhile, by somebody else
        tell(gone, is_json=False)
        return "skipped"
    show(shown, LINES_SHOWN)
    while True:
        key = _key()
        if key == "q":
            return None
        if key == "s":
            return "skipped"
        if key in _ACTS:
            try:
                decided = _ACTS[key](invocation, id_, shown)
            except UNDECIDED as refused:
                tell(refused, is_json=False)
                return "conflict" if isinstance(refused, Conflict) else "skipped"
            if decided is not None:
                say(review_words.outcome(decided))
                return "done" if proposals.is_done(decided) else "conflict"
        else:
            say(KEYS)


def _key() -> str:
    """Asks for one key. What was typed before it was asked is thrown away, and what is more than one key is none.

    Raises `KeyboardInterrupt` for Ctrl-C; the end of input quits.
    """
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSAFLUSH)
        click.echo("Approve? [a/e/r/s/q] ", nl=False, err=True)
        typed = os.read(terminal, KEY_BYTES)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    if typed == b"\x03":
        say("")
        raise KeyboardInterrupt
    key = "q" if typed in (b"", b"\x04") else typed.decode(errors="replace").lower()
    say(key if len(key) == 1 and key.isprintable() else "")
    return key


def _approve(invocation: Invocation, id_: str, shown: Item) -> Item:
    return proposals.decide_one(invocation, id_, {"decision": "approve", "if_digest": shown["digest"]})


def _edit(invocation: Invocation, id_: str, shown: Item) -> Item | None:
    return edit_and_approve(invocation, id_, shown)


def _reject(invocation: Invocation, id_: str, shown: Item) -> Item:
    reason = click.prompt("Why (may be empty)", default="", show_default=False, err=True)
    return proposals.decide_one(
        invocation, id_, {"decision": "reject", "reason": reason, "if_digest": shown["digest"]}
    )


def edit_and_approve(invocation: Invocation, id_: str, shown: Item) -> Item | None:
    """Opens the proposed page in the person's editor and approves what they saved; None where nothing was saved."""
    page, item = shown["after"], shown["waiting"]
    if page is None or item["op"] not in {"new", "change"} or UNREADABLE in page:
        raise Invalid(
            "review.no-page", "this proposal has no text to edit", hint="approve or reject it as it is"
        )
    name = str(item["path"]).rpartition("/")[2]

    def approve(data: bytes) -> Item:
        body = {"decision": "approve", "page": data.decode(), "if_digest": shown["digest"]}
        return proposals.decide_one(invocation, id_, body)

    decided = edited(invocation, name, str(page).encode(), approve)
    if decided is None:
        say("Nothing was saved, so nothing was approved.")
    return decided


_ACTS: dict[str, Callable[[Invocation, str, Item], Item | None]] = {
    "a": _approve,
    "e": _edit,
    "r": _reject,
}

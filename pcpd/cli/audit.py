"""The command that shows what agents did: audit."""

import json
import re
import select
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from pcpd.cli import output, progress
from pcpd.cli.export import exported
from pcpd.cli.invocation import Invocation, command, page_argument
from pcpd.cli.moments import moment
from pcpd.cli.output import counted, line, plain, say, styled
from pcpd.errors import Usage

WAIT_S = 25
PAGES_SHOWN = 3
COLUMNS = ("at", "principal", "action", "channel", "outcome", "pages", "categories", "counts", "duration_ms")
WIDTHS = (20, 14, 14, 7, 8)
"""Columns that the first five cells take at least, at a terminal."""
KEY_BESIDE = (
    "What this cannot show: the key lies beside the trail, so a program of yours that knows pcpd could write a trail "
    "anew, or take the whole ledger away."
)

_AGE = re.compile(r"(\d{1,6})(d|w|y)", re.ASCII)
_DAYS = {"d": 1, "w": 7, "y": 365}


def _age(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Gives the time that is so long ago."""
    if text is None:
        return None
    age = _AGE.fullmatch(text)
    if age is None:
        raise click.BadParameter("write a number of days, weeks or years, such as 90d, 26w or 2y")
    try:
        return f"{datetime.now(UTC) - timedelta(days=int(age[1]) * _DAYS[age[2]]):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError as error:
        raise click.BadParameter("that is longer ago than any time") from error


@command("audit", short_help="Show what agents did, and who was refused")
@click.argument("act", type=click.Choice(["prune"]), required=False)
@click.option("--principal", metavar="NAME", help="Only what NAME did; `unknown` for strangers.")
@click.option("--action", metavar="NAME", help="Only acts of that name, such as read_page.")
@click.option(
    "--channel", type=click.Choice(["mcp", "http", "cli", "management", "disk"]), help="Only by that door."
)
@click.option(
    "--outcome", metavar="CODE", help="Only what ended so: ok, refused (whatever was not ok), or a code."
)
@click.option(
    "--category",
    type=click.Choice(["semantic", "episodic", "procedural", "profile", "conversation"]),
    help="Only acts on pages of that category.",
)
@click.option("--page", metavar="PAGE", help="Only acts that touched that page.")
@click.option(
    "--since", metavar="TIME", callback=moment, help="From then on: a date, a time, or 30m, 2h, 3d, 1w ago."
)
@click.option("--until", metavar="TIME", callback=moment, help="Before then.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Show at most this many."
)
@click.option("--cursor", help="Go on where an earlier answer ended (its `cursor`).")
@click.option("--follow", is_flag=True, help="Stay, and show each row as it comes; --json prints one a line.")
@click.option("--summary", is_flag=True, help="Show for each principal what it did in sum.")
@click.option(
    "--verify", is_flag=True, help="Check the trail, and name each row that was cut, edited or put in."
)
@click.option("--export", metavar="FILE", help="Write all rows asked for to FILE as JSON Lines; - is stdout.")
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="With prune: which rows go, such as 90d, 26w or 2y."
)
def audit_command(
    invocation: Invocation,
    act: str | None,
    *,
    export: str | None,
    older_than: str | None,
    limit: int,
    cursor: str | None,
    follow: bool,
    summary: bool,
    verify: bool,
    **asked: str | None,
) -> int:
    """Show what agents did, and who was refused

    One line an act, the newest first: when (UTC), who, what, by which door, how it ended, and which pages. The trail
    holds no text, no titles and no searches. Exit status 1 when --verify finds that it was tampered with.

    `pcpd audit prune --older-than 2y` removes old rows for good. What is left can be verified as before, and says that
    rows were removed and up to when.
    """
    if follow + summary + verify + bool(act) + bool(export) + bool(cursor) > 1 or bool(act) != bool(
        older_than
    ):
        raise Usage(
            "cli.usage",
            "choose one of --follow, --summary, --verify, --cursor, --export and prune --older-than AGE",
        )
    if older_than:
        return _prune(invocation, older_than)
    if verify:
        if any(asked.values()):
            raise Usage("cli.usage", "--verify looks at the whole trail, and takes no filter")
        return _verify(invocation)
    if asked["page"]:
        asked["page"] = page_argument(invocation.root(), asked["page"])
    if export:
        exported(invocation, asked, export)
    elif summary:
        _summarise(invocation, asked)
    elif follow:
        _follow(invocation, {**asked, "limit": limit})
    else:
        _list(invocation, {**asked, "limit": limit, "cursor": cursor})
    return 0


def _list(invocation: Invocation, query: Mapping[str, object]) -> None:
    answer: dict[str, Any] = invocation.ask("GET", "audit", query=query).json()
    if invocation.is_json:
        output.document(answer)
        return
    rows = answer["rows"]
    _show(rows, _widths(rows))
    more = f" Go on with --cursor {answer['cursor']}." if answer["cursor"] else ""
    say(f"{counted(len(rows), 'row')}.{more}" if rows else "Nothing is written down, as far as was asked.")


def _follow(invocation: Invocation, query: Mapping[str, object]) -> None:
    """Shows the last rows, then each as it comes, until Ctrl-C, or until nobody reads any more."""
    connection, hung_up = invocation.connection(), _hang_up_check()
    answer: dict[str, Any] = connection.request("GET", "audit", query=query).json()
    rows, widths = answer["rows"][::-1], _widths(answer["rows"])
    while True:
        if invocation.is_json:
            for row in rows:
                line(json.dumps(row, ensure_ascii=False))
        else:
            _show(rows, widths)
        hung_up()
        asked = {**query, "after": answer["position"], "wait": WAIT_S, "limit": 1000}
        answer = progress.wait(partial(connection.request, "GET", "audit", query=asked), hung_up).json()
        rows = answer["rows"]


def _hang_up_check() -> Callable[[], None]:
    """Gives what raises BrokenPipeError once nobody reads our output: while nothing comes, no write would tell."""
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(sys.stdout.fileno(), 0)

    def check() -> None:
        if poll.poll(0):
            raise BrokenPipeError

    return check


def _summarise(invocation: Invocation, asked: Mapping[str, object]) -> None:
    answer: dict[str, Any] = invocation.ask("GET", "audit/summary", query=asked).json()
    if invocation.is_json:
        output.document(answer)
        return
    columns = ("principal", "reads", "writes", "refused", "pages", "first_at", "last_at")
    heads = ("principal", "reads", "writes", "refused", "pages", "first", "last")
    output.table(heads, [[row[column] for column in columns] for row in answer["principals"]])
    if not answer["principals"]:
        say("Nothing is written down, as far as was asked.")


def _verify(invocation: Invocation) -> int:
    answer: dict[str, Any] = invocation.ask("GET", "audit/proof").json()
    if invocation.is_json:
        output.document(answer)
        return 0 if answer["ok"] else 1
    for fault in answer["faults"]:
        line(f"{styled('fault:', 'red')} {plain(fault['what'])}")
    rows = counted(answer["rows"], "row")
    if answer.get("pruned"):
        say(
            f"{counted(answer['pruned'], 'row')} older than {plain(answer['pruned_before'])} were removed before."
        )
    if answer["ok"]:
        say(f"The audit trail is whole: {rows}. {KEY_BESIDE}")
        return 0
    say(f"The audit trail was tampered with: {counted(len(answer['faults']), 'fault')} in {rows}.")
    return 1


def _prune(invocation: Invocation, before: str) -> int:
    answer: dict[str, Any] = invocation.ask("POST", "audit/prune", body={"before": before}).json()
    if invocation.is_json:
        output.document(answer)
    else:
        say(f"Removed {counted(answer['removed'], 'row')} older than {plain(before)}.")
    return 0


def _show(rows: Sequence[Mapping[str, Any]], widths: Sequence[int]) -> None:
    """Prints rows: aligned at a terminal, else whole, their cells with tabs between."""
    if not sys.stdout.isatty():
        for row in rows:
            line("\t".join(_whole_cells(row)))
        return
    for row in rows:
        *cells, outcome = (plain(row[column]) for column in COLUMNS[:5])
        begin = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=False))
        colour = "green" if row["outcome"] == "ok" else "red"
        line(f"{begin}  {styled(f'{outcome:{widths[4]}}', colour)}  {_what(row)}".rstrip())


def _widths(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    cells = [[plain(row[column]) for column in COLUMNS[:5]] for row in rows]
    return [max(least, *(len(row[number]) for row in cells), 0) for number, least in enumerate(WIDTHS)]


def _whole_cells(row: Mapping[str, Any]) -> list[str]:
    pages = ", ".join((*(_page(path) for path in row["paths"]), *row.get("about", ())))
    counts = ", ".join(f"{name}={number}" for name, number in row["counts"].items())
    cells = [row[column] for column in COLUMNS[:5]]
    return [plain(cell) for cell in (*cells, pages, ", ".join(row["categories"]), counts, row["duration_ms"])]


def _what(row: Mapping[str, Any]) -> str:
    """Says which pages an act touched, or whom a decision is about, some by name; else what it counted."""
    paths = [*(plain(_page(path)) for path in row["paths"]), *map(plain, row.get("about", ()))]
    if not paths:
        return ", ".join(f"{plain(name)} {number:,}" for name, number in row["counts"].items())
    more = len(paths) - PAGES_SHOWN
    return ", ".join(paths[:PAGES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _page(path: str | None) -> str:
    return "(erased)" if path is None else path

"""Commands that find pages: search, list, recent, links."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command, joined, page_argument
from pcpd.cli.moments import moment
from pcpd.cli.output import counted, line, plain, say, styled
from pcpd.errors import Usage

MOST_AT_ONCE = 1000

limited = click.option(
    "--limit",
    type=click.IntRange(1, MOST_AT_ONCE),
    default=20,
    show_default=True,
    help="Show at most this many.",
)
continued = click.option("--cursor", help="Go on where an earlier answer ended (its `cursor`).")
complete = click.option("--all", "is_all", is_flag=True, help="Show all, to the very end.")


@command(
    "search",
    short_help="Find pages by words and filters",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@limited
@continued
@complete
def search_command(
    invocation: Invocation, words: tuple[str, ...], limit: int, cursor: str | None, *, is_all: bool
) -> None:
    """Find pages by words and filters

    WORDS may hold "quoted phrases", -words that must not occur, prefix*, or, and filters such as type:, tag:,
    path:, is:proposed, before: and has:problem. The best pages come first.
    """
    query = {"q": joined(words)}
    answer = _gather(invocation, "search", "results", query, limit=limit, cursor=cursor, is_all=is_all)
    if invocation.is_json:
        output.document(answer)
        return
    for hit in answer["results"]:
        line(styled(plain(hit["path"]), "green") + "  " + styled(plain(hit["title"]), "white", is_bold=True))
        if snippet := " ".join(str(hit.get("snippet") or "").split()):
            output.indented(plain(snippet))
    _say_how_many(answer, "results", "page")


@command("list", short_help="List the pages below a folder")
@click.argument("folder", default="")
@limited
@continued
@complete
def list_command(
    invocation: Invocation, folder: str, limit: int, cursor: str | None, *, is_all: bool
) -> None:
    """List the pages below a folder by path

    Without FOLDER, those of the whole vault.
    """
    folder = "" if folder in {".", "./", "/"} else page_argument(invocation.root(), folder).strip("/")
    query = {"folder": folder}
    _show_pages(
        invocation, _gather(invocation, "pages", "pages", query, limit=limit, cursor=cursor, is_all=is_all)
    )


@command("recent", short_help="List pages, the newest first")
@click.option(
    "--since",
    metavar="TIME",
    callback=moment,
    help="Only from then on: a date, a time, or 30m, 2h, 3d, 1w ago.",
)
@limited
@continued
@complete
def recent_command(
    invocation: Invocation, limit: int, cursor: str | None, since: str | None, *, is_all: bool
) -> None:
    """List pages, the newest first"""
    asked = {"since": since} if since else {}
    _show_pages(
        invocation, _gather(invocation, "recent", "pages", asked, limit=limit, cursor=cursor, is_all=is_all)
    )


@command("links", short_help="Show what a page links to, and what links to it")
@click.argument("page", default="")
@click.option(
    "--depth",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="Show the pages within this many links.",
)
@click.option(
    "--unresolved", "of", flag_value="unresolved", help="Without PAGE: list links that lead to no page."
)
@click.option("--orphans", "of", flag_value="orphans", help="Without PAGE: list pages that no page links to.")
@limited
@continued
@complete
def links_command(
    invocation: Invocation,
    page: str,
    *,
    depth: int,
    of: str | None,
    limit: int,
    cursor: str | None,
    is_all: bool,
) -> None:
    """Show what a page links to, and what links to it

    One line a link: its direction, the other page or file, and the link as written. A target that nothing
    answers to is `unresolved`. Without PAGE, the loose ends of the whole vault: --unresolved or --orphans.
    """
    from pcpd.client.http import quoted

    if bool(page) == bool(of):
        raise Usage("cli.usage", "name a PAGE, or one of --unresolved and --orphans")
    if of:
        key = "links" if of == "unresolved" else "pages"
        found = _gather(invocation, "links", key, {"of": of}, limit=limit, cursor=cursor, is_all=is_all)
        _show_loose_ends(invocation, found)
        return
    path = quoted(page_argument(invocation.root(), page))
    answer = invocation.ask("GET", f"links/{path}", query={"depth": depth}).json()
    if invocation.is_json:
        output.document(answer)
        return
    output.table(("", "page", "link"), _edges(answer))


def _show_loose_ends(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Prints unresolved links, or pages that nothing links to."""
    if invocation.is_json:
        output.document(answer)
        return
    output.table(("page", "link"), [(edge["source"], _written(edge["link"])) for edge in answer["links"]])
    for path in answer["pages"]:
        line(plain(path))
    if answer["cursor"]:
        say(f"There are more: go on with --cursor {answer['cursor']}, or see --all.")


def _edges(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Gives a row for each link, then for each page that is further away."""
    for edge in answer["outgoing"]:
        link = edge["link"]
        found = edge["target"] or edge.get("file")
        yield ("to" if found else "unresolved", found or link["target"], _written(link))
    for edge in answer["backlinks"]:
        yield "from", edge["source"], _written(edge["link"])
    for near in answer["neighbours"]["pages"]:
        if near["distance"] > 1:
            yield f"at {near['distance']}", near["path"], near["title"]


def _written(link: Mapping[str, Any]) -> str:
    """Gives a link in the words of its page."""
    heading = f"#{link['heading']}" if link.get("heading") else ""
    return f"{link.get('rel') or link['kind']} {link['target']}{heading}"


def _gather(
    invocation: Invocation,
    route: str,
    key: str,
    query: Mapping[str, object],
    *,
    limit: int,
    cursor: str | None,
    is_all: bool,
) -> dict[str, Any]:
    """Gives one answer, or all of them as one: then its cursor is null."""
    limit = MOST_AT_ONCE if is_all else limit
    rows: list[Any] = []
    while True:
        asked = {**query, "limit": limit, "cursor": cursor}
        answer: dict[str, Any] = invocation.ask("GET", route, query=asked).json()
        rows += answer[key]
        cursor = answer.get("cursor")
        if not is_all or not cursor:
            return {**answer, key: rows}


def _show_pages(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Prints a list of pages."""
    if invocation.is_json:
        output.document(answer)
        return
    rows = ((row["path"], row["title"], row["type"], row["updated"]) for row in answer["pages"])
    output.table(("path", "title", "type", "updated"), rows)
    _say_how_many(answer, "pages", "page")


def _say_how_many(answer: Mapping[str, Any], key: str, noun: str) -> None:
    """Says how many of how many were shown, and how to see the others."""
    shown, total = len(answer[key]), answer["total"]
    if shown == total:
        say(f"{counted(total, noun)}.")
        return
    more = f" Go on with --cursor {answer['cursor']} or --all." if answer.get("cursor") else ""
    say(f"{shown:,} of {counted(total, noun)}.{more}")

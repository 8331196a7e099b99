"""Commands on single pages: read, write, move, remove."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command, page_argument
from pcpd.cli.output import counted, plain, say
from pcpd.errors import Conflict

LINKS_NAMED = 10

based = click.option(
    "--if-version",
    metavar="VERSION",
    help="Do it only if the page still is at this version (see `read --json`).",
)


@command("read", short_help="Print a page")
@click.argument("page")
def read_command(invocation: Invocation, page: str) -> None:
    """Print a page: its bytes and nothing else

    PAGE is a path (with or without .md), or the name of one page. With --json: path, version and text.
    """
    from pcpd.client.http import quoted

    path = page_argument(invocation.root(), page)
    answer = invocation.ask("GET", f"pages/{quoted(path)}")
    if not invocation.is_json:
        output.raw(answer.data)
        return
    shown: dict[str, object] = {"path": path, "version": answer.version}
    try:
        shown["text"] = answer.data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        shown["base64"] = b64encode(answer.data).decode()
    output.document(shown)


@command("write", short_help="Make a page, or replace its text")
@click.argument("page")
@click.option(
    "--file", "source", type=click.Path(path_type=Path), help="Read the text from a file (default: stdin)."
)
@click.option("--overwrite", is_flag=True, help="Replace a page that is there, whatever its version.")
@based
def write_command(
    invocation: Invocation, page: str, source: Path | None, *, overwrite: bool, if_version: str | None
) -> None:
    """Make a page, or replace its text

    The text comes from stdin and is written as it is: no key is added, no line ending changed. A page that is
    there already is replaced only with --overwrite or --if-version.
    """
    from pcpd.client.http import quoted

    path = page_argument(invocation.root(), page)
    if source and str(source) != "-":
        data = source.read_bytes()
    else:
        if sys.stdin.isatty():
            say("Type the page's text; Ctrl-D ends it, Ctrl-C writes nothing.")
        data = sys.stdin.buffer.read()
    query, headers = {"overwrite": 1 if overwrite else None}, matching(if_version)
    try:
        written = invocation.ask("PUT", f"pages/{quoted(path)}", query=query, body=data, headers=headers)
    except Conflict as error:
        if error.code == "page.exists":
            error.hint = "--overwrite replaces it; or choose another path"
        raise
    show_written(invocation, written.json())


@command("move", short_help="Give a page another path")
@click.argument("page")
@click.argument("to")
def move_command(invocation: Invocation, page: str, to: str) -> None:
    """Give a page another path

    Its bytes and its history stay. Nothing is replaced: a page at TO is a conflict.
    """
    root = invocation.root()
    body = {"path": page_argument(root, page), "to": page_argument(root, to)}
    show_written(invocation, invocation.ask("POST", "move", body=body).json())


@command("remove", short_help="Remove a page; its versions stay in history")
@click.argument("page")
@based
def remove_command(invocation: Invocation, page: str, if_version: str | None) -> None:
    """Remove a page; its versions stay in history

    `pcpd restore PAGE@REV` brings it back.
    """
    from pcpd.client.http import quoted

    path = page_argument(invocation.root(), page)
    show_written(
        invocation, invocation.ask("DELETE", f"pages/{quoted(path)}", headers=matching(if_version)).json()
    )


def matching(version: str | None) -> dict[str, str]:
    """Gives the header by which a change names the version that it is based on."""
    return {"If-Match": f'"{version}"'} if version else {}


def show_written(invocation: Invocation, written: Mapping[str, Any]) -> None:
    """Prints what a change came to."""
    if invocation.is_json:
        output.document(written)
        return
    say(f"{str(written['outcome']).capitalize()}: {plain(written['path'])}")
    if written.get("conflict_copy"):
        say(
            f"Another program saved it at the same time; its text is kept in {plain(written['conflict_copy'])}"
        )
    broken = written.get("broken_links") or []
    if broken:
        few = ", ".join(plain(path) for path in broken[:LINKS_NAMED]) + (
            ", …" if len(broken) > LINKS_NAMED else ""
        )
        say(f"Links on {counted(len(broken), 'page')} do not lead to it any more: {few}")

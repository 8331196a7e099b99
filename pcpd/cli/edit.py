"""The command edit: single keys and parts of the text, or the whole page in the person's editor."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from pcpd.cli.invocation import Invocation, command, page_argument
from pcpd.cli.output import say
from pcpd.cli.pages import based, matching, show_written
from pcpd.errors import Broken, PcpError, Usage

T = TypeVar("T")
Edit = dict[str, object]
Pairs = tuple[tuple[str, str], ...]


@command("edit", short_help="Change keys or text of a page; every other byte stays")
@click.argument("page")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a key (can be repeated).")
@click.option("--unset", "unsets", multiple=True, metavar="KEY", help="Remove a key (can be repeated).")
@click.option("--add", "adds", multiple=True, metavar="KEY=ITEM", help="Append to a list (can be repeated).")
@click.option("--append", "appends", multiple=True, metavar="TEXT", help="Append text at the end.")
@click.option("--prepend", "prepends", multiple=True, metavar="TEXT", help="Put text before the first line.")
@click.option(
    "--section",
    "sections",
    nargs=2,
    multiple=True,
    metavar="HEADING TEXT",
    help="Replace what is below a heading.",
)
@click.option(
    "--replace",
    "replacements",
    nargs=2,
    multiple=True,
    metavar="OLD NEW",
    help="Replace text that occurs once.",
)
@based
def edit_command(
    invocation: Invocation,
    *,
    page: str,
    sets: tuple[str, ...],
    unsets: tuple[str, ...],
    adds: tuple[str, ...],
    appends: tuple[str, ...],
    prepends: tuple[str, ...],
    sections: Pairs,
    replacements: Pairs,
    if_version: str | None,
) -> None:
    """Change keys or text of a page; every other byte stays

    VALUE is a YAML value: 0.5, true, [a, b]; in quotes, "3" stays text. TEXT may be `-` to read stdin. All
    edits are made together or none. Without an edit, the page opens in VISUAL or EDITOR.
    """
    edits = [
        *(_assigned("set", each) for each in sets),
        *(_edit("remove", key, None) for key in unsets),
        *(_assigned("append_item", each) for each in adds),
        *(_edit("replace_section", heading, _text(text)) for heading, text in sections),
        *(_edit("replace_text", old, new) for old, new in replacements),
        *(_edit("prepend", "", _text(text)) for text in prepends),
        *(_edit("append", "", _text(text)) for text in appends),
    ]
    path = page_argument(invocation.root(), page)
    if edits:
        _apply(invocation, path, edits, if_version)
    else:
        _open(invocation, path, if_version)


def _assigned(op: str, text: str) -> Edit:
    """Gives the edit that KEY=VALUE stands for; the owner reads the value, as JSON has no dates."""
    return {"op": op, "assignment": text}


def _edit(op: str, where: str, value: object) -> Edit:
    """Gives one edit as the owner takes it."""
    return {"op": op, "where": where, "value": value}


def _text(given: str) -> str:
    """Gives the text of an option, or what stdin holds."""
    return sys.stdin.buffer.read().decode() if given == "-" else given


def _apply(invocation: Invocation, path: str, edits: Sequence[Edit], if_version: str | None) -> None:
    """Sends the edits."""
    from pcpd.client.http import quoted

    body = {"edits": edits}
    answer = invocation.ask("PATCH", f"pages/{quoted(path)}", body=body, headers=matching(if_version))
    written = answer.json()
    if written["outcome"] == "replaced" and not invocation.is_json:
        written["outcome"] = "edited"
    show_written(invocation, written)


def _open(invocation: Invocation, path: str, if_version: str | None) -> None:
    """Lets the person change a copy, and writes it back if the page is still what they began with."""
    from pcpd.client.http import quoted

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise Usage(
            "edit.nothing", "there is nothing to change", hint="name an edit, such as --set KEY=VALUE"
        )
    read = invocation.ask("GET", f"pages/{quoted(path)}")
    headers = matching(if_version or read.version)

    def send(data: bytes) -> dict[str, object]:
        return invocation.ask("PUT", f"pages/{quoted(path)}", body=data, headers=headers).json()

    written = edited(invocation, path.rpartition("/")[2], read.data, send)
    if written is None:
        say("Nothing was changed.")
    else:
        show_written(invocation, written)


def edited(invocation: Invocation, name: str, data: bytes, send: Callable[[bytes], T]) -> T | None:
    """Lets the person change a copy of a text, and sends what they saved; None where it stayed as it was.

    When that fails the copy stays, and they are told where.
    """
    folder = Path(tempfile.mkdtemp(prefix="pcpd-edit-"))
    copy = folder / f"{name}.md"
    copy.write_bytes(data)
    _edit_file(copy, invocation)
    saved, sent = copy.read_bytes(), None
    if saved != data:
        try:
            sent = send(saved)
        except PcpError as error:
            error.hint = f"your text is kept in {copy}. {error.hint}".strip()
            raise
    for left in folder.iterdir():
        left.unlink()
    folder.rmdir()
    return sent


def _edit_file(file: Path, invocation: Invocation) -> None:
    """Opens a file in the person's editor and waits for it."""
    editor = invocation.environ.get("VISUAL") or invocation.environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), os.fspath(file)], check=False).returncode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Broken(
            "edit.editor",
            f"cannot start the editor {editor!r}: {why}",
            hint="set EDITOR to one that is there",
        ) from error
    if status:
        raise Broken("edit.editor", f"the editor {editor!r} ended with status {status}; nothing was written")

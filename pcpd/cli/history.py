"""Commands of versions: log, diff, show, restore."""

import sys

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command, page_argument
from pcpd.cli.output import counted, line, plain, say, styled
from pcpd.cli.pages import show_written
from pcpd.errors import Usage

_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@command("log", short_help="List versions, the newest first")
@click.argument("page", default="")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Show at most this many."
)
@click.option("--before", metavar="REV", help="Show only versions before this one.")
def log_command(invocation: Invocation, page: str, limit: int, before: str | None) -> None:
    """List versions, the newest first

    Of PAGE, also under its earlier names; without it, of the whole vault.
    """
    from pcpd.client.http import quoted

    path = page_argument(invocation.root(), page) if page else ""
    route = f"history/{quoted(path)}" if path else "history"
    answer = invocation.ask("GET", route, query={"limit": limit, "before": before}).json()
    if invocation.is_json:
        output.document(answer)
        return
    versions = answer["versions"] if isinstance(answer["versions"], list) else []
    rows = [
        (str(each["rev"])[:12], each["at"], each["principal"] or each["author"], each["change"], each["file"],
         each["subject"])
        for each in versions
    ]  # fmt: skip
    columns = ("version", "at", "by", "change", "file", "subject")
    # A terminal is too narrow for all: what the subject tells is left to it.
    shown = range(6) if not sys.stdout.isatty() else (0, 1, 2, 3, 5) if path else (0, 1, 2, 5)
    output.table([columns[each] for each in shown], [[row[each] for each in shown] for row in rows])
    more = f" There may be more: go on with --before {versions[-1]['rev']}" if len(rows) == limit else ""
    say(f"{counted(len(rows), 'version')}.{more}")


@command("diff", short_help="Show what changed between versions")
@click.argument("page", default="")
@click.option("--old", metavar="REV", help="The earlier version (default: the last one in history).")
@click.option("--new", metavar="REV", help="The later version (default: what is on disk now).")
def diff_command(invocation: Invocation, page: str, old: str | None, new: str | None) -> None:
    """Show what changed between versions

    Of PAGE, or of the whole vault. Without options: what is on disk and not in history yet.
    """
    path = page_argument(invocation.root(), page) if page else None
    data = invocation.ask("GET", "diff", query={"path": path, "old": old, "new": new}).data
    if invocation.is_json:
        output.document({"path": path, "old": old, "new": new, "diff": data.decode(errors="replace")})
    elif not data:
        say("No difference.")
    elif not sys.stdout.isatty():
        output.raw(data)
    else:
        for each in data.decode(errors="replace").splitlines():
            colour = _DIFF_COLOURS.get(each[:1])
            line(styled(plain(each), colour) if colour else plain(each))


@command("show", short_help="Print a page as it was at a version")
@click.argument("version", metavar="PAGE@REV")
def show_command(invocation: Invocation, version: str) -> None:
    """Print a page as it was at a version: its bytes and nothing else

    REV is a version from `pcpd log`, or anything that git takes for a commit.
    """
    from pcpd.client.http import quoted

    page, rev = _page_at(version)
    path = page_argument(invocation.root(), page)
    data = invocation.ask("GET", f"show/{quoted(path)}", query={"rev": rev}).data
    if invocation.is_json:
        output.document({"path": path, "rev": rev, "text": data.decode(errors="replace")})
    else:
        output.raw(data)


@command("restore", short_help="Bring an earlier version of a page back")
@click.argument("version", metavar="PAGE@REV")
def restore_command(invocation: Invocation, version: str) -> None:
    """Bring an earlier version of a page back, as a new version

    Nothing is rewritten: what the page is now stays in history. A removed page comes back too.
    """
    page, rev = _page_at(version)
    body = {"path": page_argument(invocation.root(), page), "rev": rev}
    show_written(invocation, invocation.ask("POST", "restore", body=body).json())


def _page_at(text: str) -> tuple[str, str]:
    """Cuts PAGE@REV at its last `@` (that of `HEAD@{1}` is part of the version)."""
    page, _, rev = text.rpartition("@")
    if rev.startswith("{"):
        page, _, name = page.rpartition("@")
        rev = f"{name}@{rev}"
    if not page or not rev:
        raise Usage(
            "cli.version",
            f"{text!r} names no version",
            hint="write it as PAGE@REV; `pcpd log PAGE` lists them",
        )
    return page, rev

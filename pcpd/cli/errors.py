"""Maps errors to exit status and words: the one place where the command line decides both."""

import json
import sys
from collections.abc import Mapping

import click

from pcpd import errors
from pcpd.cli.output import plain, styled
from pcpd.errors import Broken, PcpError, Usage

INTERRUPTED = 130
EXIT: Mapping[type[PcpError], int] = {
    errors.Usage: 2,
    errors.Unavailable: 3,
    errors.NotFound: 4,
    errors.Denied: 5,
    errors.Conflict: 6,
    errors.Invalid: 1,
    errors.Broken: 1,
}


def status_of(error: PcpError) -> int:
    """Gives the exit status of an error's class."""
    return next((status for kind, status in EXIT.items() if isinstance(error, kind)), 1)


def tell(error: Exception, *, is_json: bool) -> int:
    """Says on stderr what happened and what to do next; gives the exit status."""
    ours = error if isinstance(error, PcpError) else _as_ours(error)
    if is_json:
        said = {"code": ours.code, "message": ours.message, "hint": ours.hint}
        more = {"details": ours.details} if ours.details else {}
        line = json.dumps({"error": {**said, **more}}, ensure_ascii=True, default=str)
    else:
        line = f"{styled('error:', 'red')} {plain(ours.message)}"
        if ours.hint:
            line += f"\n{styled('hint:', 'cyan')} {plain(ours.hint)}"
    click.echo(line, file=sys.stderr)
    return status_of(ours)


def fault(error: Exception) -> Broken:
    """Gives the words for a fault of pcpd's own."""
    return Broken(
        "pcpd.fault",
        f"pcpd itself failed: {type(error).__name__}: {error}",
        hint="run it again with PCPD_DEBUG=1 to see where, and report that",
    )


def _as_ours(error: Exception) -> PcpError:
    """Gives the error of our tree that one of click's or the system's stands for."""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "pcpd"
        if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message would be the whole help
            return Usage("cli.usage", "Missing command.", hint=f"`{path} --help` lists them")
        return Usage("cli.usage", error.format_message(), hint=f"`{path} --help` tells how")
    if isinstance(error, click.ClickException):
        return Broken("cli.failed", error.format_message())
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return Broken("system.refused", f"{named}{error.strerror}")
    return Broken("system.refused", str(error))

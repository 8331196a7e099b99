"""Times as people type them at a command: a date, a time, or so long before now."""

import re
from datetime import UTC, datetime, timedelta

import click

from pcpd.errors import Invalid
from pcpd.pages.times import normal_time

_AGO = re.compile(r"(\d{1,6})(min|m|h|d|w)", re.ASCII)
_UNITS = {"min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Gives an option's time as the owner takes it, `…Z`; None where it was not given.

    Raises click's `BadParameter`, with every form that is taken.
    """
    if text is None:
        return None
    ago = _AGO.fullmatch(text)
    try:
        if ago is None:
            return normal_time(text)
        return f"{datetime.now(UTC) - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]]):%Y-%m-%dT%H:%M:%SZ}"
    except (Invalid, OverflowError):
        name = f"--{parameter.name}"
        raise click.BadParameter(
            f"{text[:40]!r} is no time; write {name} 2026-01-05, {name} 2026-01-05T10:00:00Z, or {name} 2h "
            "(also 30m, 3d, 1w) for so long ago"
        ) from None

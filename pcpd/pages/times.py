"""Times as pages and tables write them: RFC 3339, UTC, `…Z`, whole seconds."""

import re
from datetime import UTC, date, datetime

from pcpd.errors import Invalid

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?[ \t]*(?:[Zz]|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def parse_time(text: str) -> datetime:
    """Gives the moment that `text` names, in UTC.

    Taken: RFC 3339 with any offset, a blank for the `T`, seconds or offset left out (then UTC, so that the
    answer is the same on every host), and a bare date, which means its first second. Raises `Invalid`
    (`time.invalid`) for anything else and for days that no calendar has.
    """
    try:
        if not _TIME.fullmatch(text):
            raise ValueError
        if len(text) == 10:
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        moment = datetime.fromisoformat(_without_blanks(text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(
            "time.invalid",
            f"{text[:40]!r} is not a time that exists",
            hint="write it as 2026-01-05T10:00:00Z, or as 2026-01-05",
        ) from None


def to_z(moment: datetime) -> str:
    """Gives `moment` (aware) as `2026-01-05T10:00:00Z`; fractions of a second are cut off, so texts sort."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def from_ns(nanoseconds: int) -> str:
    """Gives a file's time, in nanoseconds since 1970, as `…Z` text; what no calendar holds is clamped."""
    seconds = min(max(nanoseconds // 1_000_000_000, _EARLIEST), _LATEST)
    return to_z(datetime.fromtimestamp(seconds, UTC))


def normal_time(text: str) -> str:
    """Gives `text`, a time as pages write it, as `…Z` text. Raises `Invalid` as `parse_time` does."""
    if _CANONICAL.fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return text
    return to_z(parse_time(text))


def _without_blanks(text: str) -> str:
    """Gives a form that `fromisoformat` reads: no blank before the offset, six digits of a fraction."""
    head, tail = text[:11], text[11:].replace(" ", "").replace("\t", "")
    fraction = re.sub(r"(\.\d{6})\d+", r"\1", tail)
    return head.replace("t", "T") + fraction.replace("z", "Z")


_EARLIEST = int(datetime(1, 1, 2, tzinfo=UTC).timestamp())
_LATEST = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())

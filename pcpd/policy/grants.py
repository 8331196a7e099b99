"""The model of access.yaml: who may do what, where; nothing else is allowed.

Read strictly: a key that is not known is refused, because it may be a limit that was misspelled (`unitl`),
and a grant without its limit is wider than what the person meant.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from pcpd.errors import Invalid
from pcpd.policy import principals
from pcpd.policy.context import slug_problem, spelled
from pcpd.policy.strict_yaml import Checker, Findings, compose, one_of, shown

RIGHTS = ("read", "propose", "write", "review", "forget", "record")
CATEGORIES = ("semantic", "episodic", "procedural", "profile", "conversation")
SENSITIVITIES = ("normal", "sensitive")
FILE = "access.yaml"
# What a reader may see becomes one condition of SQL, which has room for a bounded number of values.
REACH_LIMIT = 10_000

_KEYS = ("principal", "partitions", "categories", "rights", "sensitivity", "until")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of access.yaml. `sensitivity: sensitive` covers both values; `until` is exclusive."""

    principal: str
    partitions: tuple[str, ...]
    categories: tuple[str, ...]
    rights: tuple[str, ...]
    sensitivity: str = "normal"
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """All grants in force. Empty: nobody but the controller sees anything."""

    grants: tuple[Grant, ...] = ()


def parse_access(data: bytes) -> Access:
    """Gives what the bytes of an access.yaml say. Raises `Invalid` (`access.invalid`) with all problems.

    A file without content grants nothing; so does a grant with an empty list.
    """
    findings = Findings("access.invalid", FILE)
    root = compose(data, findings)
    if root is None:
        return Access()
    top = Checker(root, "", findings)
    top.refuse_unknown(("grants",))
    grants = tuple(_grant(Checker(item.node, item.section, findings)) for item in top.items("grants"))
    if sum(len(grant.partitions) * len(grant.categories) for grant in grants) > REACH_LIMIT:
        findings.add("grants", "", top.line, f"name more than {REACH_LIMIT} pairs of partition and category")
    findings.check()
    return Access(grants)


def render_grant(grant: Grant) -> str:
    """Gives a grant as one line of flow YAML, for an item of `grants`.

    Raises `Invalid` where it would not read back, as with a principal that is none.
    """
    fields = [
        f"principal: {spelled(grant.principal)}",
        f"partitions: [{', '.join(map(spelled, grant.partitions))}]",
        f"categories: [{', '.join(grant.categories)}]",
        f"rights: [{', '.join(grant.rights)}]",
        f"sensitivity: {grant.sensitivity}",
    ]
    if grant.until is not None:
        fields.append(f"until: {_until_text(grant.until)}")
    line = f"{{{', '.join(fields)}}}"
    if parse_access(f"grants:\n  - {line}\n".encode()) != Access((grant,)):
        raise Invalid("access.grant", f"the grant for {grant.principal} cannot be written down as it is")
    return line


def parse_until(text: str) -> datetime:
    """Gives the instant at which a grant ends, in UTC: a date begins at midnight UTC, a time names its zone.

    `2027-01-01` and `2027-01-01T00:00:00+01:00` are taken; a time without zone, `tomorrow` and `2027-02-30`
    raise `Invalid` (`access.until`).
    """
    problem = until_problem(text)
    if problem:
        raise Invalid("access.until", problem, hint="write for example 2027-01-01 or 2027-01-01T12:00:00Z")
    return _instant(text)


def until_problem(text: str) -> str | None:
    """Says what is wrong with an `until`."""
    if not (_DATE.fullmatch(text) or _TIME.fullmatch(text)):
        return f"{shown(text)} is neither a date nor an RFC 3339 time with its zone"
    try:
        _instant(text)
    except (ValueError, OverflowError):
        return f"{shown(text)} does not exist"
    return None


def _instant(text: str) -> datetime:
    if _DATE.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return datetime.fromisoformat(text.upper()).astimezone(UTC)


def _until_text(until: datetime) -> str:
    return until.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _grant(entry: Checker) -> Grant:
    entry.refuse_unknown(_KEYS)
    until = entry.text("until", until_problem)
    return Grant(
        principal=entry.text("principal", principals.problem_of, required=True) or "",
        partitions=entry.texts("partitions", slug_problem, required=True),
        categories=entry.texts("categories", one_of(*CATEGORIES), required=True),
        rights=entry.texts("rights", one_of(*RIGHTS), required=True),
        sensitivity=entry.text("sensitivity", one_of(*SENSITIVITIES)) or "normal",
        until=_instant(until) if until else None,
    )

"""The act that shows the person who can do what, where, since when and until when, and who used it last."""

from dataclasses import dataclass

from pcpd.ledger import audit, granted
from pcpd.ledger import tokens as token_rows
from pcpd.ledger.issued import Issued
from pcpd.ledger.pauses import EVERYBODY
from pcpd.memory import pausing
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy import principals
from pcpd.policy.grants import Grant, render_grant


@dataclass(frozen=True, slots=True)
class GrantNow:
    """A grant of access.yaml. `since` is when it was first seen there; `has_ended`: its `until` is over."""

    rights: tuple[str, ...]
    partitions: tuple[str, ...]
    categories: tuple[str, ...]
    sensitivity: str
    since: str | None
    until: str | None
    has_ended: bool


@dataclass(frozen=True, slots=True)
class TokenNow:
    """A good token, without its secret."""

    id: str
    label: str
    created_at: str


@dataclass(frozen=True, slots=True)
class PrincipalNow:
    """One principal. `paused_since` is None while it may come in; `notes` say what keeps it from doing what it may."""

    principal: str
    grants: tuple[GrantNow, ...]
    tokens: tuple[TokenNow, ...]
    last_used: str | None
    paused_since: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccessNow:
    """Everybody with a grant, a good token or a pause; who is paused, `*` for all; what wants a person's eye."""

    principals: tuple[PrincipalNow, ...]
    paused: dict[str, str]
    notices: tuple[str, ...]


def access(memory: Memory) -> AccessNow:
    """Gives who can do what now. For the person alone."""
    memory.grants()  # what was edited by hand is noted now, with its time
    grants = memory.access.current(memory.clock.now()).grants
    good = [row for row in token_rows.listing(memory.ledger) if row.revoked_at is None]
    paused = memory.brakes.paused
    names = {each.principal for each in grants} | {row.principal for row in good} | {*paused}
    names.discard(EVERYBODY)
    since, last = granted.since(memory.ledger), audit.last_acts(memory.ledger)
    rows = [
        _standing(
            memory,
            name,
            tuple(_grant(memory, each, since) for each in grants if each.principal == name),
            [row for row in good if row.principal == name],
            last.get(name),
        )
        for name in sorted(names)
    ]
    notices = (memory.access.notice, pausing.notice(memory))
    return AccessNow(tuple(rows), paused, tuple(each for each in notices if each))


def _standing(
    memory: Memory, name: str, grants: tuple[GrantNow, ...], good: list[Issued], last: str | None
) -> PrincipalNow:
    removed = [each.id for each in memory.context.principals if each.status == "removed"]
    notes = []
    if any(principals.covers(each, name) for each in removed):
        notes.append("context.yaml calls it removed: its grants have no effect")
    if grants and all(each.has_ended for each in grants):
        notes.append("every grant has ended")
    if grants and not good:
        notes.append("no token: it cannot come in")
    if good and not grants:
        notes.append("no grant: it can come in and sees nothing")
    return PrincipalNow(
        principal=name,
        grants=grants,
        tokens=tuple(TokenNow(row.id, row.label, row.created_at) for row in good),
        last_used=last,
        paused_since=memory.brakes.since(name),
        notes=tuple(notes),
    )


def _grant(memory: Memory, grant: Grant, since: dict[str, str]) -> GrantNow:
    return GrantNow(
        rights=grant.rights,
        partitions=grant.partitions,
        categories=grant.categories,
        sensitivity=grant.sensitivity,
        since=since.get(render_grant(grant)),
        until=to_z(grant.until) if grant.until else None,
        has_ended=grant.until is not None and grant.until <= memory.clock.now(),
    )

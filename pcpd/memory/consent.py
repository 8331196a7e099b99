"""The acts by which a person lets an agent in and out: tokens and grants."""

from dataclasses import asdict, dataclass

from pcpd.errors import NotFound, Usage
from pcpd.ledger import tokens as token_rows
from pcpd.memory import reconcile
from pcpd.memory.identity import CONTEXT_FILE
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy import principals
from pcpd.policy.context import add_principal
from pcpd.policy.grants import CATEGORIES, RIGHTS, Grant, parse_until

DEFAULT_CATEGORIES = ("semantic", "episodic", "procedural", "profile")


@dataclass(frozen=True, slots=True)
class Wish:
    """A grant as a person asks for it: None means the default partition, and all but conversations."""

    principal: str
    rights: list[str]
    partitions: list[str] | None = None
    categories: list[str] | None = None
    sensitivity: str = "normal"
    until: str | None = None


def create_token(memory: Memory, principal: str) -> dict[str, object]:
    """Makes a token for a principal, who is added to the context as an agent when missing."""
    _introduce(memory, principal)
    made = token_rows.create(memory.ledger, principal)
    return {"token": made.token, "id": made.id}


def tokens(memory: Memory) -> dict[str, object]:
    """Lists tokens: id, principal, times; never the secret."""
    return {"tokens": [asdict(row) for row in token_rows.listing(memory.ledger)]}


def grant(memory: Memory, wish: Wish) -> dict[str, object]:
    """Writes a grant to access.yaml; an equal one that is there already stays as it is."""
    wanted = _grant_of(memory, wish)
    _introduce(memory, wish.principal)
    added = memory.access.grant(wanted)
    memory.listeners.tell()
    return {"granted": added, "grant": _shown(wanted)}


def grants(memory: Memory) -> dict[str, object]:
    """Lists the grants in force and what is wrong with access.yaml, if anything."""
    access = memory.grants()
    return {"grants": [_shown(each) for each in access.grants], "notice": memory.access.notice}


def revoke(memory: Memory, *, principal: str | None, token: str | None) -> dict[str, object]:
    """Takes back one token, or all tokens and grants of a principal; it works at once.

    Raises `NotFound` (`consent.absent`) for a token or a principal that never was: a slip of the pen must not
    look like a revocation.
    """
    if not principal and not token:
        raise Usage("consent.nobody", "name a principal or a token to revoke")
    revoked = token_rows.revoke(memory.ledger, token or principal or "")
    try:
        taken = memory.access.revoke(principal) if principal else 0
    finally:
        memory.listeners.tell()
    if not revoked and not taken and not _is_known(memory, token or principal or ""):
        raise NotFound(
            "consent.absent",
            f"nobody and no token is known as {token or principal!r}",
            hint="`pcpd token list` and `pcpd grant` show what there is",
        )
    return {"grants": taken, "tokens": revoked}


def _is_known(memory: Memory, name: str) -> bool:
    """Tells whether a token or a principal of that name was ever let in."""
    issued = token_rows.listing(memory.ledger)
    members = {member.id for member in memory.context.principals}
    return name in members or any(name in {each.id, each.principal} for each in issued)


def _grant_of(memory: Memory, wish: Wish) -> Grant:
    _check_principal(wish.principal)
    for name, values, known in (
        ("rights", wish.rights, RIGHTS),
        ("categories", wish.categories or [], CATEGORIES),
    ):
        unknown = [value for value in values if value not in known]
        if unknown:
            raise Usage(
                "consent.unknown",
                f"{name} cannot be {', '.join(unknown)}",
                hint=f"choose from {', '.join(known)}",
            )
    if not wish.rights:
        raise Usage("consent.no-rights", "a grant needs at least one right", hint="such as --rights read")
    return Grant(
        principal=wish.principal,
        partitions=tuple(wish.partitions or [memory.context.default_partition]),
        categories=tuple(wish.categories or DEFAULT_CATEGORIES),
        rights=tuple(wish.rights),
        sensitivity=wish.sensitivity,
        until=parse_until(wish.until) if wish.until else None,
    )


def _check_principal(principal: str) -> None:
    problem = principals.problem_of(principal)
    if problem:
        raise Usage("consent.principal", problem, hint="such as agent:claude")


def _introduce(memory: Memory, principal: str) -> None:
    """Adds a principal that context.yaml does not list, as an agent; other bytes of the file stay."""
    _check_principal(principal)
    if any(member.id == principal for member in memory.context.principals):
        return

    def job() -> None:
        read = memory.files.read(CONTEXT_FILE, 1024 * 1024)
        data = add_principal(read.data, principal, "agent")
        memory.files.replace(CONTEXT_FILE, data, base=read.version)
        reconcile.apply(memory, [reconcile.look(memory, CONTEXT_FILE)])

    memory.keeper.run(Urgency.ACT, job).result()


def _shown(each: Grant) -> dict[str, object]:
    shown = {**asdict(each), "until": to_z(each.until) if each.until else None}
    return {key: value for key, value in shown.items() if value is not None}

"""The acts by which a person lets an agent in and out: tokens and grants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from pcpd.errors import NotFound, Usage
from pcpd.index import listing as page_rows
from pcpd.index import tables as page_tables
from pcpd.index.visible import EVERYTHING
from pcpd.ledger import audit
from pcpd.ledger import tokens as token_rows
from pcpd.memory import reconcile
from pcpd.memory.account import managed
from pcpd.memory.identity import CONTEXT_FILE
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy import principals
from pcpd.policy.context import add_principal
from pcpd.policy.decide import Principal, in_force, visibility
from pcpd.policy.grants import CATEGORIES, RIGHTS, SENSITIVITIES, Access, Grant, parse_until

EXAMPLES = 3
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


@dataclass(frozen=True, slots=True)
class Preview:
    """What a grant would give, before anybody agreed to it.

    `is_there`: an equal one is in force. `replaces` are grants in force that would go for it, `keeps` those that the
    principal would have besides. `pages` and `titles` are what it could read then by all of them, the newest first;
    `closed` counts the other pages, `unread` those of them whose front matter cannot be read. `warnings` say what
    may be a slip of the pen. `features` and `partitions` are the context's, `profile` the page that it names;
    `state` is the vault's folder on this device.
    """

    grant: dict[str, object]
    is_there: bool
    replaces: tuple[dict[str, object], ...]
    keeps: tuple[dict[str, object], ...]
    pages: int
    closed: int
    unread: int
    titles: tuple[str, ...]
    warnings: tuple[str, ...]
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    profile: str | None
    notice: str | None
    state: str


@dataclass(frozen=True, slots=True)
class PrincipalAccess:
    """One principal: its good tokens, its grants in force, and its last act as the audit trail has it."""

    principal: str
    tokens: tuple[str, ...]
    grants: tuple[dict[str, object], ...]
    last_used: str | None


def create_token(memory: Memory, principal: str, *, label: str = "") -> dict[str, object]:
    """Makes a token for a principal, who is added to the context as an agent when missing.

    `label` says to people what it is for.
    """
    with managed(memory, "create_token") as note:
        _introduce(memory, principal)
        note.about(principal)
        made = token_rows.create(memory.ledger, principal, label=label)
        note.about(made.id)
    return {"token": made.token, "id": made.id}


def tokens(memory: Memory) -> dict[str, object]:
    """Lists tokens: id, principal, times; never the secret."""
    return {"tokens": [asdict(row) for row in token_rows.listing(memory.ledger)]}


def grant(memory: Memory, wish: Wish) -> dict[str, object]:
    """Writes a grant to access.yaml; an equal one that is there already stays as it is.

    `warnings` say what may be a slip of the pen. Raises `Usage` (`consent.until-past`) for one that has ended.
    """
    with managed(memory, "grant") as note:
        wanted = _grant_of(memory, wish)
        _check_until(memory, wanted)
        note.about(wish.principal)
        _introduce(memory, wish.principal)
        added = memory.access.grant(wanted)
        note.counts = {"granted": int(added)}
        _told(memory)
    return {"granted": added, "grant": _shown(wanted), "warnings": _warnings(memory, wanted)}


def preview(memory: Memory, wish: Wish, *, without: Sequence[Wish] = ()) -> Preview:
    """Tells what a grant would give once those in `without` are taken back; changes nothing.

    Raises what writing it would raise, also because access.yaml is wrong, and `Usage` for a principal that
    context.yaml calls removed (`consent.removed`) or its controller (`consent.controller`).
    """
    wanted = _grant_of(memory, wish)
    _check_until(memory, wanted)
    _check_agent(memory, wish.principal)
    memory.access.check()
    going = [each for each in (_grant_of(memory, each) for each in without) if each != wanted]
    access, who, now = memory.grants(), Principal(wish.principal), memory.clock.now()
    present = in_force(access, who, now)
    kept = [each for each in present if each != wanted and each not in going]
    visible = visibility(Access((wanted, *kept)), who, now)
    with memory.index.reader() as conn:
        shown = page_rows.recent(conn, visible, limit=EXAMPLES)
        closed = page_tables.closed(conn, visible)
    return Preview(
        grant=_shown(wanted),
        is_there=wanted in present,
        replaces=tuple(_shown(each) for each in going if each in access.grants),
        keeps=tuple(map(_shown, kept)),
        pages=shown.total,
        closed=closed.pages,
        unread=closed.unread,
        titles=tuple(row.title for row in shown.pages),
        warnings=_warnings(memory, wanted),
        features=memory.context.features,
        partitions=tuple(each.name for each in memory.context.partitions),
        profile=memory.context.profile,
        notice=memory.access.notice,
        state=str(memory.place.state),
    )


def take_back(memory: Memory, wish: Wish) -> dict[str, object]:
    """Takes away the grant that is equal to the wish, and no other."""
    with managed(memory, "take_back_grant") as note:
        wanted = _grant_of(memory, wish)
        note.about(wish.principal)
        taken = memory.access.take_back(wanted)
        note.counts = {"taken_back": int(taken)}
        _told(memory)
    return {"grants": int(taken)}


def principal_access(memory: Memory) -> dict[str, object]:
    """Gives the tokens and grants of every principal that has some, and where the vault's state lies."""
    good = [row for row in token_rows.listing(memory.ledger) if row.revoked_at is None]
    access = memory.grants()
    names = sorted({row.principal for row in good} | {each.principal for each in access.grants})
    last = audit.last_acts(memory.ledger)
    rows = [
        PrincipalAccess(
            principal=name,
            tokens=tuple(row.id for row in good if row.principal == name),
            grants=tuple(_shown(each) for each in access.grants if each.principal == name),
            last_used=last.get(name),
        )
        for name in names
    ]
    return {
        "principals": [asdict(row) for row in rows],
        "notice": memory.access.notice,
        "state": str(memory.place.state),
    }


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
        raise Usage(
            "consent.nobody",
            "neither a principal nor a token is named",
            hint="`pcpd grant` and `pcpd token list` show what can be revoked",
        )
    with managed(memory, "revoke") as note:
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
        note.about(token or principal or "", _owner_of(memory, token))
        note.counts = {"taken_back": taken, "tokens": revoked}
        _told(memory)
    return {"grants": taken, "tokens": revoked}


def _told(memory: Memory) -> None:
    """Wakes whoever must look at the grants anew, and has it noted since when they are in force."""
    memory.grants()
    memory.listeners.tell()


def _owner_of(memory: Memory, token: str | None) -> str:
    """Gives whose token that is; empty where none was named, or a principal."""
    return next((each.principal for each in token_rows.listing(memory.ledger) if each.id == token), "")


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
        ("sensitivity", [wish.sensitivity], SENSITIVITIES),
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


def _check_until(memory: Memory, wanted: Grant) -> None:
    now = memory.clock.now()
    if wanted.until is not None and wanted.until <= now:
        raise Usage(
            "consent.until-past",
            f"a grant until {to_z(wanted.until)} has ended already: it is {to_z(now)}",
            hint="name a day to come; it ends as that day begins (UTC)",
        )


def _warnings(memory: Memory, wanted: Grant) -> tuple[str, ...]:
    """Names the partitions that nothing knows: a page may be put there yet, but a slip of the pen is likelier."""
    context = memory.context
    with memory.index.reader() as conn:
        used = {partition for partition, _ in page_tables.by_class(conn, EVERYTHING)}
    known = sorted({context.default_partition, *used, *(each.name for each in context.partitions)})
    said = []
    for name in wanted.partitions:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known[:20])}"
            said.append(
                f"no page is in a partition {name}, and {CONTEXT_FILE} lists none of that name; {hint}"
            )
    return tuple(said)


def _check_principal(principal: str) -> None:
    problem = principals.problem_of(principal)
    if problem:
        raise Usage("consent.principal", problem, hint="such as agent:claude")


def _check_agent(memory: Memory, principal: str) -> None:
    context = memory.context
    if principal == context.controller:
        raise Usage(
            "consent.controller",
            f"{principal} is you: what an agent does under your name could not be told from what you do",
            hint="choose a name for the agent, such as agent:claude",
        )
    removed = [member.id for member in context.principals if member.status == "removed"]
    if any(principals.covers(each, principal) for each in removed):
        raise Usage(
            "consent.removed",
            f"{CONTEXT_FILE} calls {principal} removed, so a grant to it has no effect",
            hint="set its status to active there first, or choose another name with --principal",
        )


def _introduce(memory: Memory, principal: str) -> None:
    """Adds a principal that context.yaml does not list, as an agent; other bytes of the file stay."""
    _check_principal(principal)
    if any(member.id == principal for member in memory.context.principals):
        return

    def job() -> None:
        read = memory.files.read(CONTEXT_FILE, 1024 * 1024)
        data = add_principal(read.data, principal, "agent")
        memory.files.replace(CONTEXT_FILE, data, base=read.version)
        reconcile.apply(memory, [reconcile.look(memory, CONTEXT_FILE)], is_act=True)

    memory.keeper.run(Urgency.ACT, job).result()


def _shown(each: Grant) -> dict[str, object]:
    shown = {**asdict(each), "until": to_z(each.until) if each.until else None}
    return {key: value for key, value in shown.items() if value is not None}

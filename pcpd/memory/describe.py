"""The act that tells a caller where they are: the context, who they are, what they may do, how to ask for more.

No more than an agent needs: of partitions those of its own grants, of principals itself and the controller.
"""

import shlex
from dataclasses import dataclass

from pcpd.index import tables
from pcpd.memory.account import audited
from pcpd.memory.memory import Caller, Memory
from pcpd.pages.times import to_z
from pcpd.policy.decide import in_force
from pcpd.policy.grants import Grant


@dataclass(frozen=True, slots=True)
class GrantedPart:
    """One grant of the caller's: what it may do (`rights`), where (`partitions`), on which pages, and until when.

    `sensitivity: sensitive` covers both values; `until` is RFC 3339 UTC, or None for a grant without an end.
    """

    rights: tuple[str, ...]
    partitions: tuple[str, ...]
    categories: tuple[str, ...]
    sensitivity: str
    until: str | None


@dataclass(frozen=True, slots=True)
class PartOfContext:
    """A partition, with the number of pages in it that the caller may read, by category."""

    name: str
    description: str
    is_default: bool
    pages: dict[str, int]


@dataclass(frozen=True, slots=True)
class Description:
    """What a caller may know of the context. `pages` counts those that it may read; `profile` is the path of the
    page or folder to begin with, where the caller may read it; `how_to_ask` are sentences with the commands by
    which the person can let it do more, empty for the person."""

    context: str
    controller: str
    principal: str
    is_controller: bool
    features: tuple[str, ...]
    partitions: tuple[PartOfContext, ...]
    grants: tuple[GrantedPart, ...]
    pages: int
    profile: str | None
    how_to_ask: tuple[str, ...]


def describe(memory: Memory, caller: Caller) -> Description:
    """Describes the context to a caller, as it is now."""
    with audited(memory, caller, "describe_context") as note:
        context, visible = memory.context, memory.visible_to(caller)
        with memory.index.reader() as conn:
            counted = tables.by_class(conn, visible)
        mine = in_force(memory.grants(), caller.principal, memory.clock.now())
        note.categories = frozenset(category for _, category in counted)
        note.counts = {"pages": sum(counted.values()), "grants": len(mine)}
        has_profile = any(category == "profile" for _, category in counted)
    return Description(
        context=context.id,
        controller=context.controller,
        principal=caller.principal.name,
        is_controller=caller.principal.is_controller,
        features=context.features,
        partitions=_partitions(memory, caller, mine, counted),
        grants=tuple(_part(grant) for grant in mine),
        pages=sum(counted.values()),
        profile=context.profile if has_profile else None,
        how_to_ask=() if caller.principal.is_controller else _how_to_ask(caller, mine),
    )


def _partitions(
    memory: Memory, caller: Caller, mine: list[Grant], counted: dict[tuple[str, str], int]
) -> tuple[PartOfContext, ...]:
    """Gives the partitions of the caller's grants; for the person all that are listed or used."""
    listed = {part.name: part.description for part in memory.context.partitions}
    names = {name for grant in mine for name in grant.partitions}
    if caller.principal.is_controller:
        names = {*listed, *(partition for partition, _ in counted)}
    return tuple(
        PartOfContext(
            name,
            listed.get(name, ""),
            name == memory.context.default_partition,
            {category: pages for (partition, category), pages in counted.items() if partition == name},
        )
        for name in sorted(names)
    )


def _part(grant: Grant) -> GrantedPart:
    until = to_z(grant.until) if grant.until else None
    return GrantedPart(grant.rights, grant.partitions, grant.categories, grant.sensitivity, until)


def how_to_be_let_in(memory: Memory, caller: Caller) -> str | None:
    """Gives what the person can do for a caller that may read no page, for answers that are empty for that reason.

    None for a caller that may read some. No act of its own: a part of the answers of other acts.
    """
    return _let_in(caller.principal.name) if memory.visible_to(caller).is_empty else None


def _let_in(name: str) -> str:
    return (
        f"{name} may read nothing yet. The person can allow it: with `pcpd connect` for this client, "
        f"or with `pcpd grant {shlex.quote(name)} --rights read`."
    )


def _how_to_ask(caller: Caller, mine: list[Grant]) -> tuple[str, ...]:
    name = caller.principal.name
    quoted = shlex.quote(name)
    first = (
        f"To let {name} do more, the person can run `pcpd grant {quoted} --rights read,write` "
        "(--partitions, --categories, --sensitivity and --until say where and how long)."
        if mine
        else _let_in(name)
    )
    return (first, f"`pcpd grant` shows all grants, `pcpd revoke {quoted}` takes them back.")

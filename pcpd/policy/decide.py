"""Answers whether a principal may do something to a page, from the page's facts alone, with the reason.

`decide` asks for one page, `visibility` gives the same answer to `read` for all pages, as slices that the
index turns into SQL; property tests hold the three together. Each right is its own: `write` does not imply
`read`, `propose` does not imply `write`. Source: pages.md §4 and §5.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pcpd.policy import principals
from pcpd.policy.context import Context
from pcpd.policy.grants import CATEGORIES, Access, Grant


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. The controller (the person, on the owner's local socket) may do everything."""

    name: str
    is_controller: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What access depends on; the same facts are columns of the index (`hidden`: proposed or rejected)."""

    path: str
    partition: str
    category: str
    sensitivity: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes or a no, and why, in words that name no page outside the grant."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the vault: one partition, one category, with or without its sensitive pages.

    `hidden`: with its proposed and rejected pages too, because the reader may review them here.
    """

    partition: str
    category: str
    sensitive: bool
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a reader may see: everything, or the union of slices.

    A hidden page is seen only where `hidden` is set here and, unless `everything` is, on the slice as well:
    a search that leaves proposals out clears it here, and cannot open it for a slice that may not review.
    """

    everything: bool = False
    slices: frozenset[Slice] = frozenset()
    hidden: bool = False

    @property
    def is_empty(self) -> bool:
        """Tells whether the reader may see no page, whatever pages there are."""
        return not self.everything and not self.slices


def category_of(is_conversation: bool, type_: str, path: str, profile: str | None) -> str:
    """Gives the one category that consent for a page is given for.

    `profile` where context.yaml names the page or a folder above it, else `conversation`, else the type. A
    type that is none counts as `semantic`, as one that is absent does.
    """
    if profile is not None and _is_at_or_below(path, profile):
        return "profile"
    if is_conversation:
        return "conversation"
    return type_ if type_ in CATEGORIES[:3] else "semantic"


def without_removed(access: Access, context: Context) -> Access:
    """Gives the grants that are left when context.yaml's removed principals have none.

    Removing `agent:claude` takes `agent:claude/4` along. A principal that is not listed keeps its grants: the
    file comes with the vault, grants are this device's.
    """
    gone = [member.id for member in context.principals if member.status == "removed"]
    if not gone:
        return access
    return Access(
        tuple(
            grant
            for grant in access.grants
            if not any(principals.covers(member, grant.principal) for member in gone)
        )
    )


def decide(access: Access, principal: Principal, right: str, facts: Facts, now: datetime) -> Decision:
    """Tells whether `principal` has `right` on a page with these facts at the instant `now`.

    A hidden page needs `review` there besides the right itself; a page that is yet to be made is not hidden.
    The reason of a no is the same for every page, so that it tells nothing about one that cannot be seen.
    """
    if principal.is_controller:
        return Decision(True, f"{principal.name} is the controller")
    mine = in_force(access, principal, now)
    if _covered(mine, right, facts) and (not facts.hidden or _covered(mine, "review", facts)):
        return Decision(True, f"a grant gives {principal.name} `{right}` here")
    return Decision(False, _reason(access, mine, principal, right))


def visibility(access: Access, principal: Principal, now: datetime) -> Visibility:
    """Gives what `decide` lets the principal `read` at the instant `now`, for all pages at once."""
    if principal.is_controller:
        return Visibility(everything=True, hidden=True)
    return _seen(tuple(in_force(access, principal, now)))


@lru_cache(maxsize=128)
def _seen(mine: tuple[Grant, ...]) -> Visibility:
    """Gives what some grants let their principal read. It is asked for at each act, and follows from them alone."""
    read, review = _reach(mine, "read"), _reach(mine, "review")
    slices = set()
    for (partition, category), sensitive in read.items():
        reviewed = review.get((partition, category))
        hidden = None if reviewed is None else Slice(partition, category, sensitive and reviewed, hidden=True)
        plain = Slice(partition, category, sensitive)
        if hidden is not None:
            slices.add(hidden)
        if hidden is None or hidden.sensitive != sensitive:
            slices.add(plain)
    return Visibility(slices=frozenset(slices), hidden=any(part.hidden for part in slices))


def in_force(access: Access, principal: Principal, now: datetime) -> list[Grant]:
    """Gives the principal's grants that have not ended."""
    return [grant for grant in access.grants if grant.principal == principal.name and not _ended(grant, now)]


def _ended(grant: Grant, now: datetime) -> bool:
    return grant.until is not None and now >= grant.until


def _covered(grants: Iterable[Grant], right: str, facts: Facts) -> bool:
    return any(
        right in grant.rights
        and facts.partition in grant.partitions
        and facts.category in grant.categories
        and (facts.sensitivity == "normal" or grant.sensitivity == "sensitive")
        for grant in grants
    )


def _reach(grants: Iterable[Grant], right: str) -> dict[tuple[str, str], bool]:
    """Gives for each partition and category with the right whether sensitive pages are in it."""
    reach: dict[tuple[str, str], bool] = {}
    for grant in grants:
        if right not in grant.rights:
            continue
        for partition in grant.partitions:
            for category in grant.categories:
                sensitive = grant.sensitivity == "sensitive"
                reach[partition, category] = reach.get((partition, category), False) or sensitive
    return reach


def _reason(access: Access, mine: list[Grant], principal: Principal, right: str) -> str:
    """Says why not, from the grants alone."""
    if mine:
        return f"no grant gives {principal.name} `{right}` here"
    if any(grant.principal == principal.name for grant in access.grants):
        return f"every grant of {principal.name} has ended"
    return f"{principal.name} has no grant"


def _is_at_or_below(path: str, profile: str) -> bool:
    # File systems differ in the form they give names back and in whether case matters; consent must not.
    page, named = (unicodedata.normalize("NFC", name).casefold() for name in (path, profile))
    return page == named or page.startswith(f"{named}/")

"""Answers whether a principal may do something to a page, from the page's facts alone, with the reason."""

from dataclasses import dataclass

from pcpd.policy.grants import Access


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


__all__ = ["Access", "Decision", "Facts", "Principal", "Slice", "Visibility"]

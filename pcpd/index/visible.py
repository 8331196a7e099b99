"""A grant as SQL: what a reader may see, as a condition on the pages of a query.

Answers as `policy.decide` does; a property test holds the two together.
"""

from collections.abc import Iterable
from functools import lru_cache

from pcpd.policy.decide import Slice, Visibility

EVERYTHING = Visibility(everything=True, hidden=True)
"""What the person sees on their own machine."""


def where(visible: Visibility) -> tuple[str, list[object]]:
    """Gives a condition over the alias `p` of `pages`, in parentheses, and its values in order."""
    condition, values = _where(visible)
    return condition, list(values)


@lru_cache(maxsize=128)
def _where(visible: Visibility) -> tuple[str, tuple[object, ...]]:
    """Gives what `where` gives; nearly every query asks for it, and few readers ask."""
    if visible.everything:
        return ("(TRUE)" if visible.hidden else "(p.hidden = 0)"), ()
    conditions: list[str] = []
    values: list[object] = []
    for sensitive in (False, True):
        for hidden in (False, True):
            pairs = _pairs(visible, sensitive=sensitive, hidden=hidden)
            if not pairs:
                continue
            marks = ", ".join(["(?, ?)"] * len(pairs))
            limits = ("" if sensitive else " AND p.sensitivity = 'normal'") + (
                "" if hidden else " AND p.hidden = 0"
            )
            conditions.append(f"((p.partition, p.category) IN (VALUES {marks}){limits})")
            values.extend(value for pair in pairs for value in pair)
    return f"({' OR '.join(conditions) or 'FALSE'})", tuple(values)


def _pairs(visible: Visibility, *, sensitive: bool, hidden: bool) -> list[tuple[str, str]]:
    slices: Iterable[Slice] = visible.slices
    return sorted(
        {
            (part.partition, part.category)
            for part in slices
            if part.sensitive == sensitive and (part.hidden and visible.hidden) == hidden
        }
    )

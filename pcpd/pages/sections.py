"""Which section of a page a name means: the text of its heading, with its level, its way or its number if need be."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pcpd.errors import Invalid, NotFound
from pcpd.pages.markdown import Heading
from pcpd.pages.paths import lookup_key

NAMED = 10
"""Headings that an error names."""
_SHOWN = 80
_NUMBERED = re.compile(r"(.*\S)\s*\[([1-9][0-9]{0,5})\]", re.DOTALL)
_STEP = re.compile(r"\s>\s")


class _Step(NamedTuple):
    """One heading of a way: its text as it was asked for, and its level, or 0."""

    text: str
    level: int


def with_sizes(headings: Sequence[Heading], body: str) -> list[Heading]:
    """Gives the headings of `body` with the bytes that each section has, heading and sub-sections included."""
    offsets, size, at = [], 0, 0
    for heading in headings:
        size += len(body[at : heading.start].encode())
        at = heading.start
        offsets.append(size)
    end = size + len(body[at:].encode())
    sizes, open_ = [0] * len(headings), list[int]()
    for number, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            ended = open_.pop()
            sizes[ended] = offsets[number] - offsets[ended]
        open_.append(number)
    for number in open_:
        sizes[number] = end - offsets[number]
    return [heading._replace(bytes=count) for heading, count in zip(headings, sizes, strict=True)]


def place_of(headings: Sequence[Heading], wanted: str) -> int:
    """Gives the number of the heading that `wanted` names.

    `Text` names the only heading of that text, `## Text` that of this level, `Above > Text` the one below another,
    `Text [2]` the second of several. Upper and lower case are told apart only where several headings differ by it.
    A heading whose text looks like one of these is named by its text. Raises `NotFound` (`heading.not-found`) and
    `Invalid` (`heading.not-unique`, with count and lines).
    """
    parents = _parents(headings)
    places = _named(headings, parents, wanted)
    numbered = None if places else _NUMBERED.fullmatch(wanted.strip())
    if numbered:
        several = _named(headings, parents, numbered[1])
        places = several[int(numbered[2]) - 1 : int(numbered[2])]
    if not places:
        raise NotFound(
            "heading.not-found",
            f"the page has no heading {wanted.strip()[:_SHOWN]!r}",
            hint="read the page, or its outline, to see those that it has",
        )
    if len(places) > 1:
        _refuse_several(headings, places)
    return places[0]


def _named(headings: Sequence[Heading], parents: Sequence[int], wanted: str) -> list[int]:
    """Gives the numbers of the headings that are meant: by their text as a whole, else as a way from above."""
    places = _exactly(headings, range(len(headings)), _step(wanted))
    if places or not _STEP.search(wanted.strip()):
        return places
    *above, last = (_step(part) for part in _STEP.split(wanted.strip()))
    below = _exactly(headings, range(len(headings)), last)
    direct = [place for place in below if _is_below(headings, parents, place, above, gaps=False)]
    return direct or [place for place in below if _is_below(headings, parents, place, above, gaps=True)]


def _step(wanted: str) -> _Step:
    text = wanted.strip().lstrip("#")
    level = len(wanted.strip()) - len(text)
    if not 1 <= level <= 6 or text[:1] not in {" ", "\t", ""}:
        text, level = wanted.strip(), 0
    return _Step(text.strip(), level)


def _exactly(headings: Sequence[Heading], among: Iterable[int], step: _Step) -> list[int]:
    """Gives the headings of a text: those that are spelled so, else those that differ by case."""
    key = lookup_key(step.text)
    places = [
        place
        for place in among
        if step.level in {0, headings[place].level} and lookup_key(headings[place].text) == key
    ]
    spelled = [place for place in places if headings[place].text == step.text]
    return spelled if len(places) > 1 and spelled else places


def _is_below(
    headings: Sequence[Heading], parents: Sequence[int], place: int, above: Sequence[_Step], *, gaps: bool
) -> bool:
    """Tells whether a heading stands below those of a way: right below each, or with others between."""
    at = parents[place]
    for step in reversed(above):
        while gaps and at >= 0 and not _exactly(headings, [at], step):
            at = parents[at]
        if at < 0 or not _exactly(headings, [at], step):
            return False
        at = parents[at]
    return True


def _parents(headings: Sequence[Heading]) -> list[int]:
    """Gives for each heading the number of the one that it stands below, or -1."""
    parents, open_ = [], list[int]()
    for number, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            open_.pop()
        parents.append(open_[-1] if open_ else -1)
        open_.append(number)
    return parents


def _refuse_several(headings: Sequence[Heading], places: Sequence[int]) -> None:
    lines = [headings[place].line for place in places[:NAMED]]
    named = ", ".join(f"[{number}] line {line}" for number, line in enumerate(lines, 1))
    raise Invalid(
        "heading.not-unique",
        f"{len(places)} headings of the page have this text: {named}{', …' if len(places) > NAMED else ''}",
        hint="name its level (`## Text`), what it stands below (`Above > Text`) or its number (`Text [2]`)",
        details={"count": len(places), "lines": lines},
    )

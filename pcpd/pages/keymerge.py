"""Merges the front matter of two versions by what it means, as edits of the text of ours.

A key that one side changed is taken from it, in the words and the layout that it has there. Lists are sets in
order, to which each side adds and from which each removes; maps are merged by their keys; of times that both
set, the later one counts. A record of who did something stays whole. What both changed otherwise clashes.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pcpd.errors import Invalid
from pcpd.pages import verify
from pcpd.pages.keyed import (
    Entries,
    Entry,
    Front,
    Irregular,
    Meaning,
    Name,
    comments,
    entries,
    leaves,
    read_front,
)
from pcpd.pages.keys import TIME_KEYS
from pcpd.pages.nodes import Unreadable
from pcpd.pages.patch import Patch
from pcpd.pages.textmerge import merge_texts
from pcpd.pages.times import parse_time

Side: TypeAlias = Literal["ours", "theirs"]
Path: TypeAlias = tuple[str, ...]

RECORDS = frozenset({("source",), ("x_import",), ("review", "generated"), ("review", "rejected")})
"""Maps that say who did something, when and how: half of one and half of another would be an invention."""
WHOLE = "---"
"""The key that stands for the front matter as a whole, where it is laid out in a way that cannot be merged."""


class KeyClash(NamedTuple):
    """A key that both sides changed otherwise, as each has it; None: not at all. `chosen` is the side taken."""

    key: str
    base: str | None
    ours: str | None
    theirs: str | None
    chosen: Side | None


class MergedFront(NamedTuple):
    """The merged block, and what clashes; where a clash is not decided, the block is of no use."""

    yaml: str
    clashes: tuple[KeyClash, ...] = ()


def merge_fronts(base: Front, ours: Front, theirs: Front, prefer: Side | None = None) -> MergedFront:
    """Merges `theirs` into `ours`; the texts of all three have `\\n` as their line end."""
    if theirs.text in (base.text, ours.text):
        return MergedFront(ours.text)
    if ours.text == base.text:
        return MergedFront(theirs.text)
    sides = (base, ours, theirs)
    merge = _Merge(base, ours, prefer)
    expected = merge.meant(*sides)
    if any(clash.chosen is None for clash in merge.clashes):
        return MergedFront(ours.text, tuple(merge.clashes))
    for candidate in _candidates(sides, merge, expected, prefer):
        if _holds(candidate, sides):
            return MergedFront(candidate.text, tuple(merge.clashes))
    whole = KeyClash(WHOLE, base.text, ours.text, theirs.text, prefer)
    return MergedFront(theirs.text if prefer == "theirs" else ours.text, (whole,))


class _Candidate(NamedTuple):
    """A text that may be the result, and what it must mean; None: that was not to be found out."""

    text: str
    expected: Meaning | None
    is_respelled: bool = False


def _candidates(
    sides: tuple[Front, Front, Front], merge: "_Merge", expected: Meaning | None, prefer: Side | None
) -> Iterator[_Candidate]:
    """Gives what may be the result, the best first: ours edited, the lines merged, theirs edited."""
    base, ours, theirs = sides
    if expected is not None:
        yield from merge.candidate(expected)
    lines = merge_texts(base.text, ours.text, theirs.text, by_words=False)
    if not lines.clashes:
        yield _Candidate(lines.text, expected)
    if expected is not None:
        flipped: Side | None = "theirs" if prefer == "ours" else "ours" if prefer == "theirs" else None
        other = _Merge(base, theirs, flipped)
        mirrored = other.meant(base, theirs, ours)
        if mirrored is not None:
            yield from other.candidate(mirrored)


class _Merge:
    """Walks both versions, decides, and notes in `patch` what that means for the text of ours."""

    def __init__(self, base: Front, ours: Front, prefer: Side | None) -> None:
        self._prefer = prefer
        self.patch = Patch(ours.text, base.text)
        self.clashes: list[KeyClash] = []

    def meant(self, base: Front, ours: Front, theirs: Front) -> Meaning | None:
        """Merges the whole block, and gives what the result must mean; None, and no clashes, for a layout that
        cannot be taken apart.
        """
        try:
            return self._fronts(base, ours, theirs)
        except Irregular:
            self.clashes.clear()
            return None

    def candidate(self, expected: Meaning) -> Iterator[_Candidate]:
        """Gives the text with all edits, if they can be made."""
        with contextlib.suppress(Irregular):
            yield _Candidate(self.patch.result(), expected, self.patch.is_respelled)

    def _fronts(self, base: Front, ours: Front, theirs: Front) -> Meaning:
        sides = (_top(base), _top(ours), _top(theirs))
        meaning = self._entries((), sides)
        if not any(side.is_flow for side in sides):
            tails = [front.text[side.end :] for front, side in zip((base, ours, theirs), sides, strict=True)]
            self.patch.between(sides[1].end, len(ours.text), tails[0], tails[2])
        return meaning

    def _entries(
        self, path: Path, sides: tuple[Entries, Entries, Entries], mine: Entry | None = None
    ) -> Meaning:
        """Merges the entries of a list or map; `mine` is the key that it is the value of."""
        base, ours, theirs = sides
        found: dict[Name, Meaning] = {}
        for name, entry in ours.by_name.items():
            where, before, other = _under(path, name), base.by_name.get(name), theirs.by_name.get(name)
            if other is not None:
                found[name] = self._pair(where, before, entry, other)
            elif before is None or not self._goes(where, before, entry, is_ours=False):
                found[name] = entry.node.meaning
        for name, entry in theirs.by_name.items():
            before = base.by_name.get(name)
            is_new = name not in ours.by_name
            if is_new and (before is None or not self._goes(_under(path, name), before, entry, is_ours=True)):
                found[name] = entry.node.meaning
        order = united(tuple(ours.by_name), tuple(theirs.by_name), found)
        if mine is not None and not order and not ours.is_flow:
            self.patch.empty(mine, "[]" if ours.is_list else "{}")
        else:
            self.patch.place(sides, order)
        if ours.is_list:
            return ("list", tuple(found[name] for name in order))
        return ("map", tuple(sorted(found.items())))

    def _goes(self, path: Path, before: Entry, entry: Entry, *, is_ours: bool) -> bool:
        """Tells whether an entry goes that one side (`is_ours`: ours) has removed and the other still has."""
        if before.is_same(entry):
            return True
        sides = (None, entry) if is_ours else (entry, None)
        chosen = self._clash(path, before, *sides)
        return (chosen != "theirs") if is_ours else (chosen == "theirs")

    def _pair(self, path: Path, before: Entry | None, mine: Entry, other: Entry) -> Meaning:
        """Merges an entry that both sides have."""
        self.patch.lead(before, mine, other)
        ours, theirs = mine.node.meaning, other.node.meaning
        if mine.is_same(other) or (before is not None and before.is_same(other)):
            return ours
        if before is not None and before.is_same(mine):
            self.patch.replace(mine, other)
            return theirs
        base = None if before is None else before.node.meaning
        is_one_sided = theirs in (base, ours) or ours == base
        are_lines = not (mine.is_inline or other.is_inline)
        if _are_open(mine, other) and (are_lines if is_one_sided else path not in RECORDS):
            has_base = before is not None and _are_open(before, mine)
            self.patch.comment(before, mine, other)
            known = _inside(before) if before is not None and has_base else Entries()
            return self._entries(path, (known, _inside(mine), _inside(other)), mine)
        if theirs in (base, ours) or self._is_later(path, other, mine):
            self.patch.comment(before, mine, other)
            return ours
        if ours == base or self._is_later(path, mine, other):
            return self._taken(before, mine, other)
        return (
            self._taken(before, mine, other) if self._clash(path, before, mine, other) == "theirs" else ours
        )

    def _taken(self, before: Entry | None, mine: Entry, other: Entry) -> Meaning:
        """Takes the value of the other side, and the comments of both."""
        self.patch.replace_value(mine, other)
        if mine.is_inline and other.is_inline:
            self.patch.comment(before, mine, other)
        return other.node.meaning

    @staticmethod
    def _is_later(path: Path, mine: Entry, other: Entry) -> bool:
        """Tells whether both are times, and `other` the later one."""
        if not _is_time(path):
            return False
        times = [_time(entry.node.meaning) for entry in (mine, other)]
        return "" not in times and times[0] < times[1]

    def _clash(
        self, path: Path, before: Entry | None, mine: Entry | None, other: Entry | None
    ) -> Side | None:
        """Notes a clash, and gives the side that is taken."""
        base, ours, theirs = (None if entry is None else entry.node.source for entry in (before, mine, other))
        self.clashes.append(KeyClash(".".join(path), base, ours, theirs, self._prefer))
        return self._prefer


def united(ours: Sequence[Name], theirs: Sequence[Name], found: Mapping[Name, object]) -> list[Name]:
    """Gives the names that are in `found`, in order: as ours has them, those of the other side after what they
    follow there. Where both sides put names in one place, the order is the same from either side.
    """
    common = set(ours) & set(theirs)
    mine, others = _runs(ours, common, found), _runs(theirs, common, found)
    order: list[Name] = []
    for name in [None, *(name for name in ours if name in common)]:
        order += [name] if name is not None else []
        for run in sorted((mine.get(name, []), others.get(name, []))):
            order += run
    return order


def _runs(
    names: Sequence[Name], common: set[Name], found: Mapping[Name, object]
) -> dict[Name | None, list[Name]]:
    """Gives the names that one side alone has, by the common one that they follow."""
    runs: dict[Name | None, list[Name]] = {}
    at: Name | None = None
    for name in names:
        if name in common:
            at = name
        elif name in found:
            runs.setdefault(at, []).append(name)
    return runs


def _holds(candidate: _Candidate, sides: tuple[Front, Front, Front]) -> bool:
    """Tells whether a text says what was expected, has every comment that a side added, and reads in YAML 1.2 as
    the sides do where a value was written anew.
    """
    try:
        front = read_front(candidate.text)
        base, *both = sides
        if candidate.expected is not None and front.meaning != candidate.expected:
            return False
        there, known = "\n".join(comments(front)), comments(base)
        if not all(comment in there for side in both for comment in comments(side) - known):
            return False
        if not candidate.is_respelled:
            return True
        said = {leaf for side in both for leaf in leaves(verify.read_12(side.text))}
        return said.issuperset(leaves(verify.read_12(candidate.text)))
    except Unreadable:
        return False


def _top(front: Front) -> Entries:
    """Takes the whole block apart."""
    if front.root is None:
        return Entries()
    if not front.root.has_entries:
        raise Irregular
    return entries(front.root)


def _inside(entry: Entry) -> Entries:
    """Takes the value of an entry apart."""
    if entry.key is None:
        raise Irregular
    return entries(entry.node, entry.key.end)


def _are_open(one: Entry, other: Entry) -> bool:
    """Tells whether both values are lists, or both maps, that stand there themselves and can be merged."""
    return one.node.has_entries and other.node.has_entries and one.node.item.kind == other.node.item.kind


def _under(path: Path, name: Name) -> Path:
    """Gives the path of an entry; an item has that of its list."""
    return (*path, name) if isinstance(name, str) else path


def _is_time(path: Path) -> bool:
    return len(path) == 1 and path[0] in TIME_KEYS


def _time(meaning: Meaning) -> str:
    """Gives a time in a form that sorts, by its spelling where two name one moment; empty for what is none."""
    try:
        return f"{parse_time(meaning[2]).isoformat()} {meaning[2]}" if meaning[0] == "scalar" else ""
    except Invalid:
        return ""

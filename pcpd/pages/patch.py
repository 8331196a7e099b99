"""Edits of a block of front matter for a merge: what comes from the other version, where it belongs in ours.

Whole lines come as they are there, with the comments above them; where one version has brackets and the other
lines, single values are written anew. Whether the result says what was meant is for `keymerge` to check.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pcpd.pages.keyed import Entries, Entry, Irregular, Name
from pcpd.pages.textmerge import merge_texts
from pcpd.pages.values import written


class _Edit(NamedTuple):
    """`text[start:end]` becomes `new`; of edits in one place, those of lower `rank` come first."""

    start: int
    end: int
    rank: int
    number: int
    new: str


class Patch:
    """Gathers edits of `text`, the block of ours. `is_respelled` tells that some value was
    written anew, or stands where other rules hold."""

    def __init__(self, text: str, base: str) -> None:
        self._text = text
        self._known = frozenset(base.splitlines())
        self._edits: list[_Edit] = []
        self.is_respelled = False

    def result(self) -> str:
        """Gives the text with all edits. Raises `Irregular` when two of them meet."""
        parts, at = [], 0
        for edit in sorted(self._edits):
            if edit.start < at:
                raise Irregular
            parts += [self._text[at : edit.start], edit.new]
            at = edit.end
        return "".join([*parts, self._text[at:]])

    def replace(self, mine: Entry, other: Entry) -> None:
        """Puts the entry of the other side in place of ours; comments above it stay."""
        if mine.is_flow or other.is_flow:
            self.replace_value(mine, other)
        else:
            self._edit(mine.start, mine.end, other.lines(mine.column))

    def replace_value(self, mine: Entry, other: Entry) -> None:
        """Puts the value of the other side in place of ours, whose comment stays."""
        if not (mine.is_flow or other.is_flow or (mine.is_inline and other.is_inline)):
            self.replace(mine, other)
            return
        new = self._inline(other, in_flow=mine.is_flow)
        if not mine.is_inline:
            self._beside_key(mine, new)
            return
        item = mine.node.item
        before = self._text[item.start - 1 : item.start]
        self._edit(item.start, item.end, f" {new}" if new and before == ":" else new)

    def empty(self, mine: Entry, new: str) -> None:
        """Puts `new`, an empty list or map, in place of the lines of ours."""
        self._beside_key(mine, new)

    def comment(self, before: Entry | None, mine: Entry, other: Entry) -> None:
        """Merges what stands behind a value, or behind the key of one in lines; where both sides wrote something
        there, it has both.
        """
        place, there = _behind(mine), _behind(other)
        if place is None or there is None or mine.is_inline != other.is_inline:
            return
        known = None if before is None else _behind(before)
        base = "" if before is None or known is None else before.node.text[slice(*known)]
        ours, theirs = self._text[slice(*place)], other.node.text[slice(*there)]
        if theirs.strip() in (base.strip(), ours.strip()):
            return
        new = theirs if ours.strip() == base.strip() else f"{ours.rstrip()} {theirs.strip()}"
        self._edit(*place, new)

    def lead(self, before: Entry | None, mine: Entry, other: Entry) -> None:
        """Merges the comments and blank lines above an entry."""
        if not (mine.is_flow or other.is_flow):
            base = "" if before is None or before.is_flow else _lead(before)
            self.between(mine.lead, mine.start, base, _lead(other))

    def between(self, start: int, end: int, base: str, theirs: str) -> None:
        """Merges comments and blank lines; what both sides put there otherwise is there twice."""
        ours = self._text[start:end]
        if theirs in (base, ours):
            return
        merged = merge_texts(base, ours, theirs, by_words=False)
        if merged.clashes:
            first, second = sorted((ours, theirs))
            known = set(first.split("\n"))
            rest = [line for line in second.splitlines(keepends=True) if line.rstrip("\n") not in known]
            self._edit(start, end, first + "".join(rest), rank=1)
        else:
            self._edit(start, end, merged.text, rank=1)

    def place(self, sides: tuple[Entries, Entries, Entries], order: Sequence[Name]) -> None:
        """Removes from ours what is not in `order` and adds what only the other side has, where it belongs."""
        base, ours, theirs = sides
        if ours.is_flow:
            self._place_between_brackets(ours, theirs, order)
            return
        kept = set(order)
        for name, entry in ours.by_name.items():
            if name not in kept:
                self._edit(entry.lead, entry.end, _own_lines(base.by_name.get(name), entry))
        moved = self._moved(ours, theirs)
        first = next(iter(ours.by_name.values()), None)
        at = ours.end if first is None else first.lead
        for name in order:
            mine = ours.by_name.get(name)
            if mine is None:
                self._edit(at, at, self._as_lines(theirs.by_name[name], ours, moved))
            else:
                at = mine.end
        self._keep_comments(sides, kept)

    def _keep_comments(self, sides: tuple[Entries, Entries, Entries], kept: set[Name]) -> None:
        """Adds the comments that the other side has put above entries that ours has removed."""
        base, ours, theirs = sides
        first = next(iter(ours.by_name.values()), None)
        at = ours.end if first is None else first.lead
        for name, entry in theirs.by_name.items():
            if name in ours.by_name:
                at = ours.by_name[name].end
            elif name not in kept and not entry.is_flow:
                self._edit(at, at, _own_lines(base.by_name.get(name), entry))

    def _place_between_brackets(self, ours: Entries, theirs: Entries, order: Sequence[Name]) -> None:
        kept, mine = set(order), list(ours.by_name.values())
        stays = [entry for entry in mine if entry.name in kept]
        coming = {name: self._as_part(theirs.by_name[name]) for name in order if name not in ours.by_name}
        if not stays:
            start, end = (mine[0].start, mine[-1].end) if mine else (ours.end - 1, ours.end - 1)
            self._edit(start, end, ", ".join(coming.values()))
            return
        first = stays[0]
        if first is not mine[0]:
            self._edit(mine[0].start, first.start, "")
        for left, entry in pairwise(mine):
            if entry.name not in kept and entry.start > first.start:
                self._edit(left.end, entry.end, "")
        at: Entry | None = None
        for name in order:
            if name not in coming:
                at = ours.by_name[name]
            elif at is None:
                self._edit(first.start, first.start, f"{coming[name]}, ")
            else:
                self._edit(at.end, at.end, f", {coming[name]}")

    def _moved(self, ours: Entries, theirs: Entries) -> frozenset[str]:
        """Gives lines of the base that now stand above what ours has added: both sides may have added below them."""
        added = (entry for name, entry in ours.by_name.items() if name not in theirs.by_name)
        return self._known & {line for entry in added for line in _lead(entry).splitlines()}

    def _as_lines(self, entry: Entry, ours: Entries, moved: frozenset[str]) -> str:
        """Gives an entry of the other side as lines of ours, with the comments above it, but for `moved` ones."""
        if not entry.is_flow:
            above = entry.lead_lines(ours.column)
            return "".join(line for line in above if line.rstrip("\n") not in moved) + entry.lines(
                ours.column
            )
        indent = " " * ours.column
        return f"{indent}{self._key(entry, in_flow=False)}{self._inline(entry, in_flow=False)}\n"

    def _as_part(self, entry: Entry) -> str:
        """Gives an entry of the other side as it may stand between brackets."""
        key = "" if entry.key is None else self._key(entry, in_flow=True)
        return key + self._inline(entry, in_flow=True)

    def _key(self, entry: Entry, *, in_flow: bool) -> str:
        if entry.key is None:
            return "- "
        source = entry.node.text[entry.key.start : entry.key.end]
        is_kept = not in_flow or entry.is_flow or entry.key.style
        return f"{source if is_kept else written(entry.key.value, in_flow=True)}: "

    def _inline(self, entry: Entry, *, in_flow: bool) -> str:
        """Gives a value of the other side on one line: as it is written, if it can stand so, else written anew."""
        source, item = entry.node.source, entry.node.item
        is_moved = in_flow and not entry.is_flow
        is_plain = item.kind == "scalar" and not item.style
        is_unfit = is_moved and is_plain and any(mark in source for mark in ",[]{}")
        if not (item.is_block or "\n" in source or is_unfit):
            self.is_respelled |= is_moved
            return source
        self.is_respelled = True
        return written(entry.node.value, in_flow=in_flow)

    def _beside_key(self, mine: Entry, new: str) -> None:
        """Puts a value on the line of its key, whose comment stays, in place of the lines of the old one."""
        if mine.key is None or mine.is_flow:
            raise Irregular
        colon = self._text.index(":", mine.key.end) + 1
        rest = self._text[colon : self._text.index("\n", colon)].rstrip()
        comment = rest if rest.lstrip().startswith("#") else ""
        self._edit(colon, mine.end - 1, f" {new}{comment}")

    def _edit(self, start: int, end: int, new: str, *, rank: int = 0) -> None:
        self._edits.append(_Edit(start, end, rank, len(self._edits), new))


def _behind(entry: Entry) -> tuple[int, int] | None:
    """Gives where a comment of the entry's own line stands; None between brackets, and for a text in lines."""
    if entry.is_flow:
        return None
    if entry.is_inline:
        return entry.node.item.end, entry.end - 1
    if entry.key is None or entry.node.item.kind == "scalar":
        return None
    colon = entry.node.text.index(":", entry.key.end) + 1
    return colon, entry.node.text.index("\n", colon)


def _lead(entry: Entry) -> str:
    return entry.node.text[entry.lead : entry.start]


def _own_lines(before: Entry | None, mine: Entry) -> str:
    """Gives the comments above an entry that goes which are ours alone."""
    known = set() if before is None or before.is_flow else set(_lead(before).split("\n"))
    lines = _lead(mine).splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and line.rstrip("\n") not in known)

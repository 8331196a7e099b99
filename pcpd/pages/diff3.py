"""Three-way merge of sequences: what only one side changed is taken, what both changed alike is taken once.

Used on lines, and on words where lines clash. The result never holds an item that no side has, and never lacks
one that a side has and the base has not, but for what clashes. Work is bounded: beyond, stretches that may have
much in common count as wholly different, so that more clashes, and nothing is guessed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher

PAIRS_COMPARED = 3_000_000
"""Pairs of equal items that one comparison looks at, at most; about a third of a second."""

_Stretch = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the result, or a clash: then `merged` is None and the three sides say what they have.

    Each side is a range of its items; `merged` is the name of the side whose range is taken.
    """

    merged: str | None
    base: range
    ours: range
    theirs: range


def diff3(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[Piece]:
    """Gives the pieces of the merge, in order, empty ones left out.

    Where both sides put something in one place and one of them has all that the other has, in its order, that
    one is taken: what both added is there once.
    """
    pieces: list[Piece] = []
    at = (0, 0, 0)
    for b, o, t, size in _anchors(base, ours, theirs):
        ranges = (range(at[0], b), range(at[1], o), range(at[2], t))
        if any(ranges):
            sides = (base[at[0] : b], ours[at[1] : o], theirs[at[2] : t])
            pieces.append(Piece(_choice(*sides), *ranges))
        at = (b + size, o + size, t + size)
        if size:
            pieces.append(Piece("ours", range(b, at[0]), range(o, at[1]), range(t, at[2])))
    return pieces


def _choice(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """Names the side that a stretch between two anchors is taken from; None for a clash."""
    if theirs in (base, ours):
        return "ours"
    if ours == base:
        return "theirs"
    if not base:
        long, short, name = (ours, theirs, "ours") if len(ours) > len(theirs) else (theirs, ours, "theirs")
        if _is_within(short, long):
            return name
    return None


def _is_within(short: Sequence[str], long: Sequence[str]) -> bool:
    """Tells whether `long` has all items of `short`, in their order."""
    rest = iter(long)
    return all(item in rest for item in short)


def _anchors(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Gives the stretches that all three share: their starts and their length; the end as one of length 0."""
    mine, others = matches(base, ours), matches(base, theirs)
    i = j = 0
    while i < len(mine) and j < len(others):
        (b1, o, n1), (b2, t, n2) = mine[i], others[j]
        start, end = max(b1, b2), min(b1 + n1, b2 + n2)
        if start < end:
            yield start, o + start - b1, t + start - b2, end - start
        if b1 + n1 < b2 + n2:
            i += 1
        else:
            j += 1
    yield len(base), len(ours), len(theirs), 0


def matches(a: Sequence[str], b: Sequence[str]) -> list[_Stretch]:
    """Gives stretches that two sequences share, in order: start in each, length; those at both ends first, then
    what difflib finds between, as far as the work goes that is allowed.
    """
    limit = min(len(a), len(b))
    head = 0
    while head < limit and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < limit - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    found = [(0, 0, head)] if head else []
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    if inner_a and inner_b:
        blocks = _Bounded(inner_a, inner_b).get_matching_blocks()
        found += [(head + i, head + j, n) for i, j, n in blocks if n]
    if tail:
        found.append((len(a) - tail, len(b) - tail, tail))
    return found


class _Bounded(SequenceMatcher[str]):
    """difflib's matcher, which finds nothing more once it has looked at `PAIRS_COMPARED` pairs."""

    a: Sequence[str]
    b2j: dict[str, list[int]]

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        super().__init__(None, a, b, autojunk=False)
        self._left = PAIRS_COMPARED

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = len(self.a) if ahi is None else ahi
        places = self.b2j
        self._left -= end - alo + sum(len(places.get(item, ())) for item in self.a[alo:end])
        if self._left < 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)

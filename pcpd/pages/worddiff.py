"""Compares two texts by their words, for people: what stayed, what went, what came.

Lines are compared first, then words within what changed; scripts that write no blanks between words go by
character. Where two stretches have little in common they are shown whole, since single words that happen to
stand in both tell nobody anything. Work is bounded (`diff3.matches`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pcpd.pages.diff3 import matches

Op = Literal["same", "removed", "added"]

LINES_COMPARED = 200_000
"""Lines of either text, between those that both begin and end with, beyond which all of it counts as changed."""
LETTERS_COMPARED = 200_000
"""Characters of a changed stretch beyond which it is shown whole."""
LEAST_SHARED = 0.3
"""Part of the longer stretch that must stay for words to be shown one by one."""

CJK = (
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""A character of a script that writes no blanks between words, as a regular expression."""

_TOKEN = re.compile(rf"{CJK}|(?:(?!{CJK})\w)+(?:['\u2019]\w+)*|\r\n|\n|[^\S\r\n]+|.", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text: in both texts, in the old one alone, or in the new one alone. Never empty."""

    op: Op
    text: str


def word_diff(old: str, new: str) -> tuple[Span, ...]:
    """Gives the stretches of both texts, in order; what went stands before what came in its place.

    `same` and `removed` together are exactly `old`, `same` and `added` exactly `new`; no two spans of one kind
    follow each other.
    """
    if old == new:
        return (Span("same", old),) if old else ()
    head, tail = common_ends(old, new)
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    spans = [("same", old[:head]), *_by_lines(inner_old, inner_new), ("same", old[len(old) - tail :])]
    return tuple(_joined(spans))


def words(text: str) -> list[str]:
    """Gives words, blanks, line ends and single marks, in order; together they are `text`."""
    return _TOKEN.findall(text)


def common_ends(old: str, new: str) -> tuple[int, int]:
    """Gives how many characters two texts share at their start and at their end, in whole lines."""
    head = _shared(old, new, 0)
    if head < max(len(old), len(new)):
        head = old.rfind("\n", 0, head) + 1
    tail = _shared(old[head:], new[head:], -1)
    if head + tail < max(len(old), len(new)):
        # The line that the tail begins in may differ before it.
        break_at = old.find("\n", len(old) - tail)
        tail = 0 if break_at < 0 else len(old) - break_at - 1
    return head, tail


def _shared(a: str, b: str, side: int) -> int:
    """Counts the characters that two texts share at one end, by comparing ever smaller parts at once."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle] if side == 0 else _tail(a, low, middle) == _tail(b, low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _tail(text: str, low: int, high: int) -> str:
    return text[len(text) - high : len(text) - low]


def _by_lines(old: str, new: str) -> Iterator[tuple[Op, str]]:
    """Compares lines, and words where lines changed."""
    if max(old.count("\n"), new.count("\n")) > LINES_COMPARED:
        yield from (("removed", old), ("added", new))
        return
    a, b = _LINE.findall(old), _LINE.findall(new)
    for is_same, gone, come in _stretches(a, b):
        if is_same:
            yield "same", gone
        else:
            yield from _by_words(gone, come)


def _by_words(old: str, new: str) -> Iterator[tuple[Op, str]]:
    """Compares the words of two stretches, unless they have little in common."""
    whole: tuple[tuple[Op, str], ...] = (("removed", old), ("added", new))
    if not old or not new or max(len(old), len(new)) > LETTERS_COMPARED:
        yield from whole
        return
    found = list(_stretches(words(old), words(new)))
    kept = sum(len(gone) for is_same, gone, _ in found if is_same and not gone.isspace())
    if kept < LEAST_SHARED * max(len(old), len(new)):
        yield from whole
        return
    yield from _readable(found)


def _readable(found: Sequence[tuple[bool, str, str]]) -> Iterator[tuple[Op, str]]:
    """Gives the spans; blanks alone between two changes belong to both, so that phrases stay whole."""
    gone = come = ""
    for at, (is_same, old, new) in enumerate(found):
        between = 0 < at < len(found) - 1 and old.isspace() and "\n" not in old
        if is_same and not between:
            yield from (("removed", gone), ("added", come), ("same", old))
            gone = come = ""
        else:
            gone, come = gone + old, come + new
    yield from (("removed", gone), ("added", come))


def _stretches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
    """Gives what two sequences share and what stands between, as text: is it the same, old, new."""
    i = j = 0
    for x, y, size in [*matches(a, b), (len(a), len(b), 0)]:
        if x > i or y > j:
            yield False, "".join(a[i:x]), "".join(b[j:y])
        i, j = x + size, y + size
        if size:
            yield True, "".join(a[x:i]), "".join(b[y:j])


def _joined(spans: Sequence[tuple[str, str]]) -> Iterator[Span]:
    """Joins neighbours of one kind, what went before what came, and leaves out empty ones."""
    filled = [(op, text) for op, text in spans if text]
    for is_same, group in groupby(filled, key=lambda span: span[0] == "same"):
        parts = list(group)
        ops: tuple[Op, ...] = ("same",) if is_same else ("removed", "added")
        for op in ops:
            text = "".join(part for kind, part in parts if kind == op)
            if text:
                yield Span(op, text)

"""Merges three versions of a text: by lines, and by words where lines of one paragraph clash.

A paragraph is a run of lines that are not blank. Words are merged only where each side kept at least half of
what the base has there: two who wrote a sentence anew are not mixed. Lines that stay have the line ends of ours,
and so have those that come from the other side.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from pcpd.pages.block import newline_of
from pcpd.pages.diff3 import Piece, diff3, matches
from pcpd.pages.worddiff import CJK, common_ends

LINES_COMPARED = 200_000
"""Lines between those that all versions begin and end with, beyond which all of them clash."""
LETTERS_COMPARED = 200_000
"""Characters of a stretch of lines that clash, beyond which its words are not looked at."""
LEAST_KEPT = 0.5

_LINE = re.compile(r"[^\n]*\n")
_WORD = re.compile(rf"{CJK}\s*|(?:(?!{CJK})\S)+\s*|\s+")


class TextClash(NamedTuple):
    """A stretch that both sides changed otherwise: what each version has there."""

    base: str
    ours: str
    theirs: str


class MergedText(NamedTuple):
    """The merged text, and what clashes; where something does, the text has ours there."""

    text: str
    clashes: tuple[TextClash, ...] = ()


def merge_texts(base: str, ours: str, theirs: str, *, by_words: bool = True) -> MergedText:
    """Merges `theirs` into `ours`, over the version that both were made from. Lines end in `\\n`."""
    if theirs in (base, ours):
        return MergedText(ours)
    if ours == base:
        return MergedText(theirs)
    ended = [_ended(text) for text in (base, ours, theirs)]
    head, tail = _shared_ends(*ended)
    merger = _Merger(by_words)
    merged = merger.merge(*(text[head : len(text) - tail] for text in ended))
    text = ended[1][:head] + merged + ended[1][len(ended[1]) - tail :]
    if not _is_ended(base, ours, theirs):
        text = text.removesuffix("\n")
    return MergedText(text, tuple(merger.clashes))


class _Merger:
    """Merges lines, and gathers what clashes."""

    def __init__(self, by_words: bool) -> None:
        self._by_words = by_words
        self.clashes: list[TextClash] = []

    def merge(self, *texts: str) -> str:
        """Gives the merged text of base, ours and theirs."""
        if max(text.count("\n") for text in texts) > LINES_COMPARED:
            return self._clash(*texts)
        base, ours, theirs = (_LINE.findall(text) for text in texts)
        return "".join(self._merged(piece, base, ours, theirs) for piece in diff3(base, ours, theirs))

    def _merged(self, piece: Piece, base: list[str], ours: list[str], theirs: list[str]) -> str:
        pairs = ((base, piece.base), (ours, piece.ours), (theirs, piece.theirs))
        sides = [lines[where.start : where.stop] for lines, where in pairs]
        if piece.merged is not None:
            return "".join(sides[1 if piece.merged == "ours" else 2])
        found = _beside(*sides)
        if found is None and self._by_words:
            found = _merged_words(*sides)
        return self._clash(*("".join(side) for side in sides)) if found is None else found

    def _clash(self, base: str, ours: str, theirs: str) -> str:
        self.clashes.append(TextClash(base, ours, theirs))
        return ours


def with_line_ends(text: str, like: str) -> str:
    """Gives `text`, whose lines end in `\\n`, with the line ends of `like`: lines that stand in both have the one
    that they have there, others the one that most lines there have.
    """
    crlf = like.count("\r\n")
    if not crlf:
        return text
    if crlf == like.count("\n"):
        return text.replace("\n", "\r\n")
    newline = newline_of(like)
    own = _LINE.findall(like)
    lines = _LINE.findall(text)
    ends = [newline] * len(lines)
    for i, j, size in matches([line.replace("\r\n", "\n") for line in own], lines):
        ends[j : j + size] = ["\r\n" if line.endswith("\r\n") else "\n" for line in own[i : i + size]]
    ended = "".join(line[:-1] + end for line, end in zip(lines, ends, strict=True))
    return ended + text[text.rfind("\n") + 1 :]


def _beside(base: list[str], ours: list[str], theirs: list[str]) -> str | None:
    """Gives both changes where one side left the paragraphs as they are and only put others before or after them,
    and the other side changed them; None where that is not so.
    """
    size = len(base)
    for mine, other in ((ours, theirs), (theirs, ours)):
        if not base or not other or len(mine) <= size or _blanks(other) != _blanks(base):
            continue
        if mine[:size] == base and not mine[size].strip():
            return "".join(other + mine[size:])
        if mine[-size:] == base and not mine[-size - 1].strip():
            return "".join(mine[:-size] + other)
    return None


def _blanks(lines: list[str]) -> int:
    return sum(1 for line in lines if not line.strip())


def _merged_words(base: list[str], ours: list[str], theirs: list[str]) -> str | None:
    """Gives lines of one paragraph with the changed words of both sides; None where that would be a guess."""
    if not (base and ours and theirs) or any(not line.strip() for line in chain(base, ours, theirs)):
        return None
    texts = ["".join(lines) for lines in (base, ours, theirs)]
    if max(map(len, texts)) > LETTERS_COMPARED:
        return None
    b, o, t = (_WORD.findall(text) for text in texts)
    if min(_kept(b, o), _kept(b, t)) < LEAST_KEPT * len(b):
        return None
    pieces = diff3(b, o, t)
    if any(piece.merged is None for piece in pieces):
        return None
    chosen = ((o, piece.ours) if piece.merged == "ours" else (t, piece.theirs) for piece in pieces)
    return "".join(side[at] for side, where in chosen for at in where)


def _kept(base: Sequence[str], side: Sequence[str]) -> int:
    """Counts the words of the base that a side kept."""
    return sum(size for _, _, size in matches(base, side))


def _shared_ends(base: str, ours: str, theirs: str) -> tuple[int, int]:
    """Gives how many characters all three share at their start and at their end, in whole lines."""
    mine, others = common_ends(base, ours), common_ends(base, theirs)
    return min(mine[0], others[0]), min(mine[1], others[1])


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _is_ended(base: str, ours: str, theirs: str) -> bool:
    """Tells whether the merged text ends with a line end: as the side has it that changed that."""
    known = [text.endswith("\n") if text else None for text in (base, ours, theirs)]
    if known[1] is None or known[2] is None:
        return bool(known[1]) or bool(known[2])
    if known[0] is None:
        return known[1] or known[2]
    return known[2] if known[1] == known[0] else known[1]

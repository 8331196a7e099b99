"""Keeps one answer within what clients take, and cuts between characters."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

BYTES = 40_000
"""Of an answer's text, and of its twin as data: some 10,000 tokens of English, 20,000 at most of Chinese.

Clients cut answers at some 25,000 tokens; some show their model the text, some the data, some both.
"""

ELLIPSIS = "…"
_PRINTED_BYTES = 4  # the same for one that is no control character and no half of one
_written = json.JSONEncoder(ensure_ascii=False).encode
_JOINER = "\u200d"


def cut(text: str, offset: int, budget: int = BYTES) -> tuple[str, int | None]:
    """Gives the part of `text` from the character `offset` on that fits into `budget` bytes of JSON in UTF-8.

    The second value is where the next part begins, or None at the end. A letter is not parted from its marks.
    """
    end = min(len(text), offset + budget)
    while (size := _size(text[offset:end])) > budget:
        end = offset + (end - offset) * budget // (size + 1)
    end = max(end, min(offset + 1, len(text)))
    if end >= len(text):
        return text[offset:], None
    whole = _whole_letters(text, offset, end)
    return text[offset:whole], whole


def shortened(text: str, budget: int) -> str:
    """Gives a text on one line, with an ellipsis where it is longer than `budget` bytes."""
    line = " ".join(text.split())
    if _PRINTED_BYTES * len(line) + 2 <= budget and line.isprintable():
        return line  # nearly always
    part, following = cut(line, 0, budget)
    return part if following is None else part.rstrip() + ELLIPSIS


def fitting(lines: Sequence[str], rows: Sequence[Mapping[str, Any]], budget: int = BYTES) -> int:
    """Gives how many of an answer's rows fit, each with its line of text; at least one."""
    text = data = 0
    for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
        text += _size(line)
        data += len(_written(row).encode("utf-8", "surrogatepass")) + 2
        if max(text, data) > budget:
            return max(number, 1)
    return len(rows)


def _size(text: str) -> int:
    return len(_written(text).encode("utf-8", "surrogatepass"))


def _whole_letters(text: str, offset: int, end: int) -> int:
    """Steps back to where a letter begins; not at all where marks without end have no letter."""
    begin = end
    while begin > offset + 1 and _belongs_to_the_one_before(text, begin):
        begin -= 1
    return end if begin == offset + 1 and _belongs_to_the_one_before(text, begin) else begin


def _belongs_to_the_one_before(text: str, at: int) -> bool:
    letter = text[at]
    return (
        bool(unicodedata.combining(letter))
        or unicodedata.category(letter) in {"Mn", "Mc", "Me"}
        or _JOINER in {letter, text[at - 1]}
        or "\U0001f3fb" <= letter <= "\U0001f3ff"
        or (letter == "\n" and text[at - 1] == "\r")
    )

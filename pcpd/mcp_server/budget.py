"""Keeps one answer within what clients take, and cuts between characters."""

import unicodedata

BYTES = 60_000
"""About 15,000 to 20,000 tokens of English; clients cut answers at some 25,000 tokens."""

JOINER = "\u200d"


def cut(text: str, offset: int, budget: int = BYTES) -> tuple[str, int | None]:
    """Gives the part of `text` from the character `offset` on that fits into `budget` bytes of UTF-8.

    The second value is where the next part begins, or None at the end. A letter is not parted from its marks.
    """
    rest = text[offset : offset + budget]
    part = rest.encode("utf-8", "surrogatepass")[:budget].decode("utf-8", "ignore")
    end = offset + len(part)
    if end >= len(text):
        return part, None
    while end > offset + 1 and _belongs_to_the_one_before(text, end):
        end -= 1
    return text[offset:end], end


def _belongs_to_the_one_before(text: str, at: int) -> bool:
    return bool(unicodedata.combining(text[at])) or JOINER in {text[at], text[at - 1]}

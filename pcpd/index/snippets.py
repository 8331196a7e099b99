"""Where a page's text answers a query best: the densest passage, for ranking, and a piece of text to show.

Looks at the folded text with plain string searches; 2 KB cost some 20 us. Of very long pages the first
`RANKED` characters are ranked, and the whole text is looked through for something to show.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pcpd.index import tokens
from pcpd.index.query import Term

RANKED = 64 * 1024
PASSAGE = 800
"""Characters that belong together: some eight turns of a talk, a long paragraph."""
LENGTH = 240
"""Characters of a snippet, at most, beside its ellipses."""

_HITS = 24  # of one term in one page; more say nothing new
# What one more occurrence adds: 1, then 0.37, 0.2, …: BM25's levelling off without lengths.
_GAIN = [(n + 1) * 2.2 / (n + 2.2) - n * 2.2 / (n + 1.2) for n in range(_HITS + 1)]
_WORD = re.compile(r"[^\W_]+")
_CHARACTER = 32
_ELLIPSIS = "…"
# Joiners, Thai and Lao AM, vowels and finals of decomposed Hangul, skin tones.
_JOINED = re.compile("[\u200c\u200d\u0e33\u0eb3\u1160-\u11ff\U0001f3fb-\U0001f3ff]")


@dataclass(frozen=True, slots=True)
class Passage:
    """What was found: the best passage's worth and start in the folded text, and which terms stand exactly.

    `found` says where each term stands in the folded body: places and numbers of terms, in order.
    """

    worth: float
    start: int
    exact: tuple[bool, ...]
    found: Sequence[tuple[int, int]] = ()


def best(title: str, body: str, terms: Sequence[Term], weights: Sequence[float]) -> Passage:
    """Finds the passage that holds most of the terms, by weight; repeats count little. Both texts are folded.

    The title is a passage too: a page that is called by the words is worth no less than one that mentions them.
    `start` is a place in the body.
    """
    text = body[:RANKED]
    found: list[tuple[int, int]] = []
    above: list[tuple[int, int]] = []
    exact: list[bool] = []
    for number, term in enumerate(terms):
        hits, named = list(_hits(text, term)), list(_hits(title, term))
        found.extend((position, number) for position, _ in hits)
        above.extend((position, number) for position, _ in named)
        exact.append(any(is_exact for _, is_exact in [*hits, *named]))
    found.sort()
    worth, start = _densest(found, weights)
    return Passage(max(worth, _densest(sorted(above), weights)[0]), start, tuple(exact), found)


def snippet(body: str, terms: Sequence[Term], weights: Sequence[float]) -> str:
    """Gives one line of the page around the best passage, cut between characters, its beginning where nothing fits."""
    folded = tokens.fold(body[:RANKED])
    found = sorted((at, number) for number, term in enumerate(terms) for at, _ in _hits(folded, term))
    if not found and len(body) > RANKED:
        body = _far(body, terms)
        folded = tokens.fold(body)
        found = sorted((at, number) for number, term in enumerate(terms) for at, _ in _hits(folded, term))
    return around(body, found, weights)


def around(body: str, found: Sequence[tuple[int, int]], weights: Sequence[float]) -> str:
    """Gives what `snippet` gives, for terms that were found in the folded text already (`Passage.found`)."""
    if not found:
        return line(body, 0)
    start = _densest(found, weights, width=LENGTH // 2)[1]
    return line(body, tokens.place_of(body, start))


def occurrences(
    columns: Sequence[str], weights: Sequence[int], terms: Sequence[Term]
) -> tuple[list[int], bool]:
    """Counts each term in folded columns, weighted, up to a bound; tells whether each stands just as typed."""
    counts, very = [0] * len(terms), [False] * len(terms)
    for number, term in enumerate(terms):
        for column, weight in zip(columns, weights, strict=True):
            for _, is_exact in _hits(column, term):
                counts[number] += weight
                very[number] = very[number] or is_exact
    return counts, all(very)


def beginnings(text: str, start: str) -> int:
    """Counts the words of a folded text that begin so, up to a bound."""
    return sum(_begins(text, at) for at in _places(text, start))


def _hits(text: str, term: Term) -> Iterator[tuple[int, bool]]:
    """Gives where the term stands, and whether just as typed."""
    first = term.words[0] if term.words else ""
    if term.kind == "literal" or tokens.is_alone(first[:1] or " ") or first.startswith("u1f"):
        yield from ((at, True) for at in _places(text, tokens.fold(term.text)))
    elif term.kind == "prefix":
        last = term.words[-1]
        yield from ((at, False) for at in _places(text, last) if _begins(text, at))
    elif term.kind == "phrase":
        yield from _phrase_hits(text, term)
    else:
        yield from _word_hits(text, term)


def _word_hits(text: str, term: Term) -> Iterator[tuple[int, bool]]:
    word = term.words[0]
    stem, typed = tokens.stem(word), tokens.fold(term.text)
    for at in _places(text, _root(stem)):
        if at and not _begins(text, at):
            continue
        match = _WORD.match(text, at)
        found = match[0] if match else ""
        if found == word:
            yield at, typed == word or text.startswith(typed, at)
        elif not term.quoted and tokens.stem(found) == stem:
            yield at, False


def _phrase_hits(text: str, term: Term) -> Iterator[tuple[int, bool]]:
    typed = tokens.fold(term.text)
    first, length = term.words[0], len(term.words)
    stems = [tokens.stem(word) for word in term.words]
    for at in _places(text, _root(stems[0])):
        if not _begins(text, at):
            continue
        if text.startswith(typed, at):
            yield at, True
            continue
        near = tokens.tokens(text[at : at + 2 * len(typed) + 8 * length])[:length]
        if [tokens.stem(word) for word in near] == stems:
            yield at, near == list(term.words) and near[0] == first


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part) if part else -1
    for _ in range(_HITS):
        if at < 0:
            return
        yield at
        at = text.find(part, at + 1)


def _root(stem: str) -> str:
    """Gives what all words of the stem begin with: Porter turns a final y into i."""
    return stem[:-1] if len(stem) > 2 and stem[-1] == "i" else stem


def _begins(text: str, at: int) -> bool:
    if at == 0:
        return True
    before = text[at - 1]
    if before in " \n":
        return True
    return not tokens.is_token_character(before) or tokens.is_alone(before)


def _densest(
    found: Sequence[tuple[int, int]], weights: Sequence[float], *, width: int = PASSAGE
) -> tuple[float, int]:
    """Slides a window over sorted places; each term counts once in full, and a little for repeats."""
    most, start, first, worth = 0.0, 0, 0, 0.0
    inside = [0] * len(weights)
    for position, number in found:
        worth += weights[number] * _GAIN[inside[number]]
        inside[number] += 1
        while found[first][0] < position - width:
            gone = found[first][1]
            inside[gone] -= 1
            worth -= weights[gone] * _GAIN[inside[gone]]
            first += 1
        if worth > most + 1e-9:
            most, start = worth, found[first][0]
    return most, start


def _far(body: str, terms: Sequence[Term]) -> str:
    """Gives the stretch of a very long text where a term stands first, by a plain search for its spelling."""
    lower = body.lower()
    if len(lower) != len(body):
        return body[:RANKED]
    for term in terms:
        for part in (term.text.lower(), term.words[-1] if term.words else ""):
            at = lower.find(part, RANKED - len(part)) if part else -1
            if at >= 0:
                return body[max(0, at - LENGTH) : at + RANKED]
    return body[:RANKED]


def line(body: str, at: int) -> str:
    """Gives one line of a text around a place, cut between characters as people see them, at spaces if near."""
    start = max(0, at - LENGTH // 4)
    end = min(len(body), start + LENGTH)
    if start > 0:
        space = re.compile(r"\s").search(body, start, at)
        start = space.end() if space else _between(body, start)
    if end < len(body):
        spaces = [match.start() for match in re.compile(r"\s").finditer(body, max(at, end - 24), end)]
        end = spaces[-1] if spaces else _between(body, end)
    piece = " ".join(body[start:end].replace("\0", " ").split())
    return f"{_ELLIPSIS if start > 0 and piece else ''}{piece}{_ELLIPSIS if end < len(body) else ''}"


def _between(text: str, at: int) -> int:
    """Moves a cut back to where no character is torn from its marks, joiners, selectors or second half.

    A character of more than `_CHARACTER` parts is nobody's, and is cut where it is.
    """
    for place in range(at, max(at - _CHARACTER, 0), -1):
        if place >= len(text) or not _belongs(text, place):
            return place
    return at


def _belongs(text: str, at: int) -> bool:
    after, before = text[at], text[at - 1]
    if unicodedata.category(after)[0] == "M" or _JOINED.match(after):
        return True
    if before == "\u200d" or (before == "\r" and after == "\n"):
        return True
    if "\U0001f1e6" <= after <= "\U0001f1ff":
        flags = 0
        while flags < at and "\U0001f1e6" <= text[at - 1 - flags] <= "\U0001f1ff":
            flags += 1
        return flags % 2 == 1
    return False

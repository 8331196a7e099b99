"""What a person typed into the search, as a value. Pure; knows no SQL and never fails.

The language (each piece stands between spaces):

    word              pages with the word or another form of it; those with the very word first
    "some words"      just these words, in this order
    pre*              words that begin so
    -piece            not that: a word (as written), a phrase, a prefix or a filter
    a or b            either; binds closer than the space
    type: tag: path: partition: lifecycle: is:proposed has:problem before: after: x-<key>:   filters

Everything else is literal text. `key:value` is a filter only for the keys above with a value that fits; quotes
count where they close; `-` counts before text. A piece of several words (`e-mail`, `a/b`, `2026-01-05`) is
the phrase of its words; one without any (`->`) is a `literal`, looked for as it stands only where the query has
nothing else. Of very long queries the first `PIECES` different pieces count.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pcpd.index import tokens
from pcpd.index.stopwords import STOP_WORDS

PIECES = 32
"""Different pieces of a query that count; of a phrase, `PHRASE` words, and `LENGTH` characters in all."""
PHRASE = 64
LENGTH = 100_000

FilterKey = Literal[
    "type", "tag", "path", "partition", "lifecycle", "is", "has", "before", "after", "property"
]


@dataclass(frozen=True, slots=True)
class Term:
    """Text to look for. `words` are its tokens, folded; `text` is what was typed, without quotes and `*`."""

    kind: Literal["word", "phrase", "prefix", "literal"]
    text: str
    words: tuple[str, ...] = ()
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a page's facts. `name` is the property's key (`x-<name>:`), else empty."""

    key: FilterKey
    value: str
    name: str = ""
    text: str = ""


Piece = Term | Filter
Clause = tuple[Piece, ...]
"""Alternatives: one of them must hold."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: each clause must hold, none of `excluded` may. `is_question`: plain words, asked as a sentence."""

    clauses: tuple[Clause, ...] = ()
    excluded: tuple[Piece, ...] = ()
    is_question: bool = False


_PIECE = re.compile(r'(?P<minus>-?)(?:(?P<key>[^\s":-][^\s":]*):)?"(?P<quoted>[^"]*)"(?=\s|$)|(?P<plain>\S+)')
_FILTER = re.compile(r"([A-Za-z][^\s:]*):(.+)", re.DOTALL)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?)?)?")
_CHOICES = {"is": {"proposed"}, "has": {"problem", "problems"}}
_PLAIN_KEYS = frozenset({"type", "tag", "path", "partition", "lifecycle"})
_CURLY = str.maketrans({"“": '"', "”": '"', "„": '"', "\0": " "})


def parse(text: str) -> Query:
    """Reads a query."""
    typed = text[:LENGTH].translate(_CURLY)
    clauses: list[list[Piece]] = []
    excluded: list[Piece] = []
    joined = False
    pieces = list(_PIECE.finditer(typed))
    for position, match in enumerate(pieces):
        if _is_or(match) and clauses and not joined and _joins(pieces, position):
            joined = True
            continue
        piece = _piece(match)
        if _is_negative(match):
            excluded.append(_piece(match, skip=1))
        elif joined and piece is not None:
            clauses[-1].append(piece)
        elif piece is not None:
            clauses.append([piece])
        joined = False
    return _bounded(clauses, excluded, is_question=_is_question(typed, clauses))


def literal_clauses(query: Query) -> bool:
    """Tells whether the query has literals and no other text, so that they must be looked for as they stand."""
    terms = [piece for clause in query.clauses for piece in clause if isinstance(piece, Term)]
    return bool(terms) and all(term.kind == "literal" for term in terms)


def as_text(piece: Filter) -> Term:
    """Gives what a filter is as literal text, for one that turns out to be none."""
    return _term(piece.text)


def _is_or(match: re.Match[str]) -> bool:
    return (match["plain"] or "") in {"or", "OR"}


def _joins(pieces: list[re.Match[str]], position: int) -> bool:
    """`or` joins two pieces that are to hold; elsewhere it is a word."""
    if position == 0 or position + 1 >= len(pieces):
        return False
    before, after = pieces[position - 1], pieces[position + 1]
    return not any(_is_negative(match) or _is_or(match) for match in (before, after))


def _is_negative(match: re.Match[str]) -> bool:
    if match["quoted"] is not None:
        return bool(match["minus"]) and bool(tokens.tokens(match["quoted"]))
    plain = match["plain"]
    return len(plain) > 1 and plain[0] == "-" and tokens.is_token_character(tokens.fold(plain[1])[:1] or " ")


def _piece(match: re.Match[str], skip: int = 0) -> Piece:
    if match["quoted"] is not None:
        quoted, key = match["quoted"], match["key"]
        if key is not None:
            return _filter(key, quoted, match[0][skip:]) or _term(match[0][skip:])
        return _term(quoted, quoted=True)
    plain = match["plain"][skip:]
    found = _FILTER.fullmatch(plain)
    return (found and _filter(found[1], found[2], plain)) or _term(plain)


def _filter(key: str, value: str, text: str) -> Filter | None:
    """Gives the filter, or None where key or value make it literal text."""
    lower = key.lower()
    value = value.strip()
    if not value:
        return None
    if lower in _PLAIN_KEYS:
        return Filter(lower, value, text=text)  # type: ignore[arg-type] # the set holds such keys alone
    if value.lower() in _CHOICES.get(lower, ()):
        return Filter("is" if lower == "is" else "has", value.lower().rstrip("s"), text=text)
    if lower in {"before", "after"} and _DATE.fullmatch(value):
        return Filter("before" if lower == "before" else "after", value.replace(" ", "T"), text=text)
    if lower.startswith(("x-", "x_")) and len(lower) > 2:
        return Filter("property", value, name=key[2:], text=text)
    return None


def _term(text: str, *, quoted: bool = False) -> Term:
    words = tuple(word[: tokens.TOKEN_LIMIT * 4] for word in tokens.tokens(text)[:PHRASE])
    if not words:
        return Term("literal", text.strip())
    if not quoted and text.endswith("*") and "*" not in text[:-1] and _ends_in_word(text[:-1]):
        return Term("prefix", text[:-1], words)
    return Term("word" if len(words) == 1 else "phrase", text, words, quoted=quoted)


def _ends_in_word(text: str) -> bool:
    folded = tokens.fold(text)
    return bool(folded) and tokens.is_token_character(folded[-1])


def _is_question(typed: str, clauses: list[list[Piece]]) -> bool:
    """Tells whether this is plain words with a question mark, or a sentence: several words, one a stop word."""
    terms = [clause[0] for clause in clauses]
    if any(len(clause) > 1 for clause in clauses) or not all(isinstance(term, Term) for term in terms):
        return False
    plain = [term for term in terms if isinstance(term, Term) and term.kind in {"word", "phrase"}]
    if any(term.quoted for term in plain) or len(plain) != len(terms):
        return False
    stops = sum(term.words[0] in STOP_WORDS for term in plain)
    return len(plain) - stops >= 2 and (stops >= 1 or typed.rstrip().endswith(("?", "\uff1f")))


def _bounded(clauses: list[list[Piece]], excluded: list[Piece], *, is_question: bool) -> Query:
    """Drops repeats, literals and stop words where there is other text, and what is over the bounds."""
    unique = list(dict.fromkeys(tuple(dict.fromkeys(clause)) for clause in clauses))
    filters = [clause for clause in unique if all(isinstance(piece, Filter) for piece in clause)]
    texts = [clause for clause in unique if not all(isinstance(piece, Filter) for piece in clause)]
    meant = [clause for clause in texts if not all(_is_empty(piece) for piece in clause)]
    content = [clause for clause in meant if not all(_is_stop(piece) for piece in clause)]
    wanted = (content or meant or texts)[:PIECES]
    return Query(
        tuple(tuple(clause[:PIECES]) for clause in (*wanted, *filters[:PIECES])),
        tuple(dict.fromkeys(excluded))[:PIECES],
        is_question=is_question,
    )


def _is_empty(piece: Piece) -> bool:
    return isinstance(piece, Term) and piece.kind == "literal"


def _is_stop(piece: Piece) -> bool:
    return (
        isinstance(piece, Term) and piece.kind == "word" and not piece.quoted and piece.words[0] in STOP_WORDS
    )

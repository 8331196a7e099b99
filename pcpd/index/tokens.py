"""What a search looks at: text folded, split into tokens, and stemmed; the same for pages and for queries.

FTS5's `unicode61` splits what `prepared` gives. It finds no word inside a run of Chinese, Japanese, Korean,
Thai, Lao, Khmer or Myanmar and no emoji; so `prepared` sets each such character apart, and a phrase of single
characters finds any run of them, from one character up, at a fraction of what trigrams weigh.

Folding: compatibility forms (ligatures, full width, superscripts) become the plain ones, accents of Latin, Greek
and Cyrillic go, and letters that Unicode does not decompose (`_SPELLED`) become what people type who have no
such key. Vowel signs of Indic scripts are part of the word and stay. Joiners, soft hyphens and variation
selectors are dropped.
"""

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

APART = "\x1f"
"""Stands around each character that is a token of its own; `unicode61` takes it as a separator."""

TOKEN_LIMIT = 64
"""Characters of a token that Python's side looks at (FTS5's Porter stems none longer)."""

_ALONE = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # radicals, iteration marks
    "\u3041-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"  # kana, bopomofo, jamo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul
)
# SQLite's tables of characters are older than Python's: symbols, and all beyond the first plane, become ASCII.
_NAMED = "\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U00010000-\U0010ffff"
_RUN = re.compile(r"[^\x00-\x7f]+")
_ALONE_OR_NAMED = re.compile(f"[{_ALONE}{_NAMED}]")
_DROPPED = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u00ad\u200b-\u200d\u2060\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_SPELLED = str.maketrans(
    {
        "ß": "ss",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ħ": "h",
        "\u0131": "i",  # dotless
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        "ð": "d",
        "ŧ": "t",
    }
)
_TOKEN = re.compile("[^\x00-\x2f\x3a-\x60\x7b-\x7f]+")
_CACHED_RUN = 12


def fold(text: str) -> str:
    """Gives the text as it is compared: lower case, accents dropped. Keeps line breaks."""
    text = text.lower()
    return text if text.isascii() else _RUN.sub(_folded_run, text)


def place_of(text: str, at: int) -> int:
    """Gives the place in a text of a place in its folded form; inside a foreign run whose length changed, nearly."""
    if text[:at].isascii():
        return min(len(text), at)
    behind, start = 0, 0
    for match in _RUN.finditer(text):
        if behind + match.start() - start >= at:
            break
        behind += match.start() - start
        start = match.start()
        length = _length(match[0])
        if behind + length > at:
            return start + min(at - behind, len(match[0]) - 1)
        behind, start = behind + length, match.end()
    return min(len(text), start + at - behind)


def prepared(text: str) -> str:
    """Gives the text as FTS5 is to split it: folded, with the characters that stand alone set apart."""
    text = text.lower().replace("\0", " ")
    return text if text.isascii() else _RUN.sub(_prepared_run, text)


def tokens(text: str) -> list[str]:
    """Splits a text into tokens as FTS5 splits what `prepared` gives, before stemming."""
    found = _TOKEN.findall(prepared(text))
    if text.isascii():
        return found
    return [token for piece in found for token in _split(piece)]


def is_alone(character: str) -> bool:
    """Tells whether a character of a folded text is a token of its own."""
    return _ALONE_OR_NAMED.match(character) is not None


@lru_cache(maxsize=4096)
def is_token_character(character: str) -> bool:
    """Tells whether a character of a folded text belongs to a token."""
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Co" or is_alone(character)


@lru_cache(maxsize=65536)
def stem(token: str) -> str:
    """Gives the English stem of a folded token, as FTS5's Porter does; other languages' words stay whole."""
    if len(token) > TOKEN_LIMIT or len(token) < 3:
        return token
    return str(_PORTER.stemWord(token))


_PORTER = snowballstemmer.stemmer("porter")


def _folded_run(match: re.Match[str]) -> str:
    run = match[0]
    return _fold_short(run) if len(run) <= _CACHED_RUN else _fold(run)


def _prepared_run(match: re.Match[str]) -> str:
    run = match[0]
    return _prepare_short(run) if len(run) <= _CACHED_RUN else _prepare(run)


def _length(run: str) -> int:
    return _length_short(run) if len(run) <= _CACHED_RUN else len(fold(run))


def _fold(run: str) -> str:
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", run))
    return unicodedata.normalize("NFC", plain.casefold().translate(_SPELLED))


def _prepare(run: str) -> str:
    return _ALONE_OR_NAMED.sub(_apart, _fold(run))


_fold_short = lru_cache(maxsize=16384)(_fold)
_prepare_short = lru_cache(maxsize=16384)(_prepare)
_length_short = lru_cache(maxsize=16384)(lambda run: len(fold(run)))


def _apart(match: re.Match[str]) -> str:
    character = match[0]
    if _is_named(character):
        return f"{APART}u{ord(character):x}{APART}"
    return f"{APART}{character}{APART}"


def _is_named(character: str) -> bool:
    return character >= "\U00010000" or "\u2300" <= character <= "\u2bff"


def _split(piece: str) -> list[str]:
    return "".join(c if c.isascii() or is_token_character(c) else " " for c in piece).split()

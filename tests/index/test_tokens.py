"""Text is folded and split alike for pages and queries."""

import sqlite3
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.index import tokens

TOKENIZE = "unicode61 remove_diacritics 2 categories 'L* M* N* Co'"


def fts5_tokens(text: str) -> list[str]:
    """What FTS5 makes of a text."""
    conn = sqlite3.connect(":memory:")
    conn.execute(f'CREATE VIRTUAL TABLE t USING fts5(x, tokenize = "{TOKENIZE}")')
    conn.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    conn.execute("INSERT INTO t VALUES (?)", (tokens.prepared(text),))
    found = [row[0] for row in conn.execute("SELECT term FROM v ORDER BY offset")]
    conn.close()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Déjà vu, niño!", ["deja", "vu", "nino"]),
        ("Straße Łódź Ærø Þór đá", ["strasse", "lodz", "aero", "thor", "da"]),
        ("İstanbul \u0131s\u0131", ["istanbul", "isi"]),
        ("ﬁne \uff21\uff22\uff23\uff11\uff12 x²", ["fine", "abc12", "x2"]),
        ("知识graph", ["知", "识", "graph"]),
        ("図書館でカフェ", ["図", "書", "館", "で", "カ", "フ", "ェ"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("한국어", ["한", "국", "어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("good👍🏽 ☃", ["good", "u1f44d", "u1f3fd", "u2603"]),
        ("𠮷野家", ["u20bb7", "野", "家"]),
        ("can't e-mail a_b 2026-01-05", ["can", "t", "e", "mail", "a", "b", "2026", "01", "05"]),
        ("co\u00adop\u200beration", ["cooperation"]),
        ("a\0b", ["a", "b"]),
        ("-> *** \x1f", []),
    ],
)
def test_a_text_splits_into_these_tokens(text: str, expected: list[str]) -> None:
    """Accents and forms are folded; characters without spaces between words stand alone."""
    assert tokens.tokens(text) == expected


@pytest.mark.parametrize(
    "text", ["Déjà vu", "知识graph", "น้ำใส", "हिन्दी", "x👍y", "straße", "a\0b", "\uff21\uff11", "𠮷x"]
)
def test_fts5_splits_as_queries_are_split(text: str) -> None:
    """Else a phrase would look for tokens that no page has."""
    assert fts5_tokens(text) == tokens.tokens(text)


@given(st.text(alphabet=st.characters(max_codepoint=0x24F, exclude_categories=["Cs"]), max_size=40))
def test_fts5_splits_latin_texts_as_queries_are_split(text: str) -> None:
    """The same for whatever can be typed in a Latin alphabet."""
    assert fts5_tokens(text) == tokens.tokens(text)


@given(st.text(max_size=200))
def test_folding_is_stable_and_keeps_lines(text: str) -> None:
    """A folded text folds to itself, so that parts of it can be looked for in others."""
    folded = tokens.fold(text)
    assert tokens.fold(folded) == folded
    assert folded.count("\n") == text.count("\n")


@given(st.text(max_size=60))
def test_composed_and_decomposed_texts_are_one(text: str) -> None:
    """Names on macOS are decomposed; people type them composed."""
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert tokens.tokens(composed) == tokens.tokens(decomposed)


def test_stems_join_the_forms_of_a_word() -> None:
    """Words of other languages and numbers stay whole."""
    assert tokens.stem("running") == tokens.stem("runs") == "run"
    assert tokens.stem("知") == "知"
    assert tokens.stem("x" * 500) == "x" * 500


@given(st.text(alphabet="aé ßﬁ\u0301한İ知Σ\n", max_size=60), st.integers(0, 60))
def test_a_place_in_the_folded_text_is_found_in_the_text(text: str, at: int) -> None:
    """What lies before it folds to about as much, and never is it outside."""
    folded = tokens.fold(text)
    place = tokens.place_of(text, min(at, len(folded)))
    assert 0 <= place <= len(text)
    assert text.isascii() is False or place == min(at, len(folded))


def test_places_behind_letters_that_fold_to_more_are_exact() -> None:
    """Each run counts for what it folds to."""
    text = "größte Straße, ﬁne café\u0301 then"
    folded = tokens.fold(text)
    assert text[tokens.place_of(text, folded.index("then")) :] == "then"
    assert text[tokens.place_of(text, folded.index("fine")) :].startswith("ﬁne")

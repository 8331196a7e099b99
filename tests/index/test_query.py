"""What a person types becomes a query; nothing they type is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.index.query import LENGTH, PIECES, Filter, Piece, Term, parse


def shape(piece: Piece) -> str:
    """A piece in short."""
    if isinstance(piece, Filter):
        return f"<{piece.key}{'.' + piece.name if piece.name else ''}={piece.value}>"
    return f"{piece.kind}{'!' if piece.quoted else ''}({' '.join(piece.words) or piece.text})"


def shapes(text: str) -> list[str]:
    """The clauses of a query in short, alternatives joined by `|`."""
    query = parse(text)
    clauses = ["|".join(map(shape, clause)) for clause in query.clauses]
    return clauses + [f"-{shape(piece)}" for piece in query.excluded]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("garden shed", ["word(garden)", "word(shed)"]),
        ('"garden shed" blue', ["phrase!(garden shed)", "word(blue)"]),
        ("“garden shed”", ["phrase!(garden shed)"]),
        ("gard*", ["prefix(gard)"]),
        ("garden -shed", ["word(garden)", "-word(shed)"]),
        ('garden -"old shed" -sh*', ["word(garden)", "-phrase!(old shed)", "-prefix(sh)"]),
        ("cat or dog food", ["word(cat)|word(dog)", "word(food)"]),
        ("cat OR dog or cow", ["word(cat)|word(dog)|word(cow)"]),
        ("type:episodic tag:work", ["<type=episodic>", "<tag=work>"]),
        ('tag:"two words"', ["<tag=two words>"]),
        ("TYPE:semantic", ["<type=semantic>"]),
        ("garden -type:semantic", ["word(garden)", "-<type=semantic>"]),
        ("tag:a or tag:b", ["<tag=a>|<tag=b>"]),
        ("before:2026-01-05 after:2025", ["<before=2026-01-05>", "<after=2025>"]),
        ("is:proposed has:problem", ["<is=proposed>", "<has=problem>"]),
        (
            "x-status:draft x-source.origin:agent",
            ["<property.status=draft>", "<property.source.origin=agent>"],
        ),
        ("partition:work lifecycle:stale path:a/b", ["<partition=work>", "<lifecycle=stale>", "<path=a/b>"]),
    ],
)
def test_the_language_reads_like_this(text: str, expected: list[str]) -> None:
    """Words, phrases, prefixes, alternatives, negations and filters."""
    assert shapes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e-mail", ["phrase(e mail)"]),
        ("don't", ["phrase(don t)"]),
        ("foo:bar", ["phrase(foo bar)"]),
        ('foo:"bar baz"', ["phrase(foo bar baz)"]),
        ("https://example.org/a?b=c", ["phrase(https example org a b c)"]),
        ("2026-01-05", ["phrase(2026 01 05)"]),
        ('say "hello', ["word(say)", "word(hello)"]),
        ('5" pipe', ["word(5)", "word(pipe)"]),
        ("[[link]] {x} (y)", ["word(link)", "word(x)", "word(y)"]),
        ("NEAR(cat dog)", ["phrase(near cat)", "word(dog)"]),
        ("cat AND dog", ["word(cat)", "word(dog)"]),
        ("a*b ^cat *dog", ["phrase(a b)", "word(cat)", "word(dog)"]),
        ("or cat or", ["word(cat)"]),
        ("cat - dog --x", ["word(cat)", "word(dog)", "word(x)"]),
        ("type: before:tomorrow is:odd has:", ["word(type)", "phrase(before tomorrow)"]),
        ("cat\0dog", ["word(cat)", "word(dog)"]),
        ("cat -> dog", ["word(cat)", "word(dog)"]),
        ("->", ["literal(->)"]),
        ("-> ***", ["literal(->)", "literal(***)"]),
        ("🦄", ["word(u1f984)"]),
        ("知识graph", ["phrase(知 识 graph)"]),
    ],
)
def test_all_else_is_literal_text(text: str, expected: list[str]) -> None:
    """Syntax of other engines, half-closed quotes, unknown keys: words to look for."""
    assert shapes(text)[: len(expected)] == expected


@pytest.mark.parametrize("text", ["", " ", "\t\n ", "\0", "\u3000"])
def test_a_query_of_nothing_is_empty(text: str) -> None:
    """The search lists recent pages then."""
    assert not parse(text).clauses
    assert not parse(text).excluded


def test_stop_words_count_where_there_is_nothing_else() -> None:
    """`the who` is two words; of `the garden` one is meant; quotes keep all."""
    assert shapes("the who") == ["word(the)", "word(who)"]
    assert shapes("the garden of ours") == ["word(garden)"]
    assert shapes('"the garden"') == ["phrase!(the garden)"]


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("When did Anna paint the sunrise?", True),
        ("anna paint sunrise?", True),
        ("where is the blue shed", True),
        ("anna paint sunrise", False),
        ("the shed", False),
        ('where is "the shed" of anna', False),
        ("where is anna tag:work", False),
        ("where is anna or bob", False),
    ],
)
def test_a_sentence_in_plain_words_is_a_question(text: str, is_question: bool) -> None:
    """Then any of the words will do; operators mean what they say."""
    assert parse(text).is_question is is_question


def test_a_query_of_ten_thousand_words_is_cut() -> None:
    """Its first different words count, and reading it takes no time to speak of."""
    assert len(parse(" ".join(f"w{number}" for number in range(10_000))).clauses) == PIECES
    assert len(parse("same " * 10_000).clauses) == 1
    assert len(parse("a-" * LENGTH).clauses) == 1
    assert len(parse(" or ".join(f"w{number}" for number in range(10_000))).clauses[0]) == PIECES


@given(st.text(max_size=80) | st.text(alphabet='ab -":*or\t()\0知', max_size=40))
def test_no_text_fails(text: str) -> None:
    """Whatever is typed gives clauses of at least one piece, and text that was typed is not lost."""
    query = parse(text)
    assert all(clause for clause in query.clauses)
    assert all(isinstance(piece, Term | Filter) for clause in query.clauses for piece in clause)
    if text.strip().strip("\0"):
        assert query.clauses or query.excluded or not text.replace("\0", " ").strip()

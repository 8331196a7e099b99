"""Word diffs: readable for people, and never a letter more or less than the two texts have."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.pages.worddiff import LINES_COMPARED, word_diff

SIGNS = {"same": "", "removed": "-", "added": "+"}


def shown(old: str, new: str) -> list[str]:
    """The diff with a sign before each stretch."""
    return [SIGNS[span.op] + span.text for span in word_diff(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "spans"),
    [
        ("", "", []),
        ("a", "a", ["a"]),
        ("", "new", ["+new"]),
        ("old", "", ["-old"]),
        ("hello", "bye", ["-hello", "+bye"]),
        (
            "The quick brown fox jumps.",
            "The slow red fox jumps.",
            ["The ", "-quick brown", "+slow red", " fox jumps."],
        ),
        ("Buy milk and eggs\n\nx", "Buy milk, bread and eggs\n\nx", ["Buy milk", "+, bread", " and eggs\n\nx"]),
        ("a\nb\nc\n", "a\nc\nd\n", ["a\n", "-b\n", "c\n", "+d\n"]),
        ("tags: [a, b]", "tags: [a, b, c]", ["tags: [a, b", "+, c", "]"]),
        ("\u6211\u559c\u6b61\u5403\u860b\u679c", "\u6211\u559c\u6b61\u5403\u6a58\u5b50",
         ["\u6211\u559c\u6b61\u5403", "-\u860b\u679c", "+\u6a58\u5b50"]),
        ("you don't go home", "you do not go home", ["you ", "-don't", "+do not", " go home"]),
        ("one line\n", "one line", ["one line", "-\n"]),
        ("a b\r\nc d\r\n", "a b\nc d\n", ["a b", "-\r\n", "+\n", "c d", "-\r\n", "+\n"]),
        ("alpha beta gamma delta", "one two three delta", ["-alpha beta gamma delta", "+one two three delta"]),
    ],
)  # fmt: skip
def test_it_shows_what_went_and_what_came(old: str, new: str, spans: list[str]) -> None:
    """Phrases stay whole, shared words stay out of it, and texts with little in common are shown whole."""
    assert shown(old, new) == spans


letters = st.text(st.sampled_from("ab \n\r.,'\t\u6211\u4f60\U0001f600\u0301\u2028"), max_size=40)
texts = letters | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(texts, texts)
def test_the_spans_are_exactly_the_two_texts(old: str, new: str) -> None:
    """What stayed and what went is the old text; what stayed and what came the new one; no span is empty."""
    spans = word_diff(old, new)
    assert "".join(span.text for span in spans if span.op != "added") == old
    assert "".join(span.text for span in spans if span.op != "removed") == new
    assert all(span.text for span in spans)
    for left, right in pairwise(spans):
        assert (left.op, right.op) not in {("added", "removed"), (left.op, left.op)}


@given(letters, letters, letters)
def test_an_insertion_is_shown_as_added_alone(before: str, new: str, after: str) -> None:
    """Nothing counts as removed when nothing was, where whole lines come between whole lines."""
    head, tail = f"{before}\nhead\n", f"tail\n{after}"
    assert {span.op for span in word_diff(head + tail, f"{head}{new}\n{tail}")} <= {"same", "added"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n" * 10_000_000, "\n" * 9_999_990),
        ("a\n" * 5_000_000, "b\n" * 5_000_000),
        ("a b " * 2_500_000, "b a " * 2_500_000),
        ("a\nb\n" * (LINES_COMPARED // 3), "b\na\na\n" * (LINES_COMPARED // 4)),
        ("\u6211\u4f60" * 40_000, "\u4f60\u6211\u4f60" * 30_000),
    ],
)
def test_hostile_texts_take_bounded_work(old: str, new: str) -> None:
    """Texts of a page's full size with nothing but equal parts come to an end, and are still exact."""
    spans = word_diff(old, new)
    assert "".join(span.text for span in spans if span.op != "added") == old
    assert "".join(span.text for span in spans if span.op != "removed") == new

"""Three-way merge of sequences: laws that hold for all of them, and an end to the work on hostile ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.pages.diff3 import diff3, matches

items = st.lists(st.sampled_from("abc"), max_size=12)


def merged(base: list[str], ours: list[str], theirs: list[str]) -> list[str] | None:
    """The merged sequence; None where something clashes."""
    result: list[str] = []
    for piece in diff3(base, ours, theirs):
        if piece.merged is None:
            return None
        side, where = (ours, piece.ours) if piece.merged == "ours" else (theirs, piece.theirs)
        result += side[where.start : where.stop]
    return result


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("abc", "axc", "abc", "axc"),
        ("abc", "abc", "abx", "abx"),
        ("abcd", "xbcd", "abcx", "xbcx"),
        ("abc", "axbc", "abxc", "axbxc"),
        ("abc", "ac", "ac", "ac"),
        ("abc", "xabc", "xabc", "xabc"),
        ("abc", "ac", "axc", None),
        ("abc", "axc", "ayc", None),
        ("abc", "abcx", "abcy", None),
        ("", "xy", "xzy", "xzy"),
        ("", "xy", "yx", None),
        ("ab", "b", "a", None),
        ("a-b", "-b", "a-", "-"),
    ],
)
def test_it_takes_what_one_side_changed(base: str, ours: str, theirs: str, result: str | None) -> None:
    """What both changed otherwise in one place clashes; what both added alike is there once."""
    assert merged(list(base), list(ours), list(theirs)) == (None if result is None else list(result))


@given(items, items)
def test_a_side_that_changed_nothing_or_the_same_decides_nothing(base: list[str], other: list[str]) -> None:
    """The three laws of identity."""
    assert merged(base, base, other) == other
    assert merged(base, other, base) == other
    assert merged(base, other, other) == other


@given(items, items, items)
def test_it_is_the_same_from_either_side(base: list[str], ours: list[str], theirs: list[str]) -> None:
    """Swapping the sides swaps nothing in the result."""
    assert merged(base, ours, theirs) == merged(base, theirs, ours)


@given(items, items, items)
def test_the_pieces_cover_every_side_once(base: list[str], ours: list[str], theirs: list[str]) -> None:
    """In order, without gaps, so that nothing of any side is passed over."""
    pieces = diff3(base, ours, theirs)
    for side, name in ((base, "base"), (ours, "ours"), (theirs, "theirs")):
        assert [at for piece in pieces for at in getattr(piece, name)] == list(range(len(side)))


@given(items, items)
def test_matches_are_equal_and_in_order(a: list[str], b: list[str]) -> None:
    """Each stretch is the same in both, and none overlaps the one before."""
    i = j = 0
    for x, y, size in matches(a, b):
        assert x >= i
        assert y >= j
        assert a[x : x + size] == b[y : y + size]
        i, j = x + size, y + size


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (["a"] * 40_000, ["b", *["a"] * 39_000, "b"], ["c", *["a"] * 41_000, "c"]),
        (["a", "b"] * 20_000, ["b", "a", "a"] * 15_000, ["b", "b", "a"] * 12_000),
        ([str(at) for at in range(50_000)], [str(at * 7 % 50_000) for at in range(50_000)], ["x"]),
    ],
)
def test_hostile_sequences_come_to_an_end(base: list[str], ours: list[str], theirs: list[str]) -> None:
    """With nothing but equal items, comparing all pairs would take hours; beyond the bound the rest clashes."""
    assert merged(base, ours, theirs) is None

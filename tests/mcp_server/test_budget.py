"""Answers stay within what clients take: cut between characters, at the right place, with nothing lost."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pcpd.mcp_server.budget import BYTES, cut, fitting, shortened

LETTERS = st.sampled_from(list('ab \n\r\t"\\\x00\x01蝶番กิéé🔩👩🏽‍🚒🇩🇪'))
TEXTS = st.text(LETTERS, max_size=200) | st.text(max_size=200)


def size(text: str) -> int:
    """Bytes of a text in JSON."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@given(text=TEXTS, budget=st.integers(20, 300))
def test_parts_fit_and_make_the_whole(text: str, budget: int) -> None:
    """Read on from each part's end, one has every character once."""
    parts, offset = list[str](), 0
    while True:
        part, following = cut(text, offset, budget)
        assert size(part) <= budget
        parts.append(part)
        if following is None:
            break
        assert following == offset + len(part) > offset
        offset = following
    assert "".join(parts) == text


@given(text=TEXTS, budget=st.integers(40, 300))
def test_letters_are_not_parted_from_their_marks(text: str, budget: int) -> None:
    """Unless marks without end have no letter to go with."""
    part, following = cut(text, 0, budget)
    if following is not None and any(not unicodedata.combining(letter) for letter in part[1:]):
        assert not unicodedata.combining(text[following])
        assert "‍" not in (text[following], text[following - 1])


def test_marks_without_end_are_cut_all_the_same() -> None:
    """Reading goes on."""
    text = "e" + "\u0301" * 10_000
    part, following = cut(text, 0, 100)
    assert following == len(part) > 1


def test_offsets_behind_the_end_give_nothing() -> None:
    """And no next part."""
    assert cut("abc", 3) == ("", None)
    assert cut("abc", 99) == ("", None)
    assert cut("", 0) == ("", None)


def test_chinese_and_control_characters_are_counted_as_they_are_sent() -> None:
    """Three bytes a letter, six for what JSON must escape."""
    assert len(cut("番" * BYTES, 0)[0]) in range(BYTES // 3 - 2, BYTES // 3 + 1)
    assert len(cut("\x01" * BYTES, 0)[0]) in range(BYTES // 6 - 2, BYTES // 6 + 1)


def test_titles_are_one_line() -> None:
    """A title cannot begin a line of its own in an answer."""
    assert shortened("a\n- b\r\n\u2028c", 100) == "a - b c"
    assert shortened("x" * 1000, 100).endswith("x…")
    assert size(shortened("番" * 1000, 100)) <= 100 + len("…".encode())


@given(lines=st.lists(st.text(max_size=50), max_size=20), budget=st.integers(1, 500))
def test_rows_that_fit_are_shown(lines: list[str], budget: int) -> None:
    """As many as fit, and one at least."""
    rows = [{"path": line} for line in lines]
    fit = fitting(lines, rows, budget)
    assert min(1, len(lines)) <= fit <= len(lines)
    shown = sum(
        len(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 2 for row in rows[:fit]
    )
    assert shown <= budget or fit == 1

"""Entity tags and the headers that name them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.api.conditions import base_in, is_known, makes_only, tag
from pcpd.errors import Usage

VERSION = "0a" * 32
TAGS = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='"'), min_size=1, max_size=80
)


def test_tag_names_its_version_in_either_view() -> None:
    """The two views have tags of their own, since they are other bytes."""
    assert (tag(VERSION), tag(VERSION, as_json=True)) == (f'"{VERSION}"', f'"{VERSION}-json"')
    assert base_in(tag(VERSION)) == base_in(tag(VERSION, as_json=True)) == VERSION
    assert base_in(None) is None


@pytest.mark.parametrize(
    "header",
    ["", "*", "x", '"', '""', '"a', 'a"', '"a", "b"', '"a" "b"', '"a",', ',"a"', '"a"x', 'w/"a"', "W/a", '"\xe9"',
     '"a b"', '"' + "x" * 201 + '"', '"a\n"'],
)  # fmt: skip
def test_change_is_based_on_one_version_or_refused(header: str) -> None:
    """Never on any, and never on a guess."""
    with pytest.raises(Usage) as caught:
        base_in(header)
    assert caught.value.code == "http.malformed"


def test_weak_tag_is_no_version() -> None:
    """Nothing is at it, so that the change is refused as stale."""
    assert base_in(f'W/"{VERSION}"') == f"W/{VERSION}"


def test_only_a_star_says_that_nothing_is_replaced() -> None:
    """Other values make sense for reading alone."""
    assert makes_only(" * ")
    assert not makes_only(None)
    for header in ('"a"', "", "**", '*, "a"'):
        with pytest.raises(Usage):
            makes_only(header)


@given(st.lists(TAGS, min_size=1, max_size=5), st.data())
def test_who_names_the_present_tag_has_it_already(tags: list[str], data: st.DataObject) -> None:
    """Anywhere in a list, weak or strong, with blanks around."""
    present = data.draw(st.sampled_from(tags))
    weak = data.draw(st.lists(st.sampled_from(["", "W/"]), min_size=len(tags), max_size=len(tags)))
    gap = data.draw(st.sampled_from([",", ", ", " ,  "]))
    header = gap.join(f'{mark}"{each}"' for mark, each in zip(weak, tags, strict=True))
    assert is_known(header, f'"{present}"')
    assert is_known("*", f'"{present}"')
    assert not is_known(header, f'"{present}+"') or f"{present}+" in tags


@given(st.text(max_size=50))
def test_what_is_no_list_of_tags_says_nothing(header: str) -> None:
    """The answer is then given whole."""
    if is_known(header, f'"{VERSION}"'):
        assert header.strip() == "*" or VERSION in header

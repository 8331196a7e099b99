"""Items come and go in a list of a small YAML file; every other byte stays."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pcpd.policy.lists import append_item, remove_items

BLOCK = b"""\
# head
grants:
  # about a
  - {x: 1}   # one
  - x: 2
    y: [a,
        b]

  # about three
  - |
    text

  - {x: 4}
# tail
"""


@pytest.mark.parametrize(
    ("gone", "lines"),
    [
        ([0], {4}),
        ([1], {5, 6, 7}),
        ([3], {13}),
        ([0, 1, 3], {4, 5, 6, 7, 13}),
    ],
)
def test_lines_of_an_item_go_and_no_others(gone: list[int], lines: set[int]) -> None:
    """Comments around it stay, since they may be about more than the item."""
    kept = [line for n, line in enumerate(BLOCK.splitlines(keepends=True), start=1) if n not in lines]
    assert remove_items(BLOCK, "grants", gone) == b"".join(kept)


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        (b"g: [1, 2, 3] # c\n", [0], b"g: [2, 3] # c\n"),
        (b"g: [1, 2, 3] # c\n", [1], b"g: [1, 3] # c\n"),
        (b"g: [1, 2, 3] # c\n", [2], b"g: [1, 2] # c\n"),
        (b"g: [1, 2, 3] # c\n", [1, 2], b"g: [1] # c\n"),
        (b"g: [1, 2, 3] # c\n", [0, 1, 2], b"g: [] # c\n"),
        ("\ufeffg: ['é', \"日\", 𝄞]\n".encode(), [1], "\ufeffg: ['é', 𝄞]\n".encode()),
        (b"g: [\n  1,\n  2,\n]\n", [0], b"g: [\n  2,\n]\n"),
        (b"g:\r\n- 1\r\n- 2\r\n", [1], b"g:\r\n- 1\r\n"),
        (b"g:\n- 1", [0], b"g:\n"),
    ],
)
def test_removal_in_the_style_that_is_there(before: bytes, gone: list[int], after: bytes) -> None:
    """Brackets and blocks, BOM, wide characters, CRLF, no last line break."""
    assert remove_items(before, "g", gone) == after


@pytest.mark.parametrize("data", [b"", b"- 1\n", b"other: [1]\n", b"g: word\n", b"g:\n- 1\r- 2\n"])
def test_what_cannot_be_edited_safely_is_left_to_the_person(data: bytes) -> None:
    """No list under that key, or line ends that only YAML counts."""
    assert remove_items(data, "g", [0]) is None


items = st.sampled_from(["1", "{a: 1}", "[x, y]", '"q # q"', "{a: [b, {c: d}]}", "日本"])


@given(st.lists(items, max_size=6), st.sets(st.integers(0, 5)), st.booleans(), st.booleans(), items)
def test_appending_and_removing_give_the_list_that_was_meant(
    present: list[str], gone: set[int], flow: bool, crlf: bool, more: str
) -> None:
    """As a second reader of the whole file sees it; the keys around are as they were."""
    newline = "\r\n" if crlf else "\n"
    block = newline.join(f"  - {item} # {n}" for n, item in enumerate(present))
    inner = f" [{', '.join(present)}]" if flow or not present else newline + block
    data = f"a: 1 # x{newline}g:{inner}{newline}# mid{newline}z: [1]{newline}".encode()
    numbers = [n for n in gone if n < len(present)]
    left = [item for n, item in enumerate(present) if n not in numbers]
    removed = remove_items(data, "g", numbers)
    appended = append_item(data, "g", more)
    assert removed is not None
    assert appended is not None
    assert (yaml.safe_load(removed)["g"] or []) == [yaml.safe_load(item) for item in left]
    assert yaml.safe_load(appended)["g"] == [yaml.safe_load(item) for item in [*present, more]]
    for edited in (removed, appended):
        assert edited.startswith(f"a: 1 # x{newline}g:".encode())
        assert edited.endswith(f"# mid{newline}z: [1]{newline}".encode())

"""A search's cursor tells nothing: neither what it holds, nor whether anything has changed since."""

import base64
from collections.abc import Callable

import pytest

from pcpd.errors import Invalid
from pcpd.memory import read
from pcpd.memory.memory import Caller
from tests.vaults import Opened

PAGES = {f"p{number}.md": "heat\n" for number in range(5)}


@pytest.fixture
def opened(make_opened: Callable[..., Opened]) -> Opened:
    """A vault with five pages."""
    made = make_opened()
    for file, text in PAGES.items():
        made.save(file, text)
    return made.open()


def cursor_of(opened: Opened, caller: Caller) -> str:
    """The cursor behind the second of the results."""
    cursor = read.search(opened.memory, caller, "heat", limit=2).cursor
    assert cursor is not None
    return cursor


def test_a_search_goes_on_by_its_cursor_also_after_a_restart(opened: Opened) -> None:
    """To the end, with every page once."""
    caller = opened.agent("agent:claude", "read")
    seen = [hit.path for hit in read.search(opened.memory, caller, "heat", limit=2).results]
    cursor: str | None = cursor_of(opened, caller)
    while cursor:
        opened.restart()
        found = read.search(opened.memory, caller, "heat", limit=2, cursor=cursor)
        seen += [hit.path for hit in found.results]
        cursor = found.cursor
    assert sorted(seen) == sorted(file.removesuffix(".md") for file in PAGES)


def test_two_cursors_of_one_place_have_nothing_in_common(opened: Opened) -> None:
    """Comparing them would tell whether pages came that one may not see."""
    caller = opened.agent("agent:claude", "read")
    one, two = (base64.urlsafe_b64decode(cursor_of(opened, caller) + "==") for _ in range(2))
    assert sum(left == right for left, right in zip(one, two, strict=False)) < len(one) / 8


def test_a_cursor_of_another_reader_or_a_changed_one_is_refused(opened: Opened) -> None:
    """Whatever was changed, and however it was made up."""
    caller, other = opened.agent("agent:claude", "read"), opened.agent("agent:other", "read")
    cursor = cursor_of(opened, caller)
    changed = [
        ("B" if cursor[at] == "A" else "A").join((cursor[:at], cursor[at + 1 :]))
        for at in range(0, len(cursor) - 1, 7)
    ]
    for forged in (
        *changed,
        "",
        "x",
        "A" * 40,
        "\u00e9",
        "A" * 100_000,
        cursor[:-4],
        cursor + "AAAA",
        "=" * 5,
    ):
        with pytest.raises(Invalid) as refused:
            read.search(opened.memory, caller, "heat", cursor=forged)
        assert refused.value.code == "cursor.invalid"
    with pytest.raises(Invalid):
        read.search(opened.memory, other, "heat", cursor=cursor)

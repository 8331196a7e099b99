"""Suggestions while a name is typed: by path, file name, alias, title; visible pages alone, few and in order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.index.store import Index
from pcpd.index.suggestions import suggest
from pcpd.index.visible import EVERYTHING
from pcpd.policy.decide import Slice, Visibility
from tests.index.samples import built

FILES = {
    "boiler.md": "# Heating\n",
    "Books/List.md": "text",
    "notes/boiler plan.md": "text",
    "notes/warm.md": "---\naliases: [Boiling point, Kettle/Boil]\n---\n",
    "z/last.md": "---\ntitle: Bo knows\n---\n",
    "z/100%.md": "---\ntitle: 100_percent\n---\n",
    "café/Ärger.md": "---\ntitle: Überall\n---\n",
    "work/boss.md": "---\npartition: work\ntitle: Boss\naliases: [Boards]\n---\n",
}
PERSONAL = Visibility(slices=frozenset({Slice("personal", "semantic", sensitive=False)}))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index of FILES."""
    folder: Path = tmp_path_factory.mktemp("index")
    with built(folder / "index", FILES) as opened:
        yield opened


def suggested(index: Index, typed: str, visible: Visibility = EVERYTHING, limit: int = 20) -> list[str]:
    """What is suggested."""
    with index.reader() as reader:
        return suggest(reader, visible, typed, limit=limit)


@pytest.mark.parametrize(
    ("typed", "paths"),
    [
        ("bo", ["boiler", "Books/List", "notes/boiler plan", "work/boss", "notes/warm", "z/last"]),
        ("BOIL", ["boiler", "notes/boiler plan", "notes/warm"]),
        ("boiler p", ["notes/boiler plan"]),
        ("notes/", ["notes/boiler plan", "notes/warm"]),
        ("/notes/w", ["notes/warm"]),
        ("heat", ["boiler"]),
        ("li", ["Books/List"]),
        ("100%", ["z/100%"]),
        ("100_", ["z/100%"]),
        ("1%", []),
        ("1_0", []),
        ("cafe\u0301/ä", ["café/Ärger"]),
        ("ÄRG", ["café/Ärger"]),
        ("über", ["café/Ärger"]),
        ("U\u0308BER", ["café/Ärger"]),
        ("oiler", []),
        ("\\", []),
        ("'", []),
        ("\0", []),
        ("\ud800", []),
        ("b" * 2000, []),
    ],
)
def test_what_is_typed_finds_pages_whose_name_begins_so(index: Index, typed: str, paths: list[str]) -> None:
    """Paths first, then file names, aliases, titles; each page once; nothing is a pattern."""
    assert suggested(index, typed) == paths


def test_nothing_typed_gives_the_first_pages(index: Index) -> None:
    """By path."""
    assert suggested(index, "", limit=2) == ["boiler", "Books/List"]
    assert len(suggested(index, "")) == len(FILES)
    assert suggested(index, "", limit=0) == []


def test_pages_that_cannot_be_seen_are_not_suggested(index: Index) -> None:
    """By no kind of name; and they take no room in a short list."""
    assert suggested(index, "bo", PERSONAL) == [
        "boiler",
        "Books/List",
        "notes/boiler plan",
        "notes/warm",
        "z/last",
    ]
    for typed in ("work", "boss", "board"):
        assert suggested(index, typed, PERSONAL) == []
    assert suggested(index, "bo", PERSONAL, limit=4)[-1] == "notes/warm"
    assert suggested(index, "bo", Visibility()) == []


@given(st.text(max_size=20), st.integers(1, 5))
def test_whatever_is_typed_gives_at_most_as_many_pages_as_were_asked_for(
    index: Index, typed: str, limit: int
) -> None:
    """And a shorter list is the beginning of the longer one."""
    found = suggested(index, typed, limit=limit)
    assert len(found) == len(set(found)) <= limit
    assert suggested(index, typed, limit=50)[:limit] == found

"""Pages that are made anew: front matter as people would write it, body byte for byte."""

import pytest

from pcpd.errors import Invalid
from pcpd.pages.frontmatter import Value, new_page
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath

LONG = "a long value that does not fit into a line of flow style " * 2
FIELDS: dict[str, Value] = {
    "title": "Boiler: gas or heat pump?",
    "type": "semantic",
    "tags": ["house", "no", "2026"],
    "recorded_at": "2026-01-05T10:00:00Z",
    "updated": "2026-01-05T10:00:00Z",
    "source": {"origin": "agent", "principal": "agent:claude", "at": "2026-01-05T10:00:00Z", "session": "s1"},
    "relations": [{"rel": "about", "target": "house/heating"}],
    "x_import": {
        "format": "mem0",
        "fields": {
            "score": 0.25,
            "text": "a long value that does not fit into a line of flow style " * 2,
            "n": None,
        },
        "list": ["x" * 60, ["y" * 60, {"z": "w" * 100}]],
    },
}

TEXT = """---
title: "Boiler: gas or heat pump?"
type: semantic
tags: [house, "no", "2026"]
recorded_at: 2026-01-05T10:00:00Z
updated: 2026-01-05T10:00:00Z
source: {origin: agent, principal: "agent:claude", at: 2026-01-05T10:00:00Z, session: s1}
relations: [{rel: about, target: house/heating}]
x_import:
  format: mem0
  fields:
    score: 0.25
    text: "LONG"
    "n": null
  list:
    - XX
    -   - YY
        - z: WW
---
"""
for _mark, _text in (("LONG", LONG), ("XX", "x" * 60), ("YY", "y" * 60), ("WW", "w" * 100)):
    TEXT = TEXT.replace(_mark, _text)


def test_a_new_page_reads_as_a_person_would_write_it() -> None:
    """Order as given, short lists and maps on one line, moments plain, quotes only where needed."""
    data = new_page(FIELDS, "\n# Body\r\n\n---\nend")
    assert data.decode() == TEXT + "\n# Body\r\n\n---\nend"
    page = parse(PagePath("p"), data)
    assert page.problems == ()
    assert (page.title, page.tags, page.author) == (
        "Boiler: gas or heat pump?",
        ("house", "no", "2026"),
        "agent:claude",
    )
    assert page.body == "\n# Body\r\n\n---\nend"


def test_the_same_fields_give_the_same_bytes() -> None:
    """Nothing depends on the run."""
    assert new_page(FIELDS, "x") == new_page(dict(FIELDS), "x")


def test_without_fields_there_is_no_front_matter() -> None:
    """The page is its body; a body that would be taken for front matter is refused."""
    assert new_page({}, "text\n") == b"text\n"
    assert new_page({}, "") == b""
    for body in ("---\nid: x\n---\n", "---", "\ufeff---\nid: x\n---\n", "\ufefftext"):
        with pytest.raises(Invalid) as refused:
            new_page({}, body)
        assert refused.value.code == "page.content"


@pytest.mark.parametrize(
    "name", ["content", "metadata", "handler", "self", "---", "a: b", "#", " ", "no", "日本"]
)
def test_any_name_can_be_a_key(name: str) -> None:
    """Names that broke other readers stand as keys like any other."""
    data = new_page({name: "v"}, "")
    assert parse(PagePath("p"), data).properties == ((name, "v"),)


@pytest.mark.parametrize(
    ("body", "code"),
    [("a\0", "page.nul"), ("\ud800", "page.content"), ("x" * 10 * 1024 * 1024, "page.too-large")],
)
def test_a_body_that_no_page_can_hold_is_refused(body: str, code: str) -> None:
    """The page could not be read again."""
    with pytest.raises(Invalid) as refused:
        new_page({"a": 1}, body)
    assert refused.value.code == code


def test_fields_beyond_the_bounds_of_front_matter_are_refused() -> None:
    """A page that is written can be read."""
    with pytest.raises(Invalid):
        new_page({"a": "x" * 300_000}, "")
    with pytest.raises(Invalid):
        new_page({f"k{number}": number for number in range(30_000)}, "")

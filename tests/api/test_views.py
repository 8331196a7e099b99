"""What of a page is given, and as what: its bytes, its JSON view, its outline or one section."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from pcpd.api.views import prefers_json
from pcpd.memory.bases import part_mark
from tests.doors import Answer, Doors

TEXT = """---
title: Boiler
tags: [heat, house]
importance: 0.5
source: {origin: agent, principal: "agent:claude"}
review: {state: approved}
---
Before.

## Gas

Dear.

### Pipes

Old.

## Heat pump

Noisy?
"""
VERSION = hashlib.sha256(TEXT.encode()).hexdigest()
AS_JSON = {"Accept": "application/json"}


@pytest.fixture
def boiler(make_doors: Callable[..., Doors]) -> Callable[..., Answer]:
    """Gives what asks for one page with a question after its path."""
    doors = make_doors({"house/boiler.md": TEXT})

    def ask(question: str = "", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return doors.vault("GET", f"pages/house/boiler{question}", headers=named)

    return ask


def test_text_says_where_it_comes_from(boiler: Callable[..., Answer]) -> None:
    """In headers, since every byte of the body is the page's."""
    answer = boiler()
    assert answer.data.decode() == TEXT
    told = answer.headers
    assert (told["pcp-origin"], told["pcp-review"], told["etag"]) == ("agent", "approved", f'"{VERSION}"')
    assert told["content-type"] == "text/markdown; charset=utf-8"
    assert (told["vary"], told["content-location"]) == ("Accept", "/vault/v1/pages/house/boiler")


def test_json_view_says_what_the_page_says_of_itself(boiler: Callable[..., Answer]) -> None:
    """With the text whole, and a tag of its own that names the same version."""
    answer = boiler(Accept="application/json")
    said: dict[str, Any] = answer.json()
    assert (said["text"], said["version"], answer.headers["etag"]) == (TEXT, VERSION, f'"{VERSION}-json"')
    assert (said["path"], said["title"], said["type"], said["tags"]) == (
        "house/boiler", "Boiler", "semantic", ["heat", "house"],
    )  # fmt: skip
    assert (said["origin"], said["author"], said["review"], said["category"]) == (
        "agent", "agent:claude", "approved", "semantic",
    )  # fmt: skip
    assert said["problems"] == []
    assert said["updated"].endswith("Z")


@pytest.mark.parametrize(
    ("accept", "is_json"),
    [
        (None, False), ("", False), ("*/*", False), ("text/markdown", False), ("application/json", True),
        ("application/json, */*", True), ("text/markdown, application/json", False),
        ("application/json;q=0.9, text/markdown;q=0.1", True), ("application/json;q=0.1, text/*", False),
        ("Application/JSON", True), ("application/json;q=0", False), ("application/*", False), ("q=1;;,,", False),
        ("application/json;q=nonsense", True), ("text/html, application/json", True),
    ],
)  # fmt: skip
def test_who_asks_for_json_gets_it(accept: str | None, *, is_json: bool) -> None:
    """Whoever does not say gets the page as it is."""
    assert prefers_json(accept) == is_json


def test_section_is_given_with_a_mark_that_replaces_nothing(boiler: Callable[..., Answer]) -> None:
    """What stands under the heading, sub-sections too; as JSON with what the page says of itself."""
    answer = boiler("?section=gas")
    assert answer.data.decode() == "\nDear.\n\n### Pipes\n\nOld.\n\n"
    assert answer.headers["etag"] == f'"{part_mark(VERSION)}"'
    assert answer.headers["pcp-origin"] == "agent"
    said = boiler("?section=%23%23%20Gas", **AS_JSON).json()
    assert (said["text"], said["section"]) == (answer.data.decode(), "## Gas")
    assert (said["version"], said["edit_version"]) == (None, part_mark(VERSION))
    assert (boiler("?section=absent").status, boiler("?section=absent").code) == (404, "heading.not-found")


@pytest.mark.parametrize("question", ["?outline", "?outline=1", "?outline=true"])
def test_outline_is_the_headings(boiler: Callable[..., Answer], question: str) -> None:
    """With levels and lines; never the text."""
    answer = boiler(question)
    said = answer.json()
    assert [(each["level"], each["text"], each["line"]) for each in said["headings"]] == [
        (2, "Gas", 10), (3, "Pipes", 14), (2, "Heat pump", 18),
    ]  # fmt: skip
    assert "text" not in said
    assert (said["version"], said["edit_version"]) == (None, part_mark(VERSION))
    assert answer.headers["etag"] == f'"{part_mark(VERSION)}-json"'


def test_no_outline_is_the_page(boiler: Callable[..., Answer]) -> None:
    """`outline=0` says so; and nobody gets both."""
    assert boiler("?outline=0").data.decode() == TEXT
    both = boiler("?outline&section=Gas")
    assert (both.status, both.code) == (400, "http.malformed")


@pytest.mark.parametrize("question", ["", "?section=Gas", "?outline"])
@pytest.mark.parametrize("accept", ["text/markdown", "application/json"])
def test_who_has_it_already_gets_no_body(boiler: Callable[..., Answer], question: str, accept: str) -> None:
    """The tag is that of the view; the other view's tag, or an old one, says nothing."""
    first = boiler(question, Accept=accept)
    same = boiler(question, Accept=accept, If_None_Match=f'"old", W/{first.headers["etag"]}')
    assert (same.status, same.data, same.headers["etag"]) == (304, b"", first.headers["etag"])
    assert boiler(question, Accept=accept, If_None_Match='"old"').data == first.data
    assert boiler(question, Accept=accept, If_None_Match=f'"{VERSION}-else"').status == 200


def test_page_that_is_no_text_comes_byte_for_byte(make_doors: Callable[..., Doors]) -> None:
    """Without the word that it is UTF-8; as JSON in base64, with its problem."""
    data = b"caf\xe9\n"
    doors = make_doors({"odd.md": data})
    answer = doors.vault("GET", "pages/odd")
    assert (answer.data, answer.headers["content-type"]) == (data, "text/markdown")
    said = doors.vault("GET", "pages/odd", headers=AS_JSON).json()
    assert base64.b64decode(said["base64"]) == data
    assert "text" not in said
    assert [each["code"] for each in said["problems"]] == ["page.encoding"]
    assert doors.vault("GET", "pages/odd?section=x").code == "page.encoding"


def test_page_named_by_its_name_alone_is_told_where_it_is(make_doors: Callable[..., Doors]) -> None:
    """In `Content-Location`, in the form in which it is asked for again."""
    doors = make_doors({"a b/\xfcber.md": "x\n"})
    answer = doors.vault("GET", "pages/%C3%BCber")
    assert answer.headers["content-location"] == "/vault/v1/pages/a%20b/%C3%BCber"
    assert doors.ask("GET", answer.headers["content-location"]).data == b"x\n"

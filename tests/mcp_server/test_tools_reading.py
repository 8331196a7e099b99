"""The tools that read one page: read_page whole, in parts, by outline and section; fetch; page_history."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.doors import Doors, Relayed
from tests.mcp_server.asked import NOTE, agent, called, data, refusal, texts
from tests.waiting import until

PAGE = (
    "---\ntitle: Boiler\n---\nIntro.\n\n# House\none\n## Costs\ntwo\n### Deep\nthree\n# Car\n## Costs\nfour\n"
)
LONG_BODIES = [
    "番図鑑蝶" * 40_000,
    "x" * 150_000, "e\u0301" * 60_000, "line\r\n" * 20_000, '\x01"\\' * 30_000, "\u2028🇩🇪" * 20_000,
]  # fmt: skip


def no_part_is_a_version(result: Any) -> None:
    """What is not the whole page cannot be written back as if it were."""
    answer = result["structuredContent"]
    assert answer["version"] is None
    assert answer["edit_version"].startswith("part-")
    assert "not to be written back" in texts(result)


@pytest.mark.parametrize("body", LONG_BODIES)
@pytest.mark.parametrize("tool", ["read_page", "fetch"])
def test_a_long_page_comes_in_parts_that_make_the_whole(
    make_doors: Callable[..., Doors], body: str, tool: str
) -> None:
    """Each part says how to go on."""
    whole = f"---\ntitle: Long\n---\n{body}"
    relayed = agent(make_doors({"long #1.md": whole.encode()}))
    parts, following = list[str](), None
    while True:
        if tool == "fetch":
            result = called(relayed, tool, id=following or "long #1")
            answer = result["structuredContent"]
            parts.append(answer["text"])
            following = answer["metadata"].get("next_id")
            assert (following is not None) == ("cut" in answer["metadata"])
        else:
            result = called(relayed, tool, path="long #1", offset=following)
            answer = result["structuredContent"]
            no_part_is_a_version(result)
            assert answer["content"] in texts(result)
            assert answer["characters"] == len(whole)
            parts.append(answer["content"])
            following = answer["next_offset"]
            assert following is None or f"offset {following}" in texts(result)
        if following is None:
            break
    assert "".join(parts) == whole
    assert len(parts) > 1
    assert data(relayed, "read_page", path="long #1", offset=10**15)["content"] == ""


def test_a_page_with_a_huge_front_matter_comes_in_parts_too(make_doors: Callable[..., Doors]) -> None:
    """Its outline says where the text begins."""
    keys = "".join(f"x_{number}: {'番' * 50}\n" for number in range(2_000))
    relayed = agent(make_doors({"big.md": f"---\n{keys}---\n# Text\nshort\n"}))
    first = called(relayed, "read_page", path="big")
    no_part_is_a_version(first)
    (heading,) = data(relayed, "read_page", path="big", outline=True)["headings"]
    assert data(relayed, "read_page", path="big", offset=heading["offset"])["content"] == "# Text\nshort\n"
    assert data(relayed, "read_page", path="big", section="Text")["content"] == "short\n"


def test_a_page_that_is_no_text_has_no_version_to_be_written_back(make_doors: Callable[..., Doors]) -> None:
    """What cannot be shown would be lost; it can still be moved."""
    relayed = agent(make_doors({"odd.md": b"heat \xff\xfe\n"}))
    result = called(relayed, "read_page", path="odd")
    no_part_is_a_version(result)
    assert refusal(relayed, "read_page", path="odd", outline=True)["code"] == "page.encoding"
    moved = data(
        relayed, "move_page", path="odd", to="other", if_version=result["structuredContent"]["edit_version"]
    )
    assert moved["outcome"] == "moved"


def test_a_whole_page_comes_with_the_version_that_replaces_it(make_doors: Callable[..., Doors]) -> None:
    """And its bytes as they are, with what begins them."""
    whole = "\ufeff---\ntitle: Boiler\n---\r\nText\r\n"
    relayed = agent(make_doors({"a.md": whole.encode()}))
    result = called(relayed, "read_page", path="a")
    answer = result["structuredContent"]
    assert answer["content"] == whole
    assert answer["version"] in texts(result)
    assert (answer["edit_version"], answer["next_offset"], answer["headings"]) == (None, None, [])
    assert NOTE in texts(result)


def test_an_outline_names_headings_with_their_places_and_sizes(make_doors: Callable[..., Doors]) -> None:
    """Read on at such a place, the page goes on with that heading."""
    relayed = agent(make_doors({"boiler.md": PAGE}))
    result = called(relayed, "read_page", path="boiler", outline=True)
    no_part_is_a_version(result)
    headings = result["structuredContent"]["headings"]
    assert [(row["level"], row["text"], row["line"]) for row in headings] == [
        (1, "House", 6), (2, "Costs", 8), (3, "Deep", 10), (1, "Car", 12), (2, "Costs", 13),
    ]  # fmt: skip
    for row in headings:
        rest = data(relayed, "read_page", path="boiler", offset=row["offset"])["content"]
        assert rest.startswith(f"{'#' * row['level']} {row['text']}\n")
    assert "## Costs" in texts(result)


def test_an_outline_of_many_headings_goes_on_to_the_end(make_doors: Callable[..., Doors]) -> None:
    """By their number; a page that is all headings, and one whose headings are huge."""
    for text in (
        "".join(f"# h{n}\n" for n in range(5_000)),
        "".join(f"# {n}{'番' * 1_000}\n" for n in range(400)),
    ):
        relayed = agent(make_doors({"many.md": text}))
        lines, offset = list[int](), 0
        while offset is not None:
            answer = data(relayed, "read_page", path="many", outline=True, offset=offset)
            lines += [row["line"] for row in answer["headings"]]
            offset = answer["next_offset"]
        assert lines == list(range(1, text.count("\n") + 1))


def test_a_section_is_read_by_its_heading(make_doors: Callable[..., Doors]) -> None:
    """By text, level, way or number; several of one name are told apart; a long one comes in parts."""
    relayed = agent(make_doors({"boiler.md": PAGE, "long.md": f"# A\n{'番' * 30_000}\n# B\nx\n"}))
    for heading, text in (
        ("Deep", "three\n"), ("### deep", "three\n"), ("House > Costs", "two\n### Deep\nthree\n"),
        ("Car > Costs", "four\n"), ("Costs [2]", "four\n"),
    ):  # fmt: skip
        result = called(relayed, "read_page", path="boiler", section=heading)
        no_part_is_a_version(result)
        assert result["structuredContent"]["content"] == text
    assert refusal(relayed, "read_page", path="boiler", section="Costs")["details"]["count"] == 2
    assert refusal(relayed, "read_page", path="boiler", section="None")["code"] == "heading.not-found"
    whole, offset = "", 0
    while offset is not None:
        part = data(relayed, "read_page", path="long", section="A", offset=offset)
        whole, offset = whole + part["content"], part["next_offset"]
    assert whole == "番" * 30_000 + "\n"


@pytest.mark.parametrize("path", [
    "notes/boiler", "notes/boiler.md", "/notes/boiler", "/notes/boiler.md", " notes/boiler ", "boiler",
    "[[notes/boiler]]", "[[boiler|the boiler]]", "[[notes/boiler#Costs]]", "![[boiler]]", "pcp://page/notes/boiler",
    "pcp://page/notes%2Fboiler", "PCP://PAGE/notes/boiler", "NOTES/Boiler",
])  # fmt: skip
def test_a_path_may_be_written_in_many_ways(make_doors: Callable[..., Doors], path: str) -> None:
    """As files, links and addresses have it."""
    relayed = agent(make_doors({"notes/boiler.md": "heat\n"}))
    for tool, name in (
        ("read_page", "path"),
        ("page_links", "path"),
        ("page_history", "path"),
        ("fetch", "id"),
    ):
        result = called(relayed, tool, **{name: path})
        assert not result.get("isError"), (tool, result)
    assert data(relayed, "read_page", path=path)["path"] == "notes/boiler"


def test_names_with_signs_of_addresses_are_decoded_once(make_doors: Callable[..., Doors]) -> None:
    """A page called `100%`, and one whose name looks encoded."""
    relayed = agent(make_doors({"100%.md": "a\n", "a%20b.md": "b\n", "a b.md": "c\n", "x.md.md": "d\n"}))
    for path, content in (
        ("100%", "a\n"), ("pcp://page/100%25", "a\n"), ("a%20b", "b\n"), ("pcp://page/a%2520b", "b\n"),
        ("a b", "c\n"), ("pcp://page/a%20b", "c\n"), ("x.md.md", "d\n"),
    ):  # fmt: skip
        assert data(relayed, "read_page", path=path)["content"] == content, path


def test_a_name_of_several_pages_is_answered_with_their_paths(make_doors: Callable[..., Doors]) -> None:
    """Five of them at most, however long."""
    pages = {f"{'f' * 200}{number}/{'g' * 200}/boiler.md": "x" for number in range(9)}
    error = refusal(agent(make_doors(pages)), "read_page", path="boiler")
    assert error["code"] == "page.ambiguous"
    assert "f" * 200 in error["hint"]


def committed(relayed: Relayed, path: str, count: int) -> list[dict[str, Any]]:
    """A page's versions, as soon as there are so many in history."""

    def versions() -> list[dict[str, Any]]:
        found = data(relayed, "page_history", path=path)["versions"]
        return [row for row in found if row["rev"]]

    until(lambda: len(versions()) >= count)
    return versions()


def test_a_history_tells_who_changed_a_page_and_what(make_doors: Callable[..., Doors]) -> None:
    """Versions, the text of one, the difference of two; never a version that could replace the page."""
    doors = make_doors()
    relayed = agent(doors)
    data(relayed, "write_page", path="boiler", content="# Boiler\none\n")
    data(relayed, "edit_page", path="boiler", op="append", content="two")
    new, old = committed(relayed, "boiler", 2)[:2]
    assert (new["by"], new["change"], old["change"]) == ("agent:claude", "modified", "added")
    past = called(relayed, "page_history", path="boiler", rev=old["rev"])
    answer = past["structuredContent"]
    assert answer["content"].endswith("# Boiler\none\n")
    assert (answer["origin"], answer["rev"], answer["versions"]) == ("agent", old["rev"], [])
    assert NOTE in texts(past)
    assert "origin: agent" in texts(past)
    for against in (new["rev"], "now", "NOW"):
        diff = called(relayed, "page_history", path="boiler", rev=old["rev"], against=against)
        assert "+two" in diff["structuredContent"]["content"]
        assert NOTE in texts(diff)
    same = data(relayed, "page_history", path="boiler", rev=new["rev"], against="now")
    assert same["content"] == ""
    assert refusal(relayed, "page_history", path="boiler", rev="0" * 40)["code"] == "history.no-version"
    for rows in (past, called(relayed, "page_history", path="boiler")):
        assert "version" not in rows["structuredContent"]
    first = data(relayed, "page_history", path="boiler", limit=1)
    second = data(relayed, "page_history", path="boiler", limit=1, cursor=first["cursor"])
    assert [row["rev"] for row in (*first["versions"], *second["versions"])] == [new["rev"], old["rev"]]


def test_a_long_version_and_a_long_difference_come_in_parts(make_doors: Callable[..., Doors]) -> None:
    """By offset, as pages do."""
    relayed = agent(make_doors())
    long = "".join(f"{number} {'番' * 20}\n" for number in range(2_000))
    made = data(relayed, "write_page", path="long", content=long)
    data(relayed, "write_page", path="long", content="short\n", if_version=made["version"])
    new, old = committed(relayed, "long", 2)[:2]
    for arguments in ({"rev": old["rev"]}, {"rev": old["rev"], "against": new["rev"]}):
        whole, offset = "", 0
        while offset is not None:
            answer = data(relayed, "page_history", path="long", **arguments, offset=offset)
            whole += answer["content"]
            offset = answer["next_offset"]
        assert len(whole) == answer["characters"]
        assert "1999 番番" in whole


def test_fetch_says_where_a_text_comes_from_in_its_metadata(make_doors: Callable[..., Doors]) -> None:
    """In the one text, too, since that is what is read."""
    relayed = agent(make_doors({"boiler.md": "heat\n"}))
    fetched = called(relayed, "fetch", id="boiler")
    metadata = json.loads(texts(fetched))["metadata"]
    assert (metadata["origin"], NOTE in metadata["note"]) == ("user", True)
    assert metadata["updated"].endswith("Z")

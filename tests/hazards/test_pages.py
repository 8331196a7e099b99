"""Pages that are broken, odd or written by another tool: listed, searchable, and never repaired by the way."""

from collections.abc import Callable

import pytest
import yaml

from pcpd.errors import Invalid
from pcpd.memory import read, write
from pcpd.memory.doctor import doctor
from pcpd.pages.edits import Edit
from tests.doors import Doors, make_doors
from tests.hazards.conftest import Asked
from tests.vaults import Opened
from tests.waiting import until

__all__ = ["make_doors"]

BROKEN = {
    "colon": (b"---\ntitle: Boiler: a story\n---\nzyxword\n", "front-matter.invalid"),
    "at": (b"---\ntitle: @home\n---\nzyxword\n", "front-matter.invalid"),
    "bracket": (b"---\ntitle: [draft\n---\nzyxword\n", "front-matter.invalid"),
    "percent": (b"---\ntitle: %x\n---\nzyxword\n", "front-matter.invalid"),
    "quote": (b'---\ntitle: "open\n---\nzyxword\n', "front-matter.invalid"),
    "twice": (b"---\na: 1\nb: 2\na: 3\n---\nzyxword\n", "front-matter.duplicate-key"),
    "nested-twice": (b"---\nm:\n  k: 1\n  k: 2\n---\nzyxword\n", "front-matter.duplicate-key"),
    "unclosed": (b"---\na: 1\nzyxword\n", "front-matter.unclosed"),
    "latin": (b"caf\xe9 zyxword\n", "page.encoding"),
    "nul": (b"zyxword\0more zyxword\n", "page.nul"),
    "markers": (b"zyxword\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n", "page.conflict"),
}
EDITS = [Edit("set", "title", "x"), Edit("append_item", "tags", "x"), Edit("remove", "title")]


def test_pages_with_problems_are_listed_searchable_and_never_changed(opened: Opened, ask: Asked) -> None:
    """Each has its problem with file and line in `doctor`; a key is not set; the others are not affected."""
    for name, (data, _) in BROKEN.items():
        opened.save(f"{name}.md", data)
    opened.save("good.md", "---\ntitle: Good\n---\nzyxword\n")
    until(lambda: len(ask.found("zyxword")) == len(BROKEN) + 1)
    assert read.list_pages(opened.memory, opened.person).total == len(BROKEN) + 1
    found = {each["file"]: each for each in doctor(opened.memory)["problems"]}
    for name, (data, code) in BROKEN.items():
        assert found[f"{name}.md"]["code"] == code
        if code.startswith("front-matter") or name == "markers":
            assert found[f"{name}.md"]["line"] >= 1
        if name != "markers":
            for edit in EDITS:
                with pytest.raises(Invalid):
                    write.edit_page(opened.memory, opened.person, name, [edit])
        assert (opened.root / f"{name}.md").read_bytes() == data
    assert "good.md" not in found
    write.edit_page(opened.memory, opened.person, "good", [Edit("set", "title", "Better")])
    until(lambda: ask.found("better") == ["good"])


def test_no_door_changes_a_page_whose_front_matter_does_not_parse(make_doors: Callable[..., Doors]) -> None:
    """HTTP refuses with the line and reason; an agent that reads it sees it as it is."""
    data = BROKEN["bracket"][0]
    doors = make_doors({"broken.md": data})
    edits = {"edits": [{"op": "set", "where": "title", "value": "x"}]}
    refused = doors.vault("PATCH", "pages/broken", body=edits)
    assert refused.status == 422
    assert refused.code == "page.front-matter"
    assert "line" in refused.json()["detail"]
    assert doors.vault("GET", "pages/broken").data == data
    assert (doors.opened.root / "broken.md").read_bytes() == data


def test_what_a_key_says_stays_as_written_at_every_door(make_doors: Callable[..., Doors]) -> None:
    """Dates, times, `no`, `012`, hexadecimal, long numbers: found as written, read as written, one line changed."""
    lines = ["when: 2026-01-05", "at: 12:30:45", "flag: no", "code: 012", "hex: 0x1F", "big: 12345678901234567890",
             "version: 1.10", "under: 1_000", "power: 1e3", "none: ~", "list: [no, 012, 1.10]"]  # fmt: skip
    data = ("---\n" + "\n".join(lines) + "\n---\nzyxword\n").encode()
    doors = make_doors({"odd.md": data})
    for line in lines[:9]:
        key, _, value = line.partition(": ")
        found = doors.vault("GET", f"search?q=x-{key}%3A%22{value.replace(':', '%3A')}%22").json()
        assert [each["path"] for each in found["results"]] == ["odd"], line
    edits = {
        "edits": [{"op": "set", "where": "flag", "value": True}, {"op": "set", "where": "code", "value": 3}]
    }
    edits["edits"].append({"op": "set", "where": "hex", "value": "3"})
    assert doors.vault("PATCH", "pages/odd", body=edits).status == 200
    after = doors.vault("GET", "pages/odd").data.decode().split("\n")
    changed = {old: new for old, new in zip(data.decode().split("\n"), after, strict=True) if old != new}
    assert changed.keys() == {"flag: no", "code: 012", "hex: 0x1F"}
    read_back = yaml.safe_load("\n".join(changed.values()))
    assert read_back == {"flag": True, "code": 3, "hex": "3"}


@pytest.mark.parametrize(
    "title",
    ["a: b", "@home", "[x", "#tag", "%x", "it's", '"q"', "true", "1.0", "no", "a # b", "- x", "京都", "{x}"],
)
def test_a_title_that_a_tool_writes_is_read_back_by_another_parser(
    opened: Opened, ask: Asked, title: str
) -> None:
    """It is quoted where it must be."""
    path = opened.save("page.md", "---\nid: p1\n---\nzyxword\n")
    until(lambda: ask.found("zyxword"))
    write.edit_page(opened.memory, opened.person, "page", [Edit("set", "title", title)])
    block = path.read_text(encoding="utf-8").split("---\n")[1]
    assert yaml.safe_load(block) == {"id": "p1", "title": title}
    assert read.search(opened.memory, opened.person, "zyxword").results[0].title == title


def test_a_page_beyond_every_bound_harms_no_other(opened: Opened, ask: Asked) -> None:
    """An alias bomb, deep nesting, a line of 20 MB, runs of marks: each a problem or plain text, and time stays."""
    bomb = "a: &a [x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20)
    )
    bad = {
        "bomb": f"---\n{bomb}---\nzyxbound\n",
        "deep": "---\na: " + "[" * 100_000 + "\n---\nzyxbound\n",
        "keys": "---\n" + "\n".join(f"k{n}: {n}" for n in range(100_000)) + "\n---\nzyxbound\n",
        "line": "zyxbound " + "x" * 20_000_000,
        "brackets": "zyxbound\n" + "[" * 500_000,
        "ticks": "zyxbound\n" + "`" * 500_000 + "a" + "`" * 499_999,
        "dashes": "zyxbound\n" + "-" * 500_000,
    }
    for name, text in bad.items():
        opened.save(f"{name}.md", text)
    opened.save("good.md", "zyxbound [[good]]\n")
    until(lambda: len(ask.found("zyxbound")) == len(bad) + 1)
    codes = {each["file"]: each["code"] for each in doctor(opened.memory)["problems"]}
    assert {"bomb.md", "deep.md", "keys.md", "line.md"} <= codes.keys()
    assert "good.md" not in codes


def test_markers_in_a_code_block_are_no_conflict(opened: Opened, ask: Asked) -> None:
    """A page that explains conflicts has none."""
    opened.save("how.md", "zyxhow\n\n```\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n```\n")
    until(lambda: ask.found("zyxhow"))
    assert doctor(opened.memory)["problems"] == []


def test_the_last_word_of_the_longest_page_is_found(opened: Opened, ask: Asked) -> None:
    """Ten mebibytes, to the last byte."""
    last = b" zyxlast\n"
    opened.save("long.md", (b"word \n" * (10 * 1024 * 1024 // 6))[: 10 * 1024 * 1024 - len(last)] + last)
    until(lambda: ask.found("zyxlast") == ["long"])

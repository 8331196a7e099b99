"""The tools that change pages: nothing is overwritten unread, edits keep the rest, and each is made once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.doors import Doors
from tests.mcp_server.asked import agent, called, data, refusal, stranger, texts

PAGE = "---\ntitle: Boiler   # the old one\ntags: [heat]\n---\n# Boiler\n\nGas.\n\n## Costs\n\n9\n"


@pytest.fixture
def vault(make_doors: Callable[..., Doors]) -> Doors:
    """A vault with one page."""
    return make_doors({"boiler.md": PAGE})


def on_disk(doors: Doors, file: str = "boiler.md") -> str:
    """What a file says."""
    return (doors.opened.root / file).read_text()


def untouched(text: str) -> str:
    """A page without the time that an agent's edit sets."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("updated: "))


def test_what_was_read_whole_can_be_replaced_and_nothing_else(vault: Doors) -> None:
    """With the version of that answer; an old one is refused, and the present one told."""
    relayed = agent(vault)
    page = data(relayed, "read_page", path="boiler")
    unread = refusal(relayed, "write_page", path="boiler", content="New.")
    assert unread["code"] == "page.exists"
    assert "details" not in unread  # who has not read it could replace it with the version told here
    assert page["version"] not in repr(unread)
    done = data(relayed, "write_page", path="boiler", content="New.", if_version=page["version"])
    assert (done["outcome"], done["edit_version"]) == ("replaced", None)
    stale = refusal(relayed, "write_page", path="boiler", content="Old.", if_version=page["version"])
    assert (stale["code"], stale["details"]["version"]) == ("page.stale", done["version"])
    again = data(relayed, "write_page", path="boiler", content="Newer.", if_version=f'"{done["version"]}"')
    assert again["outcome"] == "replaced"
    assert on_disk(vault).endswith("Newer.")
    assert "# the old one" in on_disk(vault)


def test_a_part_cannot_be_written_back_as_the_whole(vault: Doors) -> None:
    """An outline, a section, a piece, an edit's answer: none holds anything that write_page takes."""
    relayed = agent(vault)
    parts = [
        data(relayed, "read_page", path="boiler", **arguments)
        for arguments in ({"outline": True}, {"section": "Costs"}, {"offset": 3})
    ]
    parts.append(data(relayed, "edit_page", path="boiler", op="append", content="x"))
    for part in parts:
        assert part["version"] is None
        error = refusal(relayed, "write_page", path="boiler", content="lost", if_version=part["edit_version"])
        assert error["code"] == "page.read-in-part"
    assert "lost" not in on_disk(vault)


def test_a_part_can_be_edited_by_who_has_seen_it(vault: Doors) -> None:
    """And is refused once somebody else has changed the page; the version that would replace it is not told."""
    relayed = agent(vault)
    part = data(relayed, "read_page", path="boiler", section="Costs")
    done = data(
        relayed,
        "edit_page",
        path="boiler",
        op="section",
        heading="Costs",
        content="10",
        if_version=part["edit_version"],
    )
    stale = refusal(
        relayed,
        "edit_page",
        path="boiler",
        op="section",
        heading="Costs",
        content="11",
        if_version=part["edit_version"],
    )
    assert (stale["code"], stale["details"]) == ("page.stale", {"version": done["edit_version"]})
    gone = data(relayed, "remove_page", path="boiler", if_version=done["edit_version"])
    assert gone["outcome"] == "removed"


def test_an_edit_of_what_was_read_whole_keeps_its_version(vault: Doors) -> None:
    """So that one may go on to replace."""
    relayed = agent(vault)
    version = data(relayed, "read_page", path="boiler")["version"]
    done = data(relayed, "edit_page", path="boiler", op="append", content="x", if_version=version)
    assert done["version"] == data(relayed, "read_page", path="boiler")["version"]


@pytest.mark.parametrize(("edit", "before", "after"), [
    ({"op": "section", "heading": "Costs", "content": "10"}, "9\n", "10\n"),
    ({"op": "SECTION", "heading": "## Costs", "text": "10"}, "9\n", "10\n"),
    ({"op": "section", "heading": "Boiler > Costs", "content": "10\n"}, "9\n", "10\n"),
    ({"op": "replace_text", "old_text": "Gas.", "content": "Pump."}, "Gas.", "Pump."),
    ({"op": "replace-text", "old_str": "Gas.", "new_text": ""}, "Gas.", ""),
    ({"op": "append", "content": "End."}, "9\n", "9\nEnd.\n"),
    ({"op": "prepend", "content": "First."}, "---\n# B", "---\nFirst.\n# B"),
    ({"op": "set_key", "key": "title", "value": "Heat"}, "title: Boiler ", "title: Heat "),
    ({"op": "add_item", "key": "tags", "value": "house"}, "[heat]", "[heat, house]"),
    ({"op": "remove_key", "key": "tags"}, "tags: [heat]\n", ""),
])  # fmt: skip
def test_an_edit_changes_what_it_says_and_leaves_every_other_byte(
    vault: Doors, edit: dict[str, Any], before: str, after: str
) -> None:
    """Under the names that models send."""
    relayed = agent(vault)
    assert data(relayed, "edit_page", path="boiler", **edit)["outcome"] == "replaced"
    assert untouched(on_disk(vault)) == PAGE.replace(before, after, 1)


@pytest.mark.parametrize(("value", "line"), [
    ("some words", "k: some words"), (True, "k: true"), ("true", "k: true"), (3, "k: 3"), ("3", "k: 3"),
    ('"3"', 'k: "3"'), ("1.10", "k: 1.10"), (0.5, "k: 0.5"), ("2026-01-05", "k: 2026-01-05"), ("x: y", 'k: "x: y"'),
    (["a", 1], "k: [a, 1]"), ('["a", 1]', "k: [a, 1]"), ({"a": "b"}, "k: {a: b}"), ("no", 'k: "no"'),
])  # fmt: skip
def test_a_value_is_what_it_says_as_json_or_as_text(vault: Doors, value: object, line: str) -> None:
    """In whichever of the two a client sends it, and spelled as it was."""
    relayed = agent(vault)
    data(relayed, "edit_page", path="boiler", op="set_key", key="k", value=value)
    block = yaml.safe_load(on_disk(vault).split("---")[1])
    assert block["k"] == yaml.safe_load(line)["k"]
    if value in ("1.10", "2026-01-05"):
        assert line in on_disk(vault)


def test_keys_that_say_who_wrote_a_page_are_not_an_agents_to_set(vault: Doors) -> None:
    """By edit or by text."""
    relayed = agent(vault)
    for op in ("set_key", "add_item"):
        error = refusal(relayed, "edit_page", path="boiler", op=op, key="source.origin", value="user")
        assert error["code"] == "page.reserved-key"
    assert refusal(relayed, "edit_page", path="boiler", op="remove_key", key="id")["code"] in {
        "page.reserved-key", "page.key-not-found",
    }  # fmt: skip
    made = "---\nreview: {state: approved}\n---\nx"
    assert refusal(relayed, "write_page", path="new", content=made)["code"] == "page.reserved-key"
    assert on_disk(vault) == PAGE


def test_two_agents_that_append_both_keep_their_lines(vault: Doors) -> None:
    """However their calls fall together."""
    agents = [agent(vault, f"agent:{name}") for name in ("one", "two", "three")]

    def work(number: int) -> None:
        for turn in range(8):
            data(agents[number], "edit_page", path="boiler", op="append", content=f"line {number}-{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = on_disk(vault).splitlines()
    for number in range(3):
        mine = [line for line in lines if line.startswith(f"line {number}-")]
        assert mine == [f"line {number}-{turn}" for turn in range(8)]


def test_of_two_agents_that_replace_what_both_read_one_is_refused(vault: Doors) -> None:
    """Neither text is lost unseen."""
    one, two = agent(vault, "agent:one"), agent(vault, "agent:two")
    version = data(one, "read_page", path="boiler")["version"]
    assert data(two, "read_page", path="boiler")["version"] == version
    results: list[Any] = []
    barrier = threading.Barrier(2)

    def write(relayed: Any, text: str) -> None:
        barrier.wait()
        results.append(called(relayed, "write_page", path="boiler", content=text, if_version=version))

    threads = [threading.Thread(target=write, args=each) for each in ((one, "One."), (two, "Two."))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(result.get("isError")) for result in results) == [False, True]


def test_a_page_is_made_with_what_is_named_beside_its_text(vault: Doors) -> None:
    """Lists as JSON text or with commas, numbers as text, null and empty text for what is left out."""
    relayed = agent(vault)
    made = data(
        relayed, "write_page", path="/notes/new.md", text="heat", tags='["a", "b"]', title=2024, type="Episodic",
        if_version="", partition=None,
    )  # fmt: skip
    assert (made["outcome"], made["path"]) == ("created", "notes/new")
    text = on_disk(vault, "notes/new.md")
    assert "type: episodic" in text
    assert "2024" in text
    assert "agent:claude" in text
    assert data(relayed, "search_memory", query="tag:b")["total"] == 1


def test_a_page_is_moved_and_nothing_is_overwritten(vault: Doors) -> None:
    """With or without a version."""
    relayed = agent(vault)
    data(relayed, "write_page", path="other", content="x")
    assert refusal(relayed, "move_page", path="boiler", to="other")["code"] == "page.exists"
    assert refusal(relayed, "move_page", path="boiler", to="new", if_version="0" * 64)["code"] == "page.stale"
    moved = data(relayed, "move_page", path="boiler", to="/house/boiler.md")
    assert (moved["path"], moved["outcome"]) == ("house/boiler", "moved")
    assert on_disk(vault, "house/boiler.md") == PAGE


def test_who_moves_or_removes_a_page_is_told_which_links_broke(make_doors: Callable[..., Doors]) -> None:
    """As many as an answer holds, and how many there are."""
    many = {f"{'n' * 200}{number:03}.md": "[[pages/boiler]]\n" for number in range(150)}
    doors = make_doors({"pages/boiler.md": "x\n", "pages/pump.md": "x\n", "a.md": "[[pages/pump]]\n", **many})
    relayed = agent(doors)
    result = called(relayed, "move_page", path="pages/pump", to="other")
    assert result["structuredContent"]["broken_links"] == ["a"]
    assert "lead nowhere now on: a." in texts(result)
    version = data(relayed, "read_page", path="pages/boiler")["version"]
    removed = called(relayed, "remove_page", path="pages/boiler", if_version=version)
    told = removed["structuredContent"]
    assert told["broken_links_total"] == 150 > len(told["broken_links"]) > 10
    assert f"and {150 - len(told['broken_links'])} more" in texts(removed)


def test_only_what_was_read_is_removed(vault: Doors) -> None:
    """A removal without a version is refused, as one with an old version is."""
    relayed = agent(vault)
    version = data(relayed, "read_page", path="boiler")["version"]
    data(relayed, "edit_page", path="boiler", op="append", content="new")
    assert refusal(relayed, "remove_page", path="boiler")["code"] == "tool.argument"
    assert refusal(relayed, "remove_page", path="boiler", if_version=version)["code"] == "page.stale"
    version = data(relayed, "read_page", path="boiler")["version"]
    result = called(relayed, "remove_page", path="boiler", if_version=version)
    assert result["structuredContent"]["outcome"] == "removed"
    assert "bring it back" in texts(result)
    assert not (vault.opened.root / "boiler.md").exists()


def test_a_call_that_the_relay_sends_again_is_done_once(vault: Doors) -> None:
    """By the key in its `_meta`; a key that is too long is refused."""
    relayed = agent(vault)
    call = {
        "name": "edit_page",
        "arguments": {"path": "boiler", "op": "append", "content": "once"},
        "_meta": {"pcpd/key": "k"},
    }
    first, again = (relayed.request("tools/call", **call)["result"] for _ in range(2))
    assert again["structuredContent"] == first["structuredContent"]
    assert on_disk(vault).count("once") == 1
    call["_meta"] = {"pcpd/key": "k" * 201}
    assert relayed.request("tools/call", **call)["result"]["isError"]


def test_who_may_only_read_changes_nothing(vault: Doors) -> None:
    """Each tool that changes is denied, with the way to be allowed."""
    relayed = agent(vault, "agent:reader", "read")
    version = data(relayed, "read_page", path="boiler")["version"]
    for tool, arguments in (
        ("write_page", {"path": "boiler", "content": "x", "if_version": version}),
        ("write_page", {"path": "new", "content": "x"}),
        ("edit_page", {"path": "boiler", "op": "append", "content": "x"}),
        ("move_page", {"path": "boiler", "to": "new"}),
        ("remove_page", {"path": "boiler", "if_version": version}),
    ):
        error = refusal(relayed, tool, **arguments)
        assert error["code"] == "access.denied"
        assert "pcpd grant" in error["hint"]
    assert on_disk(vault) == PAGE


def test_without_a_grant_nothing_is_changed(vault: Doors) -> None:
    """And nothing is told."""
    relayed = stranger(vault, "agent:none")
    assert refusal(relayed, "write_page", path="boiler", content="x")["code"] == "access.denied"
    assert on_disk(vault) == PAGE

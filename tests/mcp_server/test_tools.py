"""What holds of every tool: how it is described, what its answers and errors look like, what it keeps to itself."""

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from pcpd.errors import Conflict
from pcpd.mcp_server.answers import ERROR
from pcpd.mcp_server.tools import BY_NAME, TOOLS
from pcpd.memory import read
from tests.doors import Doors, Relayed
from tests.mcp_server.asked import NOTE, agent, called, check, data, holds, refusal, stranger, strict, texts
from tests.waiting import until

NAMES = {
    "search_memory", "read_page", "list_pages", "recent_pages", "page_links", "page_history", "write_page",
    "edit_page", "move_page", "remove_page", "describe_context", "search", "fetch",
    "list_proposals", "review_proposal",
}  # fmt: skip
CHANGES = {"write_page", "edit_page", "move_page", "remove_page", "review_proposal"}
PAGES = {
    "boiler.md": "---\ntitle: Boiler\ntags: [heat]\n---\n# Boiler\nGas or heat pump? [[pump]] [[x]]\n## Costs\n9\n",
    "pump.md": "See [[boiler]].\n",
    "draft.md": "---\nreview: {state: proposed}\n---\nNobody has looked at this.\n",
}


def scene(relayed: Relayed) -> dict[str, dict[str, Any]]:
    """Arguments with which each tool succeeds, one after the other, on PAGES."""
    version = data(relayed, "read_page", path="pump")["version"]
    return {
        "search_memory": {"query": "heat", "limit": 5},
        "read_page": {"path": "boiler"},
        "list_pages": {"folder": ""},
        "recent_pages": {"since": "2020-01-01"},
        "page_links": {"path": "boiler", "depth": 2},
        "page_history": {"path": "boiler"},
        "write_page": {"path": "new", "content": "Heat.", "title": "N", "type": "episodic", "tags": ["a"]},
        "edit_page": {"path": "boiler", "op": "append", "content": "More."},
        "move_page": {"path": "new", "to": "newer"},
        "remove_page": {"path": "pump", "if_version": version},
        "describe_context": {},
        "search": {"query": "heat"},
        "fetch": {"id": "boiler"},
        "list_proposals": {"id": "draft"},
        "review_proposal": {"id": "draft", "decision": "approve"},
    }


def listed(relayed: Relayed) -> dict[str, Any]:
    """The tools as a client sees them."""
    return {tool["name"]: tool for tool in relayed.request("tools/list")["result"]["tools"]}


def test_tools_are_listed_with_what_they_do(doors: Doors) -> None:
    """Titles, and the hints by which clients decide whether to ask their person."""
    relayed = agent(doors)
    tools = listed(relayed)
    assert set(tools) == NAMES == set(BY_NAME)

    def hinted(hint: str) -> set[str]:
        return {name for name, tool in tools.items() if tool["annotations"][hint]}

    assert hinted("readOnlyHint") == NAMES - CHANGES
    assert hinted("destructiveHint") == CHANGES - {"move_page"}
    assert hinted("idempotentHint") == NAMES - {"edit_page"}
    assert hinted("openWorldHint") == set()
    for name, tool in tools.items():
        assert tool["title"] == tool["annotations"]["title"] != name
        assert len(tool["description"]) > 80, name


def test_input_schemas_are_flat_and_hold_nothing_that_a_client_turns_down() -> None:
    """No nesting, references, alternatives, bounds or defaults: models of three houses take these."""
    for tool in TOOLS:
        schema = tool.schema
        assert set(schema) == {"type", "properties", "required", "additionalProperties"}
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert set(schema["required"]) <= set(schema["properties"])
        for name, argument in schema["properties"].items():
            assert re.fullmatch(r"[a-z_]{1,64}", name)
            assert argument["type"] in {"string", "integer", "boolean", "array"}
            assert set(argument) <= {"type", "description", "enum", "items"}
            assert argument["description"].endswith("."), (tool.name, name)
            assert argument.get("items", {"type": "string"}) == {"type": "string"}


def test_schemas_are_schemas() -> None:
    """Of the dialect that the protocol names, without a reference to elsewhere."""
    for tool in TOOLS:
        for schema in (tool.schema, tool.output_schema):
            check(None, schema)
            assert "$ref" not in json.dumps(schema)


def test_every_tool_answers_as_its_schema_says(make_doors: Callable[..., Doors]) -> None:
    """All keys, no others; in words what is in the data; and that it is data."""
    relayed = agent(make_doors(PAGES), "agent:claude", "read", "write", "review")
    for tool, arguments in scene(relayed).items():
        result = called(relayed, tool, **arguments)
        assert not result.get("isError"), (tool, result)
        check(result["structuredContent"], strict(BY_NAME[tool].output_schema))
        if tool not in CHANGES | {"search"}:
            assert NOTE in texts(result), tool
            assert NOTE in json.dumps(result["structuredContent"]), tool
        assert "path" not in result["structuredContent"] or result["structuredContent"]["path"] in texts(
            result
        )


def test_every_text_says_where_it_comes_from(make_doors: Callable[..., Doors]) -> None:
    """Origin, review and time: of pages, rows, links, and what is around a page."""
    doors = make_doors({
        "pump.md": "---\nupdated: 2026-01-05\nreview: {state: approved}\nsource: {origin: import}\n---\n"
        "heat [[x]] [[boiler]]\n",
        "boiler.md": "[[pump]]\n",
    })  # fmt: skip
    relayed = agent(doors)
    where = {"origin": "import", "review": "approved", "updated": "2026-01-05T00:00:00Z"}
    said = "origin: import, review: approved, updated 2026-01-05T00:00:00Z"

    def has(result: Any, row: dict[str, Any]) -> None:
        assert {key: row[key] for key in where} == where
        assert said in texts(result) or json.dumps(where)[1:-1] in texts(result)

    for tool, arguments, rows in (
        ("search_memory", {"query": "heat"}, "results"), ("list_pages", {}, "pages"),
        ("recent_pages", {"limit": 9}, "pages"), ("page_links", {"path": "boiler"}, "pages"),
        ("page_links", {"path": "boiler"}, "backlinks"), ("page_links", {"path": "pump"}, "outgoing"),
        ("page_links", {"unresolved": True}, "outgoing"),
    ):  # fmt: skip
        result = called(relayed, tool, **arguments)
        found = result["structuredContent"][rows]
        has(result, next(row for row in found if "pump" in {row.get("path"), row.get("from")}))
    for arguments in ({}, {"outline": True}):
        result = called(relayed, "read_page", path="pump", **arguments)
        has(result, result["structuredContent"])
    result = called(relayed, "fetch", id="pump")
    has(result, result["structuredContent"]["metadata"])


def test_an_error_is_an_answer_without_data_that_could_break_the_schema(doors: Doors) -> None:
    """A client that holds data to the schema would show its own error instead of ours."""
    relayed = agent(doors)
    for tool in NAMES:
        result = relayed.call(tool, nonsense=1)
        assert result["isError"]
        holds(tool, result)


def test_without_a_grant_all_is_empty_and_the_way_in_is_said(doors: Doors) -> None:
    """The same for a page that is there and one that is not; nothing is told of the memory."""
    relayed = stranger(doors, "agent:none")
    for tool, rows in (("search_memory", "results"), ("list_pages", "pages"), ("recent_pages", "pages")):
        result = called(relayed, tool, **({"query": "heat"} if tool == "search_memory" else {}))
        answer = result["structuredContent"]
        assert (answer[rows], answer["total"]) == ([], 0)
        assert "pcpd connect" in answer["hint"]
        assert "pcpd grant agent:none" in answer["hint"]
        assert answer["hint"] in texts(result)
    assert data(relayed, "search", query="heat") == {"results": []}
    assert "pcpd" in data(relayed, "page_links", unresolved=True)["hint"]
    context = data(relayed, "describe_context")
    assert (context["pages"], context["partitions"], context["grants"]) == (0, [], [])
    assert "pcpd grant" in " ".join(context["how_to_ask"])
    for tool, arguments in (
        ("read_page", {}), ("page_history", {}), ("page_links", {}), ("fetch", {}),
        ("edit_page", {"op": "append", "content": "x"}), ("move_page", {"to": "z"}),
        ("remove_page", {"if_version": "0" * 64}),
    ):  # fmt: skip
        name = "id" if tool == "fetch" else "path"
        there, absent = (refusal(relayed, tool, **{name: path}, **arguments) for path in ("boiler", "absent"))
        assert there["code"] == "page.not-found"
        assert json.dumps(there).replace("boiler", "X") == json.dumps(absent).replace("absent", "X")
    there, absent = (refusal(relayed, "write_page", path=path, content="x") for path in ("boiler", "absent"))
    assert there == absent
    assert there["code"] == "access.denied"


def test_a_hint_is_not_given_to_who_may_read(doors: Doors) -> None:
    """Not even when nothing is found."""
    relayed = agent(doors)
    assert data(relayed, "search_memory", query="zyxnothing")["hint"] is None


@pytest.mark.parametrize(("tool", "arguments"), [
    ("search_memory", {}), ("search_memory", {"query": None}), ("search_memory", {"query": ["heat"]}),
    ("search_memory", {"query": "heat", "limit": "many"}), ("search_memory", {"query": "heat", "limit": 0}),
    ("search_memory", {"query": "heat", "max_results": 5}), ("read_page", {"path": {"a": 1}}), ("read_page", {}),
    ("read_page", {"path": "boiler", "offset": -1}), ("read_page", {"path": "boiler", "outline": "perhaps"}),
    ("read_page", {"path": "boiler", "outline": True, "section": "A"}), ("list_pages", {"folder": ["a"]}),
    ("list_pages", {"cursor": True}), ("recent_pages", {"since": {}}), ("page_links", {}),
    ("page_links", {"path": "boiler", "unresolved": True}), ("page_links", {"path": "boiler", "depth": 0}),
    ("page_history", {"path": "boiler", "against": "now"}), ("page_history", {"path": "boiler", "limit": 0}),
    ("write_page", {"path": "x"}), ("write_page", {"path": "x", "content": {"a": 1}}), ("write_page", {"content": "x"}),
    ("write_page", {"path": "x", "content": "x", "tags": 5}),
    ("write_page", {"path": "x", "content": "x", "text": "y"}),
    ("edit_page", {"path": "boiler", "op": "append"}), ("edit_page", {"path": "boiler", "content": "x"}),
    ("edit_page", {"path": "boiler", "op": "shuffle", "content": "x"}),
    ("edit_page", {"path": "boiler", "op": "append", "content": "x", "heading": "H"}),
    ("edit_page", {"path": "boiler", "op": "set_key", "key": "k"}), ("move_page", {"path": "boiler"}),
    ("remove_page", {"path": "boiler"}), ("remove_page", {"path": "boiler", "if_version": ""}),
    ("describe_context", {"path": "x"}), ("search", {"query": "x", "limit": 5}), ("fetch", {"id": ""}),
])  # fmt: skip
def test_wrong_arguments_are_a_tool_error_with_a_hint(
    doors: Doors, tool: str, arguments: dict[str, Any]
) -> None:
    """The model can read it and try again; nothing was done."""
    relayed = agent(doors)
    error = refusal(relayed, tool, **arguments)
    assert error["code"] == "tool.argument"
    assert error["hint"]
    assert {path.name for path in doors.opened.root.glob("*.md")} == {"boiler.md"}
    assert doors.opened.root.joinpath("boiler.md").read_text().endswith("Gas or heat pump?\n")


def test_what_was_meant_by_an_unknown_argument_is_asked(doors: Doors) -> None:
    """So that the next call is right."""
    relayed = agent(doors)
    for tool, wrong, meant in (
        ("search_memory", "max_results", "limit"), ("search_memory", "qeury", "query"),
        ("list_pages", "directory", "folder"), ("write_page", "version", "if_version"),
        ("move_page", "new_path", "to"), ("edit_page", "old_txt", "old_text"),
    ):  # fmt: skip
        assert f"did you mean `{meant}`?" in refusal(relayed, tool, **{wrong: "x"})["hint"]


HUGE = "z" * 1_000_000


@pytest.mark.parametrize(("tool", "arguments"), [
    ("read_page", {"path": HUGE}), ("read_page", {"path": "番" * 300_000}),
    ("read_page", {"path": "boiler", "section": HUGE}), ("search_memory", {"query": "heat", "cursor": HUGE}),
    ("recent_pages", {"since": HUGE}), ("page_links", {"path": HUGE}),
    ("page_links", {"path": "boiler", "cursor": HUGE}),
    ("page_history", {"path": HUGE}), ("page_history", {"path": "boiler", "rev": HUGE}), ("fetch", {"id": HUGE}),
    ("write_page", {"path": HUGE, "content": ""}), ("list_pages", {HUGE: 1}),
    ("write_page", {"path": "new", "content": "x", "type": HUGE}),
    ("write_page", {"path": "new", "content": "x", "tags": {HUGE: HUGE}}),
    ("write_page", {"path": "new", "content": f"---\na: [{HUGE}\n---\n"}),
    ("write_page", {"path": "boiler", "content": "x", "if_version": HUGE}),
    ("edit_page", {"path": "boiler", "op": HUGE}),
    ("edit_page", {"path": "boiler", "op": "set_key", "key": HUGE, "value": "\0"}),
    ("edit_page", {"path": "boiler", "op": "replace_text", "old_text": HUGE, "content": ""}),
    ("edit_page", {"path": "boiler", "op": "section", "heading": HUGE, "content": ""}),
    ("move_page", {"path": "boiler", "to": HUGE}), ("remove_page", {"path": HUGE, "if_version": HUGE}),
])  # fmt: skip
def test_errors_never_quote_what_is_huge(doors: Doors, tool: str, arguments: dict[str, Any]) -> None:
    """However large what was sent is."""
    relayed = agent(doors)
    refusal(relayed, tool, **arguments)


def test_a_tool_that_does_not_exist_is_an_error_of_the_same_kind(doors: Doors) -> None:
    """Its name is not quoted whole."""
    relayed = agent(doors)
    result = relayed.call("x" * 100_000)
    assert result["isError"]
    assert result["_meta"][ERROR]["code"] == "tool.unknown"
    assert len(json.dumps(result)) < 2_000


@pytest.mark.parametrize("size", [10, 100_000])
def test_details_of_an_error_are_left_out_where_they_are_huge(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Small ones are told in the text and beside it."""

    def failing(*_: object, **__: object) -> None:
        raise Conflict("room.what", "w" * size, hint="h" * size, details={"version": "v" * size})

    relayed = agent(doors)
    monkeypatch.setattr(read, "read_page", failing)
    result = relayed.call("read_page", path="boiler")
    assert ("v" * 10 in texts(result)) == (size == 10)
    assert ("details" in result["_meta"][ERROR]) == (size == 10)
    assert len(json.dumps(result)) < 10_000


def test_errors_never_quote_a_page(make_doors: Callable[..., Doors]) -> None:
    """Of a page whose front matter does not parse, or where a text stands twice, they tell lines, not words."""
    doors = make_doors({
        "broken.md": "---\ntitle: [zyxsecret\n---\nzyxbody\n",
        "twice.md": "# zyxsecret\nzyxbody zyxbody\n# zyxsecret\n",
    })  # fmt: skip
    relayed = agent(doors)
    for path, edit in (
        ("broken", {"op": "append", "content": "x"}), ("broken", {"op": "set_key", "key": "a", "value": "b"}),
        ("twice", {"op": "replace_text", "old_text": "zyx", "content": "x"}),
        ("twice", {"op": "section", "heading": "absent", "content": "x"}),
    ):  # fmt: skip
        error = refusal(relayed, "edit_page", path=path, **edit)
        assert "zyxbody" not in json.dumps(error)
        assert "zyxsecret" not in json.dumps(error)


def test_places_that_are_no_pages_are_closed(doors: Doors) -> None:
    """Reading answers as for a page that never was; writing is refused, and nothing is told of what is there."""
    root = doors.opened.root
    for file in (".git/zz.md", ".obsidian/x.md", ".pcp/yy.md"):
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text("hidden\n")
    relayed = agent(doors)
    for path in (
        ".git/zz", ".obsidian/x", ".pcp/yy", ".pcp/context.yaml", "../x", "//etc/passwd", "a\0b", "..\\x", "C:/x",
        "file:///etc/passwd", "pcp://page/../x", "pcp://page/%2e%2e/x", "pcp://page/.git/zz", "[[../x]]", "/../x",
        "pcp://page/%252e%252e/x",
    ):  # fmt: skip
        absent = refusal(relayed, "read_page", path=path)
        assert (absent["code"], absent.get("details")) == ("page.not-found", None)
        for tool, arguments in (
            ("write_page", {"path": path, "content": "x", "if_version": "0" * 64}),
            ("move_page", {"path": "boiler", "to": path}),
        ):
            refused = refusal(relayed, tool, **arguments)
            assert refused["code"] in {"path.strict", "path.invalid", "path.closed"}, path
            assert "details" not in refused
    assert (root / ".obsidian/x.md").read_text() == "hidden\n"
    assert not (root.parent / "x.md").exists()


def test_fault_of_ours_is_told_without_its_words(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a tool error, the log has it all, and the connection stays."""
    relayed = agent(doors)

    def failing(*_: object, **__: object) -> None:
        raise KeyError("zyxsecret of a page")

    monkeypatch.setattr(read, "search", failing)
    result = relayed.call("search_memory", query="x")
    assert result["_meta"][ERROR]["code"] == "owner.fault"
    assert "zyxsecret" not in json.dumps(result)
    assert "zyxsecret" in caplog.text
    assert caplog.records[-1].levelno == logging.ERROR
    monkeypatch.undo()
    assert data(relayed, "search_memory", query="heat")["total"] == 1


def test_agents_are_not_told_where_on_the_disk_something_failed(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is enough."""

    def failing(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/home/sam/vault/secret.md")

    relayed = agent(doors)
    monkeypatch.setattr(read, "read_page", failing)
    result = relayed.call("read_page", path="boiler")
    assert result["_meta"][ERROR]["code"] == "owner.system"
    assert "Permission denied" in texts(result)
    assert "sam" not in json.dumps(result)


def test_names_that_are_no_utf8_do_not_break_an_answer(make_doors: Callable[..., Doors]) -> None:
    """Such a file may be passed over; the others are found."""
    doors = make_doors({"boiler.md": "heat"})
    odd = doors.opened.root / b"caf\xe9.md".decode("utf-8", "surrogateescape")
    try:
        odd.write_text("heat")
    except OSError:
        return  # a file system that has no such names
    doors.vault("POST", "rebuild")
    relayed = agent(doors)
    until(lambda: data(relayed, "search_memory", query="heat")["total"] >= 1)
    assert data(relayed, "list_pages")["total"] >= 1
    assert doors.vault("GET", "pages").status == 200

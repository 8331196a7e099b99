"""What clients send as arguments: plausible forms are taken, everything else is refused with a hint."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.errors import Usage
from pcpd.mcp_server import arguments
from pcpd.mcp_server.tools import TOOLS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


@pytest.mark.parametrize("value", [10, "10", " 10 ", 10.0, "10.0"])
def test_number_is_a_number_however_it_is_written(value: Any) -> None:
    """As text, or with a decimal point."""
    assert arguments.number({"limit": value}, "limit", 5) == 10


@pytest.mark.parametrize("value", [None, ""])
def test_number_that_is_left_out_has_its_default(value: Any) -> None:
    """Null and nothing are the same."""
    assert arguments.number({"limit": value}, "limit", 5) == arguments.number({}, "limit", 5) == 5


@pytest.mark.parametrize(
    "value", [True, "ten", -1, "-1", 1.5, "1.5", [], {}, [10], "9" * 30, float("inf"), "\u0661"]
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    """With the argument's name and what it should be."""
    with pytest.raises(Usage, match="`limit` must be a whole number") as refused:
        arguments.number({"limit": value}, "limit", 5)
    assert (refused.value.code, bool(refused.value.hint)) == ("tool.argument", True)


def test_number_over_the_most_is_the_most() -> None:
    """And one under the least is refused."""
    assert arguments.number({"limit": 10**15}, "limit", 5, most=100) == 100
    with pytest.raises(Usage):
        arguments.number({"limit": 0}, "limit", 5, least=1)


@pytest.mark.parametrize(
    ("value", "tags"),
    [(["a", "b"], ["a", "b"]), ('["a", "b"]', ["a", "b"]), ("a, b", ["a", "b"]), ("a", ["a"]), ("", []), ([], []),
     ([2024, "a"], ["2024", "a"]), (' ["a"] ', ["a"]), ("[a, b]", ["[a", "b]"]), (["", " a "], ["a"]), (None, None)],
)  # fmt: skip
def test_list_of_texts_is_taken_in_any_plausible_form(value: Any, tags: Any) -> None:
    """As a list, as JSON text, or with commas."""
    assert arguments.texts({"tags": value}, "tags") == tags


@pytest.mark.parametrize("value", [5, {"a": 1}, [["a"]], [None], [True], '[["a"]]', '[{"a": 1}]'])
def test_what_is_no_list_of_texts_is_refused(value: Any) -> None:
    """Nothing is guessed into it."""
    with pytest.raises(Usage, match="`tags` must be a list of strings"):
        arguments.texts({"tags": value}, "tags")


def test_text_may_be_a_number_and_nothing_else() -> None:
    """A title such as 2024."""
    assert arguments.text({"query": 2024}, "query") == "2024"
    for value in (None, True, ["a"], {"a": 1}):
        with pytest.raises(Usage):
            arguments.text({"query": value}, "query")
    with pytest.raises(Usage, match="`query` is missing"):
        arguments.text({}, "query")


def test_unknown_argument_is_named_and_so_are_those_there_are() -> None:
    """What it meant would be lost; a long name is not quoted whole."""
    with pytest.raises(Usage) as refused:
        arguments.check_names({"limit": 1, "x" * 10_000: 2}, ("query", "limit"))
    assert "query, limit" in refused.value.hint
    assert len(refused.value.message) < 200


@given(value=VALUES)
def test_whatever_comes_is_taken_or_refused(value: Any) -> None:
    """Never another error."""
    given_ = {"x": value}
    for take in (
        lambda: arguments.number(given_, "x", 1),
        lambda: arguments.texts(given_, "x"),
        lambda: arguments.optional(given_, "x"),
    ):
        with contextlib.suppress(Usage):
            take()


def test_schemas_are_flat_objects() -> None:
    """No nesting, no references: some clients understand nothing else."""
    for tool in TOOLS:
        schema = tool.schema
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])
        for argument in schema["properties"].values():
            assert argument["type"] in {"string", "integer", "array"}
            assert set(argument) <= {"type", "description", "default", "minimum", "maximum", "enum", "items"}
            assert argument.get("items", {"type": "string"}) == {"type": "string"}

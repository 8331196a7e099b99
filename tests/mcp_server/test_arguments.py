"""What clients send as arguments: plausible forms are taken, everything else is refused with a hint."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.errors import Usage
from pcpd.mcp_server import arguments

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
        arguments.named({"limit": 1, "x" * 10_000: 2}, ("query", "limit"))
    assert "query, limit" in refused.value.hint
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(("wrong", "known", "meant"), [
    ("qurey", ("query",), "query"), ("Limit", ("limit",), "limit"), ("top_k", ("limit", "query"), "limit"),
    ("version", ("path", "if_version"), "if_version"), ("operation", ("op",), "op"), ("new_path", ("path", "to"), "to"),
])  # fmt: skip
def test_what_may_have_been_meant_is_asked(wrong: str, known: tuple[str, ...], meant: str) -> None:
    """By its sound, or by what other servers call it."""
    with pytest.raises(Usage) as refused:
        arguments.named({wrong: 1}, known)
    assert refused.value.hint.startswith(f"did you mean `{meant}`?")


def test_nothing_is_asked_where_nothing_is_near() -> None:
    """The names that there are follow."""
    with pytest.raises(Usage) as refused:
        arguments.named({"zyx": 1}, ("path",))
    assert refused.value.hint == "it has: path"


def test_other_names_are_taken_where_they_can_mean_but_one() -> None:
    """Not where both are there, nor where the tool has an argument of that name."""
    assert arguments.named({"q": "heat"}, ("query",)) == {"query": "heat"}
    assert arguments.named({"file": "a", "text": "b"}, ("path", "content")) == {"path": "a", "content": "b"}
    assert arguments.named({"page": "a", "path": None}, ("path",)) == {"path": "a"}
    assert arguments.named({"text": "b"}, ("content", "text")) == {"text": "b"}
    for both in ({"q": "a", "query": "b"}, {"file": "a", "page": "b"}):
        with pytest.raises(Usage):
            arguments.named(both, ("query", "path"))


def test_arguments_that_came_are_left_as_they_were() -> None:
    """They are the client's."""
    given_ = {"q": "heat"}
    arguments.named(given_, ("query",))
    assert given_ == {"q": "heat"}


@pytest.mark.parametrize(("said", "path"), [
    ("notes/boiler", "notes/boiler"), (" notes/boiler\n", "notes/boiler"), ("/notes/boiler", "notes/boiler"),
    ("notes/boiler.md", "notes/boiler.md"), ("[[a/b]]", "a/b"), ("![[a/b|words]]", "a/b"), ("[[ a/b#H ]]", "a/b"),
    ("pcp://page/a%20b/%C3%A9", "a b/é"), ("PCP://page/a", "a"), ("pcp://page/100%25", "100%"), ("pcp://page/", None),
    ("pcp://page/a?b#c", "a?b#c"), ("[[a]] and [[b]]", "[[a]] and [[b]]"), ("[a](b.md)", "[a](b.md)"), ("//a", "/a"),
    ("/", None), ("", None), (None, None), (2024, "2024"), ("100%25", "100%25"), ("..", ".."),
])  # fmt: skip
def test_a_path_is_taken_as_files_links_and_addresses_have_it(said: Any, path: str | None) -> None:
    """Decoded once where it is an address, and not at all where it is none."""
    assert arguments.optional_page({"path": said}) == path


def test_a_path_that_is_missing_is_said_to_be() -> None:
    """Whatever form nothing has."""
    for said in ({}, {"path": ""}, {"path": "/"}, {"path": "  "}, {"path": None}):
        with pytest.raises(Usage, match="`path` is missing"):
            arguments.page(said)


@pytest.mark.parametrize(("value", "truth"), [
    (True, True), ("true", True), ("True", True), (1, True), ("1", True), ("yes", True), (False, False),
    ("false", False), (0, False), ("no", False), ("", False), (None, False),
])  # fmt: skip
def test_a_truth_value_is_one_however_it_is_written(value: Any, truth: bool) -> None:
    """As text or number."""
    assert arguments.truth({"outline": value}, "outline") is truth


@pytest.mark.parametrize("value", ["perhaps", 2, -1, [], {}, [True], "truefalse", 0.5])
def test_what_is_no_truth_value_is_refused(value: Any) -> None:
    """With the argument's name."""
    with pytest.raises(Usage, match="`outline` must be true or false"):
        arguments.truth({"outline": value}, "outline")


def test_a_choice_is_one_of_its_options() -> None:
    """Case and hyphens do not matter."""
    for said in ("set_key", "SET-KEY", " set_key "):
        assert arguments.choice({"op": said}, "op", ("append", "set_key")) == "set_key"
    wrong: list[Any] = ["set", "", None, 1, ["append"]]
    for each in wrong:
        with pytest.raises(Usage, match="`op`"):
            arguments.choice({"op": each}, "op", ("append", "set_key"))


@pytest.mark.parametrize(("said", "version"), [
    ("abc", "abc"), (' "abc" ', "abc"), ("", None), ('""', None), (None, None), (0, "0"),
    ("null", None), ("None", None),
])  # fmt: skip
def test_a_version_is_taken_without_its_quotes(said: Any, version: str | None) -> None:
    """As entity tags have them; null written as a word is none."""
    assert arguments.version({"if_version": said}) == version


def test_a_cursor_that_is_null_is_none() -> None:
    """However null is written."""
    for said in (None, "", " ", "null", "None", "NULL"):
        assert arguments.cursor_of({"cursor": said}) is None
    assert arguments.cursor_of({"cursor": " abc "}) == "abc"


@given(value=VALUES)
def test_whatever_comes_is_taken_or_refused(value: Any) -> None:
    """Never another error."""
    given_ = {"x": value}
    for take in (
        lambda: arguments.number(given_, "x", 1),
        lambda: arguments.texts(given_, "x"),
        lambda: arguments.optional(given_, "x"),
        lambda: arguments.optional_page(given_, "x"),
        lambda: arguments.version(given_, "x"),
        lambda: arguments.truth(given_, "x"),
        lambda: arguments.choice(given_, "x", ("a", "b")),
        lambda: arguments.named(given_, ("y",)),
    ):
        with contextlib.suppress(Usage):
            take()

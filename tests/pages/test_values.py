"""Values: what `--set` takes, and how each value is written so that every YAML reads it back."""

import pytest

from pcpd.errors import Invalid, Usage
from pcpd.pages.values import Plain, Value, as_meant, parse_assignment, written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("3", 3),
        ("-7", -7),
        ("0", 0),
        ("true", True),
        ("false", False),
        ("null", None),
        ("[a, b]", ["a", "b"]),
        ("[a, 3, '3', no]", ["a", 3, "3", "no"]),
        ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
        ("[]", []),
        ('"3"', "3"),
        ("'it''s'", "it's"),
        ('"a\\nb"', "a\nb"),
        ("", ""),
        ("plain words", "plain words"),
        (" spaces ", " spaces "),
        ("no", "no"),
        ("~", "~"),
        ("True", "True"),
        ("012", "012"),
        ("1e3", "1e3"),
        ("0x1F", "0x1F"),
        ("12:30:45", "12:30:45"),
        ("2026-02-30", "2026-02-30"),
        ("a=b", "a=b"),
        ("a: b", "a: b"),
        ("[[Page]]", "[[Page]]"),
        ("[open", "[open"),
        ("[a] and b", "[a] and b"),
        ("- x", "- x"),
        ("&a", "&a"),
        ("知識", "知識"),
    ],
)
def test_set_takes_what_a_value_looks_like(text: str, value: Value) -> None:
    """Numbers, truth values, lists, quoted texts; anything else is a text as it stands."""
    key, found = parse_assignment(f"key={text}")
    assert key == "key"
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["1.10", "0.50", "-2.0", "2026-01-05", "2026-01-05T10:00:00Z"])
def test_set_keeps_the_spelling_of_dates_and_decimals(text: str) -> None:
    """They stand without quotes in the page, in just these letters."""
    _, value = parse_assignment(f"key={text}")
    if text == "-2.0":
        assert value == -2.0
    else:
        assert isinstance(value, Plain)
        assert value == text
    assert written(value) == text


@pytest.mark.parametrize("text", ["", "key", "=value", "  =x"])
def test_an_assignment_without_key_or_sign_is_refused(text: str) -> None:
    """With a hint how to write it."""
    with pytest.raises(Usage) as refused:
        parse_assignment(text)
    assert refused.value.code == "edit.assignment"


def test_an_assignment_may_name_a_nested_key() -> None:
    """Blanks around the key do not count."""
    assert parse_assignment(" source.client = x")[0] == "source.client"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain words, with (marks)!", "plain words, with (marks)!"),
        ("agent:claude", "agent:claude"),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("a#b", "a#b"),
        ("no", '"no"'),
        ("On", '"On"'),
        ("Null", '"Null"'),
        ("", '""'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("a:", '"a:"'),
        ("3", '"3"'),
        ("1e3", '"1e3"'),
        ("12:30", '"12:30"'),
        ("2026-01-05", '"2026-01-05"'),
        ("~", '"~"'),
        ("=", '"="'),
        ("@x", '"@x"'),
        ("[x", '"[x"'),
        ("%x", '"%x"'),
        ("'x'", "\"'x'\""),
        ('say "x"', 'say "x"'),
        ('"x"', '"\\"x\\""'),
        ("a\nb\tc", '"a\\nb\\tc"'),
        ("a\x85\u2028\ufeff\x07", '"a\\x85\\u2028\\uFEFF\\x07"'),
        ("知識 😀", "知識 😀"),
        (0.5, "0.5"),
        (1e-7, "1.0e-07"),
        (1e22, "1.0e+22"),
        (10**20, "100000000000000000000"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        (["a, b", "c:d", "e"], '["a, b", "c:d", e]'),
        (["what?", "why"], '["what?", why]'),
        ("what?", "what?"),
        ({"k: 1": {"no": ["x"]}}, '{"k: 1": {"no": [x]}}'),
        (("a", "b"), "[a, b]"),
    ],
)
def test_each_value_is_written_for_every_yaml(value: Value, text: str) -> None:
    """Quoted where YAML 1.1 or 1.2 would take it for something else, on one line."""
    assert written(value) == text


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_what_is_nested_deeper_than_front_matter_may_be_is_refused(depth: int) -> None:
    """However deep JSON brought it: it is refused where it is looked at first."""
    value: Value = []
    for _ in range(depth):
        value = [value]
    for look in (written, lambda deep: as_meant("x_key", deep)):
        with pytest.raises(Invalid) as refused:
            look(value)
        assert refused.value.code == "value.invalid"

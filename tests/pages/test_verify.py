"""The check of every edit: two parsers, the value that was meant, and nothing else."""

import pytest

from pcpd.errors import Invalid
from pcpd.pages.splice import Expected
from pcpd.pages.values import Plain, Value
from pcpd.pages.verify import check

BEFORE = "a: 1\nb: {c: x, d: y}\ne: [1]\n"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("a: 2\nb: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), 2)),
        ("a: 1\nb: {c: z, d: y}\ne: [1]\n", Expected("set", ("b", "c"), "z")),
        ("a: 1\nb: {c: x, d: y}\ne: [1]\nf: {g: no}\n", Expected("set", ("f",), {"g": Plain("no")})),
        ("a: 1\nb: {d: y}\ne: [1]\n", Expected("remove", ("b", "c"))),
        ("b: {c: x, d: y}\ne: [1]\n", Expected("remove", ("a",))),
        ("a: 1\nb: {c: x, d: y}\ne: [1, 2]\n", Expected("append", ("e",), 2)),
    ],
)
def test_an_edit_that_says_what_was_meant_passes(after: str, expected: Expected) -> None:
    """Set, removed or appended, at the top or nested."""
    check(BEFORE, after, expected)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("a: 2\nb: {c: x, d: y}\ne: [2]\n", Expected("set", ("a",), 2)),
        ("a: 2\ne: [1]\nb: {c: x, d: y}\n", Expected("set", ("a",), 2)),
        ("a: 2\nb: {c: x}\ne: [1]\n", Expected("set", ("a",), 2)),
        ("a: 2\nb: {c: x, d: y}\ne: [1]\nnew: 1\n", Expected("set", ("a",), 2)),
        ("a: '2'\nb: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), 2)),
        ("a: 2\nb: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), "2")),
        ("b: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), None)),
        (BEFORE, Expected("remove", ("a",))),
        ("a: 1\nb: {c: x, d: y}\ne: [2]\n", Expected("append", ("e",), 2)),
        ("a: 1\nb: {c: x, d: y}\ne: [1, '2']\n", Expected("append", ("e",), 2)),
        ("a: 1\nb: {c: x, d: y}\ne: []\n", Expected("append", ("e",), 2)),
        ("a: 1\nb: {c: x, d: y}\ne: [1\n", Expected("append", ("e",), 2)),
        ("a: 1\na: 2\nb: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), 2)),
        ("a: [[[" + "[" * 80 + "]" * 83 + "\nb: {c: x, d: y}\ne: [1]\n", Expected("set", ("a",), [])),
    ],
)
def test_an_edit_that_says_anything_else_is_refused(after: str, expected: Expected) -> None:
    """Another key changed, moved or lost, another type, twice, or no YAML at all."""
    with pytest.raises(Invalid) as refused:
        check(BEFORE, after, expected)
    assert refused.value.code == "page.edit-unsafe"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("12:30:45", "12:30:45"),
        ("1e3", "1e3"),
        ("0o7", "0o7"),
        ("1e3", 1000.0),
        ("012", 12),
        ("012", 10),
        ("yes", True),
        ("2026-01-05", "2026-01-05"),
    ],
)
def test_a_value_that_one_parser_reads_otherwise_is_refused(text: str, value: Value) -> None:
    """YAML 1.1 and 1.2 both count: `no` is a string to one alone, `1e3` to the other."""
    with pytest.raises(Invalid):
        check("a: 1\n", f"a: {text}\n", Expected("set", ("a",), value))

"""The keys that PCP knows: their values, and the problems of values that are of the wrong kind."""

import pytest

from pcpd.pages.page import Page, parse
from pcpd.pages.paths import PagePath

WHOLE = """---
id: 01J0000000
title: A title
type: procedural
tags: [tone, légal, 2026, no]
aliases: [other name]
updated: 2026-09-20T11:00:00Z
recorded_at: 2026-09-18T08:00:00+02:00
valid_from: 2026-01-05
valid_until: 2027-09-20 00:00:00
expires: 2030-01-01T00:00:00.5Z
partition: work
sensitivity: sensitive
importance: 0.5
confidence: 1
lifecycle: stale
review: {state: approved, verified: [{by: "human:lee", at: 2026-09-20T11:00:00Z}]}
source: {origin: agent, principal: "agent:draftbot/2", at: 2026-09-18T07:59:00Z}
x_other: {a: 1}
---
"""


def page(block: str) -> Page:
    """Parses a page that has `block` as front matter."""
    return parse(PagePath("p"), f"---\n{block}\n---\n".encode())


def test_every_key_is_read() -> None:
    """Times come as UTC to the second, numbers as numbers, the rest as written."""
    found = parse(PagePath("p"), WHOLE.encode())
    assert found.problems == ()
    assert (found.id, found.title, found.type) == ("01J0000000", "A title", "procedural")
    assert (found.tags, found.aliases) == (("tone", "légal", "2026", "no"), ("other name",))
    assert (found.updated, found.recorded_at) == ("2026-09-20T11:00:00Z", "2026-09-18T06:00:00Z")
    assert (found.valid_from, found.valid_until) == ("2026-01-05T00:00:00Z", "2027-09-20T00:00:00Z")
    assert found.expires == "2030-01-01T00:00:00Z"
    assert (found.partition, found.sensitivity, found.lifecycle) == ("work", "sensitive", "stale")
    assert (found.importance, found.confidence) == (0.5, 1.0)
    assert (found.review_state, found.origin, found.author) == ("approved", "agent", "agent:draftbot/2")
    assert ("x_other.a", "1") in found.properties


def test_absent_and_empty_keys_mean_the_default() -> None:
    """`key:`, `~` and `null` are as if the key were not there."""
    empty = "\n".join(
        f"{key}:" for key in ("id", "title", "type", "tags", "updated", "partition", "sensitivity")
    )
    nulls = (
        "importance: ~\nlifecycle: null\nreview:\nsource: {origin: , principal: ~}\nrelations:\nderived_from:"
    )
    found = page(f"{empty}\n{nulls}")
    assert found.problems == ()
    assert (found.id, found.title, found.type, found.tags) == (None, "p", "semantic", ())
    assert (found.partition, found.sensitivity, found.lifecycle) == (None, "normal", "active")
    assert (found.updated, found.importance, found.review_state, found.origin) == (None, None, None, None)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("id: [a]", "key.type"),
        ("id: ' x'", "key.value"),
        ("title: [a]", "key.type"),
        ("title: {a: b}", "key.type"),
        ("type: note", "key.value"),
        ("type: [semantic]", "key.type"),
        ("tags: one", "key.type"),
        ("tags: {a: b}", "key.type"),
        ("tags: [a, [b]]", "key.type"),
        ("aliases: {a: b}", "key.type"),
        ("updated: 2026-02-30", "key.time"),
        ("updated: 2026-13-01T00:00:00Z", "key.time"),
        ("updated: 2026-01-01T25:00:00Z", "key.time"),
        ("updated: 12:30:45", "key.time"),
        ("updated: yesterday", "key.time"),
        ("updated: 2026-W01-1", "key.time"),
        ("updated: 20260105", "key.time"),
        ("expires: 0001-01-01T00:00:00+10:00", "key.time"),
        ("expires: [2026-01-01]", "key.type"),
        ("partition: Work", "key.value"),
        ("partition: [a, b]", "key.type"),
        ("partition: " + "a" * 65, "key.value"),
        ("sensitivity: secret", "key.value"),
        ("importance: 1.5", "key.value"),
        ("importance: -0.1", "key.value"),
        ("importance: high", "key.value"),
        ("importance: .nan", "key.value"),
        ("importance: '0.5'", "key.value"),
        ("importance: 0:30", "key.value"),
        ("confidence: [1]", "key.type"),
        ("lifecycle: new", "key.value"),
        ("review: approved", "key.type"),
        ("review: {state: maybe}", "key.value"),
        ("review: {state: [x]}", "key.type"),
        ("source: user", "key.type"),
        ("source: {origin: moon}", "key.value"),
        ("source: {principal: [x]}", "key.type"),
        ("relations: about", "key.type"),
        ("relations: [about]", "key.type"),
        ("relations: [{rel: about}]", "key.value"),
        ("relations: [{rel: likes, target: x}]", "key.value"),
        ("relations: [{rel: about, target: [x]}]", "key.type"),
        ("derived_from: x", "key.type"),
        ("derived_from: [[x]]", "key.type"),
        ("<<: {type: semantic}", "key.merge"),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_problem_with_its_line(line: str, code: str) -> None:
    """One problem, at the line of the value; the other keys of the page still hold."""
    found = page(
        f"title: T\n{line}\npartition: work"
        if not line.startswith(("title", "partition"))
        else f"x: 1\n{line}"
    )
    assert [(problem.code, problem.line) for problem in found.problems] == [(code, 3)]
    if not line.startswith(("title", "partition")):
        assert (found.title, found.partition) == ("T", "work")


def test_one_string_where_a_list_belongs_still_counts() -> None:
    """`tags: one` is shown as a problem, and the tag is found all the same; `aliases` may be one string."""
    assert page("tags: one").tags == ("one",)
    assert page("aliases: one").aliases == ("one",)
    assert page("aliases: one").problems == ()


def test_empty_entries_of_lists_are_left_out() -> None:
    """A dash with nothing behind it, or an empty string, is no tag."""
    assert page("tags:\n  - a\n  -\n  - ''").tags == ("a",)
    assert page("relations:\n  -\nderived_from: [a, ]").problems == ()


def test_an_unknown_relation_keeps_its_edge() -> None:
    """The person's word stays in the graph, with the problem beside it."""
    found = page("relations: [{rel: likes, target: x}]")
    assert [(link.rel, link.target) for link in found.links] == [("likes", "x")]


def test_numbers_of_absurd_size_are_problems_not_exceptions() -> None:
    """Ten thousand digits, a huge exponent."""
    for text in ("9" * 10_000, "1e999", "0." + "1" * 10_000, "1e99999999999"):
        assert [problem.code for problem in page(f"importance: {text}").problems] == ["key.value"]

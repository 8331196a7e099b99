"""Bounds on hostile YAML: size, depth, expansion, encoding; each is an answer, never a crash."""

import pytest

from pcpd.errors import Invalid
from pcpd.policy.grants import Access, parse_access

BOMB = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    f"{chr(n)}: &{chr(n)} [{', '.join([f'*{chr(n - 1)}'] * 10)}]\n".encode()
    for n in range(ord("b"), ord("h"))
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x" * (1024 * 1024 + 1), "larger than 1024 KiB"),
        (b"[" * 500_000, "nest"),
        (b"a: " + b"[" * 50 + b"]" * 50, "nested deeper than 12"),
        (b"- " * 300 + b"x", "nested deeper than 12"),
        (b"{a: " * 300, "nested deeper than 12"),
        (BOMB, "expand"),
        (b"grants: &a [*a]\n", "expand"),
        (b"&a {*a : 1}\n", "expand"),
        (b"grants: [*nobody]\n", "undefined alias"),
        (b"a: 1\n--- \nb: 2\n", "second document"),
        (b"grants:\n\t- x\n", "cannot start any token"),
        (b"grants: \xff\n", "not UTF-8 at byte 8"),
        (b"grants: '\x00'\n", "control characters"),
        (b"grants: '\x07'\n", "control characters"),
        (b"- a\n", "keys and values"),
        (b"word\n", "keys and values"),
        (b"? [a, b]\n: 1\n", "one word"),
        (b"%YAML 9.9\n---\ngrants: []\n", "incompatible"),
    ],
)
def test_hostile_bytes_are_an_answer(data: bytes, said: str) -> None:
    """Each names what is wrong; none takes long, much memory or the process."""
    with pytest.raises(Invalid) as caught:
        parse_access(data)
    assert said in caught.value.message
    assert caught.value.message.startswith("access.yaml: line ")


def test_a_bound_is_not_in_the_way_of_what_people_write() -> None:
    """A thousand grants, and anchors that save typing, are fine."""
    line = "  - {principal: agent:a, partitions: [work], categories: [semantic], rights: [read]}\n"
    assert len(parse_access(("grants:\n" + line * 1000).encode()).grants) == 1000
    shared = b"""\
grants:
  - {principal: agent:a, partitions: &all [work, home], categories: [semantic], rights: [read]}
  - {principal: agent:b, partitions: *all, categories: [semantic], rights: [read]}
"""
    assert [grant.partitions for grant in parse_access(shared).grants] == [("work", "home")] * 2


def test_a_tag_makes_no_object() -> None:
    """Tags are not resolved: the text is what is written."""
    with pytest.raises(Invalid):
        parse_access(b"grants: !!python/object/apply:os.system [echo]\n")
    assert parse_access(b"grants: !!set\n") == Access()


def test_messages_are_bounded_and_without_control_characters() -> None:
    """What is quoted from a stranger's file cannot flood or steer a terminal."""
    long = "x" * 200
    item = f'  - {{principal: "{long}\\e[2J", partitions: 1}}\n'
    with pytest.raises(Invalid) as caught:
        parse_access(("grants:\n" + item * 3000).encode())
    assert len(caught.value.message) < 20_000
    assert "\x1b" not in caught.value.message
    assert "and 11950 more" in caught.value.message
    assert isinstance(caught.value.details["problems"], list)
    assert len(caught.value.details["problems"]) == 50

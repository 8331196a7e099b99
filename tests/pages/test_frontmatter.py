"""Editing front matter: the diff shows the lines of the key and nothing else, or the edit is refused."""

import pytest

from pcpd.errors import Invalid, NotFound, PcpError
from pcpd.pages import frontmatter
from pcpd.pages.frontmatter import Plain, Value, append_item, read, remove_key, set_key, split
from pcpd.pages.nodes import SIZE_LIMIT

PAGE = b"""\xef\xbb\xbf---
# my page
title:   "A: b"   # why
id: 01234567890123456789012345
lang: no
ver: 1.10
tags: [ b,a , "c" ]
when: 2026-01-05

long: this is a very long plain scalar that any dumper would fold at eighty columns because it is long
blk: # on the key
  - x # c1
  - "y" # c2
# before lit
lit: |  # header
  text

nums: {a: 1, b: no}
map:
  k: v # kept
  # between
  l: w
end:
---

Body@@
---
not front matter
""".replace(b"@", b" ").replace(b"\n", b"\r\n")


def diff(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Gives the lines that went and the lines that came, and asserts that all others stayed in order."""
    old, new = before.decode().split("\n"), after.decode().split("\n")
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return (
        [line.removesuffix("\r") for line in old[head : len(old) - tail]],
        [line.removesuffix("\r") for line in new[head : len(new) - tail]],
    )


@pytest.mark.parametrize(
    ("key", "value", "gone", "come"),
    [
        ("importance", 0.5, [], ["importance: 0.5"]),
        ("title", "no", ['title:   "A: b"   # why'], ['title:   "no"   # why']),
        ("title", "x\ny", ['title:   "A: b"   # why'], ['title:   "x\\ny"   # why']),
        ("lang", "012", ["lang: no"], ['lang: "012"']),
        ("lang", True, ["lang: no"], ["lang: true"]),
        ("lang", None, ["lang: no"], ["lang: null"]),
        ("ver", Plain("1.20"), ["ver: 1.10"], ["ver: 1.20"]),
        ("when", "2026-01-06", ["when: 2026-01-05"], ['when: "2026-01-06"']),
        ("when", Plain("2026-01-06"), ["when: 2026-01-05"], ["when: 2026-01-06"]),
        ("updated", "2026-01-05T10:00:00Z", [], ["updated: 2026-01-05T10:00:00Z"]),
        ("updated", "some day", [], ["updated: some day"]),
        ("confidence", "0.50", [], ["confidence: 0.50"]),
        ("confidence", "high", [], ["confidence: high"]),
        ("tags", ["x"], ['tags: [ b,a , "c" ]'], ["tags: [x]"]),
        ("tags", [], ['tags: [ b,a , "c" ]'], ["tags: []"]),
        ("blk", ["x", "z"], ['  - "y" # c2'], ["  - z"]),
        ("blk", ["x", "y", "z"], [], ["  - z"]),
        ("blk", ["w", "x", "y"], [], ["  - w"]),
        ("blk", ["x", "no", "y"], [], ['  - "no"']),
        ("blk", ["y"], ["  - x # c1"], []),
        ("blk", [3], ["  - x # c1", '  - "y" # c2'], ["  - 3"]),
        ("blk", "s", ["blk: # on the key", "  - x # c1", '  - "y" # c2'], ["blk: s # on the key"]),
        ("lit", "s", ["lit: |  # header", "  text"], ["lit: s  # header"]),
        ("nums.a", "x, y", ["nums: {a: 1, b: no}"], ['nums: {a: "x, y", b: no}']),
        ("nums.c", 3, ["nums: {a: 1, b: no}"], ["nums: {a: 1, b: no, c: 3}"]),
        ("map.k", "z", ["  k: v # kept"], ["  k: z # kept"]),
        ("map.new", [1], [], ["  new: [1]"]),
        ("map", {"q": 1}, ["map:", "  k: v # kept", "  # between", "  l: w"], ["map: {q: 1}"]),
        ("end", 1, ["end:"], ["end: 1"]),
        ("end.a.b", 1, ["end:"], ["end: {a: {b: 1}}"]),
        ("a.b", 1, [], ["a: {b: 1}"]),
        ("source", {"at": "2026-01-05T10:00:00Z"}, [], ["source: {at: 2026-01-05T10:00:00Z}"]),
    ],
)
def test_setting_a_key_changes_its_lines_alone(
    key: str, value: Value, gone: list[str], come: list[str]
) -> None:
    """BOM, CRLF, comments, quotes, odd scalars and spacing of everything else stay."""
    after = set_key(PAGE, key, value)
    assert after.count(b"\r\n") == after.count(b"\n")
    assert diff(PAGE, after) == (gone, come)


@pytest.mark.parametrize(
    ("key", "value", "gone", "come"),
    [
        ("tags", "d e", ['tags: [ b,a , "c" ]'], ['tags: [ b,a , "c", d e ]']),
        ("blk", "12:30:45", [], ['  - "12:30:45"']),
        ("end", "x", ["end:"], ["end: [x]"]),
        ("new", {"a": 1}, [], ["new: [{a: 1}]"]),
        ("map.new", "x", [], ["  new: [x]"]),
    ],
)
def test_appending_keeps_the_style_of_the_list(
    key: str, value: Value, gone: list[str], come: list[str]
) -> None:
    """Flow lists with their spacing, block lists with their indent; a missing list is made."""
    assert diff(PAGE, append_item(PAGE, key, value)) == (gone, come)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k: []", "k: [v]"),
        ("k: [ ]", "k: [ v]"),
        ("k: [a,]", "k: [a, v,]"),
        ("k: [a,\n    # why\n  b # last\n  ]", "k: [a,\n    # why\n  b, v # last\n  ]"),
        ("k:\n- a", "k:\n- a\n- v"),
        ("k:\n    -   a # c\n# end", "k:\n    -   a # c\n    -   v\n# end"),
        ("k:\n  - |\n    text\n\nx: 1", "k:\n  - |\n    text\n  - v\n\nx: 1"),
        ("k:\n  -\n  - b", "k:\n  -\n  - b\n  - v"),
        ("k:\n  -", "k:\n  -\n  - v"),
        ("k: &anchor\n  - a", "k: &anchor\n  - a\n  - v"),
        ("k: !!seq\n- a", "k: !!seq\n- a\n- v"),
        ("k: # c", "k: [v] # c"),
        ("k: ~ # c", "k: [v] # c"),
        ("k: null", "k: [v]"),
        ("m:\n  k:\n  - a\n  l: 1", "m:\n  k:\n  - a\n  - v\n  l: 1"),
    ],
)
def test_appending_to_each_style_of_list(before: str, after: str) -> None:
    """What was empty becomes a flow list; nothing else moves."""
    key = "m.k" if before.startswith("m:") else "k"
    assert append_item(f"---\n{before}\n---\n".encode(), key, "v") == f"---\n{after}\n---\n".encode()


def test_appending_a_map_to_a_list_of_maps_takes_its_style() -> None:
    """Relations written as a block get the next one as a block."""
    page = b"---\nrelations:\n  - rel: about\n    target: a\n---\n"
    new: Value = {"rel": "refines", "target": "b/c"}
    after = append_item(page, "relations", new)
    assert append_item(page.replace(b"\n", b"\r\n"), "relations", new) == after.replace(b"\n", b"\r\n")
    assert (
        after == b"---\nrelations:\n  - rel: about\n    target: a\n  - rel: refines\n    target: b/c\n---\n"
    )


@pytest.mark.parametrize("block", ["k: a", "k: {a: 1}", "k:\n  a: 1", "k: 'x'", "k: ''", "k: |\n  x"])
def test_appending_to_what_is_no_list_is_refused(block: str) -> None:
    """A text is never turned into a list by an append."""
    with pytest.raises(Invalid) as refused:
        append_item(f"---\n{block}\n---\n".encode(), "k", "v")
    assert refused.value.code == "key.type"


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("title", ['title:   "A: b"   # why']),
        ("blk", ["blk: # on the key", "  - x # c1", '  - "y" # c2']),
        ("lit", ["lit: |  # header", "  text"]),
        ("map.k", ["  k: v # kept"]),
        ("map", ["map:", "  k: v # kept", "  # between", "  l: w"]),
        ("end", ["end:"]),
    ],
)
def test_removing_a_key_takes_its_lines_and_leaves_other_comments(key: str, gone: list[str]) -> None:
    """Comments above the key and blank lines after it are not its own."""
    assert diff(PAGE, remove_key(PAGE, key)) == (gone, [])


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("k: {a: 1, b: 2, c: 3}", "k.a", "k: {b: 2, c: 3}"),
        ("k: {a: 1, b: 2, c: 3}", "k.b", "k: {a: 1, c: 3}"),
        ("k: {a: 1, b: 2, c: 3}", "k.c", "k: {a: 1, b: 2}"),
        ("k: {a: 1}", "k.a", "k: {}"),
        ("k:\n  a: 1\nl: 2", "k.a", "k: {}\nl: 2"),
        ("k: |+\n  text\n\n\nl: 2", "k", "l: 2"),
        ("k: one\n  two # c\n# l\nl: 2", "k", "# l\nl: 2"),
        ("a.b: 1\na: {b: 2}", "a.b", "a: {b: 2}"),
        ("{a: 1, b: 2}", "a", "{b: 2}"),
        ("? k\n: v\nl: 2", "k", "l: 2"),
        ("&x k: v\nl: 2", "k", "l: 2"),
    ],
)
def test_removing_from_each_style(before: str, key: str, after: str) -> None:
    """Flow maps lose one comma; a map that would be left without keys says that it is empty."""
    assert remove_key(f"---\n{before}\n---\nx".encode(), key) == f"---\n{after}\n---\nx".encode()


def test_the_last_key_leaves_an_empty_block() -> None:
    """The fences are the person's and stay."""
    assert remove_key(b"---\na: 1\n---\nx", "a") == b"---\n---\nx"


def test_removing_a_key_that_is_not_there_is_not_found() -> None:
    """Also in a page without front matter."""
    for page in (PAGE, b"", b"text"):
        with pytest.raises(NotFound) as refused:
            remove_key(page, "nope.nope")
        assert refused.value.code == "page.key-not-found"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"---\na: b\n---\n"),
        (b"text", b"---\na: b\n---\ntext"),
        (b"\xef\xbb\xbf# H\r\ntext\r\n", b"\xef\xbb\xbf---\r\na: b\r\n---\r\n# H\r\ntext\r\n"),
        (b"\n---\nrule\n", b"---\na: b\n---\n\n---\nrule\n"),
        (b"---\n---", b"---\na: b\n---"),
        (b"---\n# only this\n---\n", b"---\n# only this\na: b\n---\n"),
        (b"--- \nx: 1\n---  \ny", b"--- \nx: 1\na: b\n---  \ny"),
        (b"---\nx: |+\n  t\n\n---\n", b"---\nx: |+\n  t\n\na: b\n---\n"),
        (b"---\n  x: 1\n  y: 2\n---\n", b"---\n  x: 1\n  y: 2\n  a: b\n---\n"),
        (b"---\n{x: 1}\n---\n", b"---\n{x: 1, a: b}\n---\n"),
        (b"---\n{}\n---\n", b"---\n{a: b}\n---\n"),
    ],
)
def test_a_missing_key_is_added_at_the_end_of_the_block(before: bytes, after: bytes) -> None:
    """A page without front matter gets a block on top, in its own line ends, after its BOM."""
    assert set_key(before, "a", "b") == after
    assert set_key(after, "a", "b") == after


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: b", "b"),
        ("a: 'b'", "b"),
        ("a: >-\n  b", "b"),
        ("a: 0.50", 0.5),
        ("a: 3", 3),
        ("a: [ b ]", ["b"]),
        ("a: &x b\nc: *x", "b"),
    ],
)
def test_a_value_that_is_there_already_changes_nothing(text: str, value: Value) -> None:
    """The person's spelling of the same value and type stays."""
    page = f"---\n{text}\n---\n".encode()
    if "&x" in text:
        with pytest.raises(Invalid):
            set_key(page, "a", "other")
        assert set_key(page, "c", value) == page
    else:
        assert set_key(page, "a", value) == page


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("3", "3"),
        ("0.5", "0.5"),
        ("012", 10),
        ("012", 12),
        ("1_0", 10),
        ("yes", True),
        ("\n- no", ["no"]),
    ],
)
def test_a_value_that_only_one_parser_would_read_is_written_out(text: str, value: Value) -> None:
    """`no` is a string to one parser and a truth value to the other: set to a string, it gets quotes."""
    page = f"---\na: {text}\n---\n".encode()
    assert set_key(page, "a", value) != page


@pytest.mark.parametrize(
    ("block", "edit"),
    [
        ("a: &x [1]\nb: *x", lambda page: append_item(page, "a", 2)),
        ("a: &x 1\nb: *x", lambda page: set_key(page, "a", 2)),
        ("a: &x 1\nb: *x", lambda page: remove_key(page, "a")),
        ("a: {c: &x 1}\nb: [*x]", lambda page: set_key(page, "a", 2)),
        ("a: &x {c: 1}\nb: *x", lambda page: set_key(page, "a.c", 2)),
        ("a: &x {c: 1}\nb: *x", lambda page: set_key(page, "a.d", 2)),
        ("&x a: 1\nb: *x", lambda page: remove_key(page, "a")),
    ],
)
def test_what_an_alias_repeats_is_not_edited(block: str, edit: object) -> None:
    """The other place would change, or lose its anchor."""
    page = f"---\n{block}\n---\n".encode()
    with pytest.raises(Invalid) as refused:
        edit(page)  # type: ignore[operator]
    assert refused.value.code == "page.anchor"


def test_the_place_of_an_alias_can_be_edited() -> None:
    """Only the alias goes; the anchor and its value stay."""
    assert set_key(b"---\na: &x [1]\nb: *x # c\n---\n", "b", 2) == b"---\na: &x [1]\nb: 2 # c\n---\n"
    assert remove_key(b"---\na: &x 1\nb: *x\n---\n", "b") == b"---\na: &x 1\n---\n"
    with pytest.raises(Invalid):
        append_item(b"---\na: &x [1]\nb: *x\n---\n", "b", 2)
    with pytest.raises(Invalid):
        set_key(b"---\na: &x {c: 1}\nb: *x\n---\n", "b.c", 2)


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b"])
def test_a_key_without_a_name_is_refused(key: str) -> None:
    """An empty key or segment is no key."""
    with pytest.raises(PcpError):
        set_key(b"text", key, 1)


def test_a_key_inside_a_value_that_is_no_map_is_refused() -> None:
    """A text or a list has no keys."""
    for block in ("a: text", "a: [1]", "a:\n  - b: 1"):
        with pytest.raises(Invalid) as refused:
            set_key(f"---\n{block}\n---\n".encode(), "a.b", 1)
        assert refused.value.code == "key.type"


def test_tabs_between_key_and_value_do_not_stop_an_edit() -> None:
    """YAML allows them, one of the parsers does not: it then reads them as blanks."""
    assert set_key(b"---\na:\tb\t# c\nd:\t1\n---\n", "a", "x") == b"---\na:\tx\t# c\nd:\t1\n---\n"


def test_an_unclosed_block_is_never_edited() -> None:
    """A second block on top would make text of the person's keys."""
    for page in (b"---\na: 1\n", b"---", b"---\na: 1\n...\ntext"):
        with pytest.raises(Invalid) as refused:
            set_key(page, "a", 1)
        assert refused.value.code == "page.front-matter"
        assert refused.value.details["line"] == 1


def test_an_edit_that_would_grow_past_the_bounds_is_refused() -> None:
    """The page stays readable: front matter has a size, and so has a page."""
    with pytest.raises(Invalid) as refused:
        set_key(b"---\na: 1\n---\n", "b", "x" * SIZE_LIMIT)
    assert refused.value.code == "page.edit-unsafe"
    full = b"x" * (10 * 1024 * 1024)
    with pytest.raises(Invalid) as refused:
        set_key(full, "b", "x")
    assert refused.value.code == "page.too-large"


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), "\ud800", {"a": "\udfff"}, {1: 2}, object(), 10**5000],
    ids=range(7),
)
def test_values_that_yaml_cannot_hold_are_refused(value: Value) -> None:
    """NaN, infinity, half a surrogate pair, keys that are no text."""
    with pytest.raises(Invalid) as refused:
        set_key(b"", "a", value)
    assert refused.value.code == "value.invalid"
    with pytest.raises(Invalid):
        frontmatter.new_page({"a": value}, "")


def test_values_that_nest_too_deep_are_refused() -> None:
    """No page is written that could not be read again."""
    value: Value = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(Invalid) as refused:
        set_key(b"", "a", value)
    assert refused.value.code == "value.invalid"


def test_new_lines_take_the_line_ends_that_most_of_the_page_has() -> None:
    """A page of mixed line ends keeps each as it is."""
    assert set_key(b"---\r\na: 1\r\n---\nb\n\n", "c", 2) == b"---\r\na: 1\r\nc: 2\n---\nb\n\n"
    assert set_key(b"---\r\na: 1\r\n---\r\nb\n", "c", 2) == b"---\r\na: 1\r\nc: 2\r\n---\r\nb\n"


def test_split_gives_both_parts_as_they_stand() -> None:
    """With the line on which the body starts, BOM and line ends."""
    block = split(PAGE)
    assert block.yaml is not None
    assert block.yaml.startswith("# my page\r\n")
    assert block.body.startswith("\r\nBody  \r\n---")
    assert (block.body_line, block.newline, block.has_bom) == (25, "\r\n", True)
    assert split(b"text") == frontmatter.Block(None, "text", 1, "\n", has_bom=False)
    assert split(b"").body == ""


def test_read_gives_json_types_and_keeps_every_spelling() -> None:
    """A number or truth value only where JSON writes the same letters."""
    block = "a: true|b: 3|c: 0.5|d: no|e: 012|f: 1.10|g: '3'|h: ~|i:|j: null|k: -0|l: 1e3|m: [True, -7]|"
    assert read(f"---|{block}---|".replace("|", "\n").encode()) == {
        "a": True, "b": 3, "c": 0.5, "d": "no", "e": "012", "f": "1.10", "g": "3", "h": "~", "i": None, "j": None,
        "k": "-0", "l": "1e3", "m": ["True", -7],
    }  # fmt: skip
    assert read(b"text") == {}
    assert read(b"---\n---\n") == {}
    assert read(b"---\nn: 12345678901234567890\nd: 2026-01-05\n---\n") == {
        "n": "12345678901234567890",
        "d": "2026-01-05",
    }


def test_what_was_read_can_be_set_again_without_a_change() -> None:
    """`read` tells plain scalars from quoted ones, so that a copy keeps dates and odd numbers as they were."""
    page = b"---\na: 2026-01-05\nb: 012\nc: no\nd: '012'\ne: [1.10, x]\nf: ~\n---\n"
    for key, value in read(page).items():
        assert set_key(page, key, value) == page
    assert (
        frontmatter.new_page(read(page), "")
        == b'---\na: 2026-01-05\nb: 012\nc: no\nd: "012"\ne: [1.10, x]\nf: ~\n---\n'
    )


def test_a_template_page_is_edited_beside_its_braces() -> None:
    """Keys of a template can be set, and its title too."""
    page = b"---\ntitle: {{title}}\ntype: x\n---\n"
    assert set_key(page, "type", "z") == b"---\ntitle: {{title}}\ntype: z\n---\n"
    assert read(page) == {"title": "{{title}}", "type": "x"}
    assert set_key(page, "title", "z") == b"---\ntitle: z\ntype: x\n---\n"

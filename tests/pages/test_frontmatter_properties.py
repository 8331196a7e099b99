"""Edits of generated front matter: all bytes but the key's stay, and two parsers read what was meant.

The YAML is put together from the ways in which people write it: comments, anchors, flow and block style,
quotes, CRLF, BOM, tabs, no final newline, CJK, emoji, dates and numbers that mean something else elsewhere.
"""

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pcpd.errors import Invalid
from pcpd.pages import frontmatter
from pcpd.pages.frontmatter import Value

SCALARS = [
    "no", "on", "~", "", "012", "0x1F", "1_000", "1e3", "1.10", "12345678901234567890", "2026-01-05",
    "2026-01-05T10:00:00Z", "12:30:45", "true", "3", "0.5", "null", "plain words", "caf\u00e9 \u77e5\u8b58 \U0001f600",
    "a #b", "x: y".replace(": ", ":"), "'single ''quoted'' # no comment'", '"double \\"q\\" \\t: x"', "'no'",
    '"012"', "plain\n    over two lines", "'quoted\n\n    over lines'", "-1", "=", ".5", "http://x.example/a?b#c",
    "!x tagged", "a\tb",
]  # fmt: skip
BLOCKS = [
    "|\n  text\n   more\n",
    "|-\n  text\n",
    "|+\n  text\n\n\n# end\n",
    ">-\n  folded\n  text\n",
    "|2\n    kept\n",
]
LISTS = ['[ b,a , "c" ]', "[]", "[ ]", "[a,\n  b, # why\n  c\n  ]", "[no, 012, '1.10']", "[a,]"]
BLOCK_LISTS = [
    "- a\n- b\n",
    '  - a\n  - "b" # note\n',
    "  -   wide\n  -   gap\n",
    "  -\n  - x\n",
    "- k: v\n  l: w\n",
]
MAPS = ["{a: 1, b: no}", "{}", "{a, b: }", '{"a":1}', "{a: {b: [c]}}"]
BLOCK_MAPS = ["  a: 1\n  b: no # c\n", "    a:\n      b: 2026-01-05\n", "  a: [x]\n\n  b:\n"]
KEYS = [
    "title",
    "tags",
    "when",
    "x_a",
    "\u65e5\u672c",
    "two words",
    '"quoted"',
    "'it''s'",
    "no",
    "012",
    "emoji\U0001f600",
]
NAMES = {'"quoted"': "quoted", "'it''s'": "it's"}

scalars = st.sampled_from(SCALARS)
comments = st.sampled_from(["", "", " # why", "\t# tab", "  #: odd: [", "   "])
notes = st.sampled_from(["", "", "", "# note\n", "\n", " # indented\n", "#\n\n"])


@dataclass(frozen=True)
class Written:
    """A generated page: chunks of text, one for each key, with what stands around them."""

    names: list[str]
    chunks: list[str]
    tail: str
    body: str
    newline: str
    bom: bytes

    def data(self) -> bytes:
        """Gives the bytes of the page."""
        text = "---\n" + "".join(self.chunks) + self.tail + "---"
        return self.bom + (text.replace("\n", self.newline) + self.body).encode()

    def around(self, at: int) -> tuple[bytes, bytes]:
        """Gives the bytes before and after the chunk of key `at`."""
        head = "---\n" + "".join(self.chunks[:at])
        rest = "".join(self.chunks[at + 1 :]) + self.tail + "---"
        return self.bom + head.replace("\n", self.newline).encode(), (
            rest.replace("\n", self.newline) + self.body
        ).encode()


@st.composite
def chunk(draw: st.DrawFn, key: str) -> str:
    """Draws the lines of one key, with what may stand above them."""
    lead = draw(notes)
    gap = draw(st.sampled_from([" ", " ", "   "]))
    kind = draw(st.integers(0, 5))
    comment = draw(comments)
    if kind == 0:
        return f"{lead}{key}:{gap}{draw(st.sampled_from(BLOCKS))}"
    if kind == 1:
        return f"{lead}{key}:{comment}\n{draw(st.sampled_from(BLOCK_LISTS + BLOCK_MAPS))}"
    if kind == 2:
        return f"{lead}{key}:{gap}{draw(st.sampled_from(LISTS + MAPS))}{comment}\n"
    return f"{lead}{key}:{gap}{draw(scalars)}{comment}\n"


@st.composite
def pages(draw: st.DrawFn) -> Written:
    """Draws a whole page."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=5))
    chunks = [draw(chunk(key)) for key in keys]
    if len(keys) > 1 and draw(st.integers(0, 3)) == 0:
        chunks[0] = f"{keys[0]}: &shared [a]\n"
        chunks[-1] = f"{keys[-1]}: *shared\n"
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    body = draw(
        st.sampled_from(
            ["", "\n", "\n\nText", "\r\n# H\r\n---\r\nrest  \n", "\n\t\u77e5\n---\nnot: yaml\n---\n"]
        )
    )
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    tail = draw(notes)
    return Written([NAMES.get(key, key) for key in keys], chunks, tail, body, newline, bom)


texts = st.one_of(
    st.sampled_from([*SCALARS, "a: b", "a #b", "- x", "[a", "{", "@x", "%", "`", "'", '"', "#", "x:", " lead", "trail ",
                     "yes", "NO", "Null", "1.0", "1e5", ".inf", "<<", "=", "?", "? x", "&a", "*a", "!t", "|", ">",
                     "---", "...", "\n", "a\nb", "\t", "\x85", "\u2028", "\ufeff",
                     "\x07", "\U0001f468\u200d\U0001f469"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)  # fmt: skip
atoms = st.one_of(
    texts,
    st.integers(-(10**25), 10**25),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abcno: 1#", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


def plain_11(block: str | None) -> dict[object, object]:
    """Reads a block with PyYAML, as YAML 1.1."""
    return yaml.load(block or "", Loader=_Loader) or {}  # noqa: S506 - a safe loader with tags left unread


def plain_12(block: str | None) -> dict[object, object]:
    """Reads a block with ruamel, as YAML 1.2."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return YAML(typ="safe", pure=True).load(block or "") or {}


class _Loader(yaml.SafeLoader):
    """PyYAML's own parser in Python: a third reading, beside the two that the product uses."""


_Loader.add_multi_constructor("", lambda loader, suffix, node: (suffix, str(node.value)))


def same(a: object, b: object) -> bool:
    """Tells whether two values are equal with equal types, all the way down."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def loads(
    read: Callable[[str | None], dict[object, object]], data: bytes
) -> list[tuple[object, object]] | None:
    """Gives what a second parser makes of the block, None where it cannot (tags, tabs after a colon)."""
    try:
        return list(read(frontmatter.split(data).yaml).items())
    except (yaml.YAMLError, ruamel.yaml.error.YAMLError, ValueError):
        return None


def outcome(edit: Callable[[], bytes]) -> bytes | str:
    """Gives what an edit makes, or the code with which it refuses."""
    try:
        return edit()
    except Invalid as error:
        return error.code


def check(before: bytes, after: bytes, at: int, value: Value) -> None:
    """Asserts that two parsers read `value` in place `at` of the block, and all else as before."""
    for read in (plain_11, plain_12):
        old, new = loads(read, before), loads(read, after)
        if old is not None:
            assert new is not None
            assert same(old[:at] + old[at + 1 :], new[:at] + new[at + 1 :])
        if new is not None:
            assert same(new[at][1], value)


@settings(max_examples=150)
@given(pages(), values, st.data())
def test_setting_a_key_changes_its_lines_alone_and_reads_back(
    page: Written, value: Value, data: st.DataObject
) -> None:
    """Both parsers read exactly the value, with its type; text before and after the key's lines is untouched."""
    at = data.draw(st.integers(0, len(page.names)))
    name = "new key" if at == len(page.names) else page.names[at]
    before = page.data()
    after = outcome(lambda: frontmatter.set_key(before, name, value))
    if isinstance(after, str):
        assert after == "page.anchor"
        assert "&shared" in page.chunks[at]
        return
    if at == len(page.names):
        rest = f"---{page.body}".encode()
        assert after.startswith(before[: len(before) - len(rest)])
        assert after.endswith(rest)
        assert after.count(b"\n") == before.count(b"\n") + 1
    else:
        head, rest = page.around(at)
        assert after.startswith(head)
        assert after.endswith(rest)
    check(before, after, at, value)
    assert frontmatter.set_key(after, name, value) == after


@settings(max_examples=100)
@given(pages().filter(lambda page: page.names), st.data())
def test_removing_a_key_takes_its_lines_and_no_others(page: Written, data: st.DataObject) -> None:
    """What stands before the key and after its last line stays, comments of other keys among it."""
    at = data.draw(st.integers(0, len(page.names) - 1))
    before = page.data()
    after = outcome(lambda: frontmatter.remove_key(before, page.names[at]))
    if isinstance(after, str):
        assert after == "page.anchor"
        assert "&shared" in page.chunks[at]
        return
    head, rest = page.around(at)
    assert after.startswith(head)
    assert after.endswith(rest)
    for read in (plain_11, plain_12):
        old, new = loads(read, before), loads(read, after)
        if old is not None:
            assert new is not None
            assert same(old[:at] + old[at + 1 :], new)


@settings(max_examples=100)
@given(pages().filter(lambda page: page.names), values, st.data())
def test_appending_to_a_list_adds_an_item_and_keeps_the_rest(
    page: Written, value: Value, data: st.DataObject
) -> None:
    """The list keeps its items as they are written and ends with exactly the new one; other values refuse."""
    at = data.draw(st.integers(0, len(page.names) - 1))
    before = page.data()
    after = outcome(lambda: frontmatter.append_item(before, page.names[at], value))
    if isinstance(after, str):
        assert after in {"page.anchor", "key.type"}
        return
    head, rest = page.around(at)
    assert after.startswith(head)
    assert after.endswith(rest)
    for read in (plain_11, plain_12):
        old, new = loads(read, before), loads(read, after)
        if old is None:
            continue
        assert new is not None
        assert same(old[:at] + old[at + 1 :], new[:at] + new[at + 1 :])
        kept = old[at][1] or []
        assert isinstance(kept, list)
        assert same([*kept, value], new[at][1])


@settings(max_examples=150)
@given(st.dictionaries(texts.filter(bool), values, max_size=5), texts)
def test_a_new_page_reads_back_in_every_parser(fields: dict[str, Value], body: str) -> None:
    """Whatever JSON can hold stands in a page that is made anew, and two parsers and pcpd read it back."""
    data = outcome(lambda: frontmatter.new_page(fields, body))
    if isinstance(data, str):
        assert data == "page.content"
        assert not fields
        assert body.startswith(("---", "\ufeff"))
        return
    block = frontmatter.split(data)
    assert block.body == body
    for read in (plain_11, plain_12):
        assert same(read(block.yaml), fields)
    assert list(frontmatter.read(data)) == list(fields)


@settings(max_examples=100)
@given(pages())
def test_what_is_read_has_the_spelling_of_the_file(page: Written) -> None:
    """Scalars come as they are written; JSON types only where JSON spells them the same."""
    data = page.data()
    block = frontmatter.split(data).yaml or ""
    for value in frontmatter.read(data).values():
        if isinstance(value, bool | int | float):
            assert json.dumps(value) in block
        json.dumps(value)

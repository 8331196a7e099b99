"""Front matter taken apart for merging: what each key and each item of a list means, and where it stands.

What a value means is compared as YAML 1.1 reads it, spelling and type, whatever its quotes, layout and
comments; maps without order.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pcpd.pages import verify
from pcpd.pages.nodes import Expansion, compose
from pcpd.pages.tree import Item, read_tree
from pcpd.pages.values import Value, spelled

Meaning: TypeAlias = tuple[Any, ...]
"""`("scalar", tag, text)`, `("list", items)` or `("map", pairs by key)`: to compare, to sort and to look up."""

Name: TypeAlias = str | tuple[Meaning, int]
"""What an entry is known by: a key, or an item with how many of the same stand before it."""

EMPTY: Meaning = ("map", ())

DASH_NEAR = 200
"""Characters before an item's value in which its dash must stand."""

_COMMENT = re.compile(r"#[^\n]*")


class Irregular(Exception):
    """The layout is none that can be taken apart by lines."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value: what it means, what JSON would make of it, and where it stands in the text of its version."""

    text: str
    item: Item
    meaning: Meaning
    value: Value

    @property
    def source(self) -> str:
        """The value as it is written."""
        return self.text[self.item.start : self.item.end]

    @property
    def is_flow(self) -> bool:
        """Tells whether it is a list or map between brackets."""
        return bool(self.item.style)

    @property
    def has_entries(self) -> bool:
        """Tells whether it is a list, or a map whose keys are scalars, that stands here itself."""
        return self.item.kind in {"list", "map"} and self.meaning[0] in {"list", "map"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value, or an item of a list, which has no key.

    In block layout `text[start:end]` are its lines, the first indented by `column`, and `text[lead:start]` the
    comments and blank lines above it; between brackets (`column` is -1) it is what stands between the commas.
    """

    name: Name
    key: Item | None
    node: Node
    lead: int
    start: int
    end: int
    column: int = -1

    @property
    def is_flow(self) -> bool:
        """Tells whether it stands between brackets."""
        return self.column < 0

    @property
    def is_inline(self) -> bool:
        """Tells whether its value ends before the end of its line, with nothing but a comment after it."""
        return not self.node.item.is_block

    def lines(self, column: int) -> str:
        """Gives its lines, indented by `column`."""
        return _shifted(self.node.text[self.start : self.end], column - self.column)

    def lead_lines(self, column: int) -> list[str]:
        """Gives the lines above it, for an entry that is indented by `column`."""
        return _shifted(self.node.text[self.lead : self.start], column - self.column).splitlines(
            keepends=True
        )

    def is_same(self, other: "Entry") -> bool:
        """Tells whether both mean the same and, in one layout, are written alike, comments too."""
        if self.node.meaning != other.node.meaning:
            return False
        if self.is_flow or other.is_flow:
            return self.is_flow != other.is_flow or self.node.source == other.node.source
        return self.lines(0) == other.lines(0)


@dataclass(frozen=True, slots=True)
class Entries:
    """A list or map, or the whole block, taken apart: `column` is that of its lines, `end` follows the last."""

    is_list: bool = False
    is_flow: bool = False
    column: int = 0
    end: int = 0
    by_name: dict[Name, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Front:
    """The front matter of one version; `root` is None where it holds no key."""

    text: str
    root: Node | None

    @property
    def meaning(self) -> Meaning:
        """What all of it means."""
        return EMPTY if self.root is None else self.root.meaning


def read_front(yaml: str) -> Front:
    """Reads a block of YAML. Raises `nodes.Unreadable`."""
    composed = compose(yaml)
    root = read_tree(yaml) if composed is not None else None
    if composed is None or root is None:
        return Front(yaml, None)
    Expansion(yaml).top(composed)
    meaning = meaning_of(verify.read_11(yaml))
    return Front(yaml, Node(yaml, root, meaning, spelled(composed, yaml)))


def meaning_of(model: verify.Model) -> Meaning:
    """Gives what a parser's model of a value means."""
    if isinstance(model, verify.Scalar):
        return ("scalar", *model)
    if isinstance(model, list):
        return ("list", tuple(map(meaning_of, model)))
    if all(isinstance(key, verify.Scalar) for key, _ in model):
        return ("map", tuple(sorted((key.text, meaning_of(value)) for key, value in model)))
    return ("opaque", tuple(sorted((meaning_of(key), meaning_of(value)) for key, value in model)))


def entries(node: Node, after: int = -1) -> Entries:
    """Takes a list or map apart; `after` is where its key ends, -1 for the whole block. Raises `Irregular`."""
    halves = _halves(node)
    if node.is_flow:
        found = [Entry(name, key, value, *_between(key, value)) for name, key, value in halves]
        by_name = {entry.name: entry for entry in found}
        return Entries(node.item.kind == "list", True, 0, node.item.end, by_name)
    return _lines(node, halves, 0 if after < 0 else node.text.find("\n", after) + 1)


def comments(front: Front) -> Counter[str]:
    """Gives the comments of a block, and how often each stands there."""
    if "#" not in front.text:
        return Counter()
    found: list[str] = []
    at = 0
    for start, end in sorted(_scalars(front)):
        found += _COMMENT.findall(front.text, at, start)
        at = end
    found += _COMMENT.findall(front.text, at)
    return Counter(comment.strip() for comment in found)


def leaves(model: verify.Model, path: str = "") -> Iterator[tuple[str, verify.Scalar]]:
    """Gives each scalar of a parser's model under its key."""
    if isinstance(model, verify.Scalar):
        yield path, model
    elif isinstance(model, list):
        for item in model:
            yield from leaves(item, path)
    else:
        for key, value in model:
            yield from leaves(value, f"{path}.{key.text if isinstance(key, verify.Scalar) else '?'}")


def _halves(node: Node) -> Iterator[tuple[Name, Item | None, Node]]:
    """Gives name, key and value of each entry."""
    item, value = node.item, node.value
    if item.kind == "list" and isinstance(value, list):
        seen: Counter[Meaning] = Counter()
        for part, meaning, said in zip(item.items, node.meaning[1], value, strict=True):
            yield (meaning, seen[meaning]), None, Node(node.text, part, meaning, said)
            seen[meaning] += 1
    elif item.kind == "map" and isinstance(value, dict):
        meanings = dict(node.meaning[1])
        for key, part in item.pairs:
            if key.kind != "scalar":
                raise Irregular
            yield key.value, key, Node(node.text, part, meanings[key.value], value[key.value])
    else:
        raise Irregular


def _between(key: Item | None, value: Node) -> tuple[int, int, int]:
    """Gives where an entry between brackets stands."""
    start = value.item.start if key is None else key.start
    return start, start, max(value.item.end, start if key is None else key.end)


def _lines(node: Node, halves: Iterator[tuple[Name, Item | None, Node]], lead: int) -> Entries:
    """Takes block layout apart: each entry begins a line, all in one column."""
    text, column = node.text, -1
    found: dict[Name, Entry] = {}
    for name, key, value in halves:
        start = _dash(text, value.item.start) if key is None else key.start
        begin = text.rfind("\n", 0, start) + 1
        if begin < lead or text[begin:start].strip(" ") or column not in {-1, start - begin}:
            raise Irregular
        column = start - begin
        end = text.find("\n", max(value.item.end, start if key is None else key.end)) + 1
        if end == 0:
            raise Irregular
        found[name] = Entry(name, key, value, lead, begin, end, column)
        lead = end
    return Entries(node.item.kind == "list", False, column, lead, found)


def _shifted(text: str, by: int) -> str:
    """Gives lines that stand `by` columns further to the right, or to the left as far as they have blanks."""
    if by == 0:
        return text
    lines = text.split("\n")
    if by > 0:
        return "\n".join(" " * by + line if line.strip() else line for line in lines)
    return "\n".join(line[min(-by, len(line) - len(line.lstrip(" "))) :] for line in lines)


def _dash(text: str, start: int) -> int:
    """Gives where the dash of an item stands, whose value starts at `start`."""
    at = max(0, start - DASH_NEAR)
    before = text[at:start].rstrip()
    if not before.endswith("-"):
        raise Irregular
    return at + len(before) - 1


def _scalars(front: Front) -> Iterator[tuple[int, int]]:
    """Gives where scalars and aliases stand; of block scalars, the lines after their header."""
    waiting = [] if front.root is None else [front.root.item]
    while waiting:
        item = waiting.pop()
        waiting += [*item.items, *(half for pair in item.pairs for half in pair)]
        if item.style in {"|", ">"}:
            header = front.text.find("\n", item.start, item.end)
            if header >= 0:
                yield header, item.end
        elif item.kind in {"scalar", "alias"}:
            yield item.start, item.end

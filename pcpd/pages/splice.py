"""Edits of a YAML block's text: each gives the new text, in which all but the lines concerned is as it was.

Nothing is dumped: positions come from `tree`, and what is written anew is the one value. Whether the result
says what was meant is `verify`'s to judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple, TypeAlias

from pcpd.errors import Invalid, NotFound
from pcpd.pages.tree import Item, read_tree
from pcpd.pages.values import Value, written

Operation: TypeAlias = Literal["set", "remove", "append"]


class Expected(NamedTuple):
    """What an edit means to do at `path`: set it to `value`, remove it, or append `value` to it."""

    operation: Operation
    path: tuple[str, ...]
    value: Value = None


class Change(NamedTuple):
    """The new text of a block, and what must differ in it."""

    text: str
    expected: Expected


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a key stands: the maps around it, from the outermost, and the pair; or what is missing."""

    maps: tuple[Item, ...]
    found: tuple[str, ...]
    missing: tuple[str, ...]
    pair: tuple[Item, Item] | None

    @property
    def is_flow(self) -> bool:
        return any(item.style for item in self.maps)


class Splicer:
    """Edits one block, `text`, whose lines end in `newline`."""

    def __init__(self, text: str, newline: str) -> None:
        self._text = text
        self._newline = newline
        self._root = read_tree(text)

    def set_key(self, key: str, value: Value) -> Change:
        """Gives the text in which `key`, dotted for a key of a nested map, has `value`."""
        place = self._find(key)
        if place.pair is None:
            return self._add(place, value)
        self._refuse_shared(place, place.pair[1])
        return Change(self._replaced(place, place.pair[1], value), Expected("set", place.found, value))

    def remove_key(self, key: str) -> Change:
        """Gives the text without `key`. Raises `NotFound` (`page.key-not-found`)."""
        place = self._find(key)
        if place.pair is None:
            raise NotFound(
                "page.key-not-found",
                f"the page has no key `{key[:80]}`",
                hint="read the page to see those that it has",
            )
        for half in place.pair:
            self._refuse_shared(place, half)
        if len(place.maps[-1].pairs) == 1 and len(place.maps) > 1:
            return self.set_key(".".join(place.found[:-1]), {})
        expected = Expected("remove", place.found)
        if place.maps[-1].style:
            return Change(self._without_flow_pair(place.maps[-1], place.pair), expected)
        return Change(self._without_lines(*place.pair), expected)

    def append_item(self, key: str, value: Value) -> Change:
        """Gives the text in which the list `key` has one more item; a missing list is made."""
        place = self._find(key)
        if place.pair is None:
            return self._add(place, [value])
        item = place.pair[1]
        self._refuse_shared(place, item)
        if item.kind == "scalar" and not item.style and item.value in {"", "~", "null"} and not item.tag:
            return Change(self._replaced(place, item, [value]), Expected("set", place.found, [value]))
        if item.kind != "list":
            raise Invalid(
                "key.type",
                f"`{key[:80]}` is no list, so nothing can be appended to it",
                hint="set it to a list first",
            )
        text = self._with_flow_item(item, value) if item.style else self._with_block_item(item, value)
        return Change(text, Expected("append", place.found, value))

    def _find(self, key: str) -> _Place:
        root = self._root
        if root is None:
            return _Place((), (), _segments(key), None)
        literal = _pair(root, key)
        if literal is not None:
            return _Place((root,), (key,), (), literal)
        maps, item = [root], root
        found: list[str] = []
        segments = _segments(key)
        for at, name in enumerate(segments):
            if at:
                if item.kind == "scalar" and item.value in {"", "~", "null"} and not item.style:
                    break
                if item.kind != "map":
                    raise _no_map(segments[:at])
                maps.append(item)
            pair = _pair(item, name)
            if pair is None:
                return _Place(tuple(maps), tuple(found), segments[at:], None)
            found.append(name)
            if at == len(segments) - 1:
                return _Place(tuple(maps), tuple(found), (), pair)
            item = pair[1]
        # A parent without a value: it is written anew, with what is missing inside.
        return _Place(tuple(maps), tuple(found[:-1]), segments[len(found) - 1 :], None)

    def _add(self, place: _Place, value: Value) -> Change:
        for nested in reversed(place.missing[1:]):
            value = {nested: value}
        name = place.missing[0]
        expected = Expected("set", (*place.found, name), value)
        if not place.maps:
            return Change(self._text + self._line("", name, value), expected)
        parent = place.maps[-1]
        self._refuse_shared(place)
        existing = _pair(parent, name)
        if existing is not None:
            return Change(self._replaced(place, existing[1], value), expected)
        if parent.style:
            return Change(self._with_flow_pair(parent, name, value), expected)
        indent = " " * self._column(parent.pairs[0][0].start)
        if len(place.maps) == 1:
            return Change(self._text + self._line(indent, name, value), expected)
        at = self._line_end(parent.end)
        return Change(self._spliced(at, at, self._line(indent, name, value)), expected)

    def _replaced(self, place: _Place, item: Item, value: Value) -> str:
        if place.is_flow or not item.is_block:
            return self._in_place(item, value, in_flow=place.is_flow)
        if item.kind == "list" and isinstance(value, Sequence) and not isinstance(value, str) and value:
            text = self._with_block_list(item, value)
            if text is not None:
                return text
        return self._beside_key(place, item, value)

    def _in_place(self, item: Item, value: Value, *, in_flow: bool) -> str:
        """Puts the value exactly where the old one stood, or after the colon that nothing followed."""
        new = written(value, in_flow=in_flow)
        before = self._text[item.start - 1 : item.start]
        if item.is_empty:
            new = (" " if before == ":" else "" if before in {" ", "\t"} else ": ") + new
        elif before == ":":
            new = f" {new}"
        return self._spliced(item.start, item.end, new)

    def _beside_key(self, place: _Place, item: Item, value: Value) -> str:
        """Puts the value on the line of its key, whose comment stays, in place of the lines of the old one."""
        pair = next(pair for pair in place.maps[-1].pairs if pair[1] is item)
        colon = self._text.index(":", pair[0].end) + 1
        line_end = self._content_end(colon)
        comment = _comment(self._text[colon:line_end])
        return self._spliced(colon, max(self._content_end(item.end), line_end), f" {written(value)}{comment}")

    def _with_block_list(self, item: Item, values: Sequence[Value]) -> str | None:
        """Gives the text with `values` as the block list `item`: lines of items at its start and end that stay
        as they are keep their comments. None where the layout of the list is not plain.
        """
        first = self._text.rfind("\n", 0, item.start) + 1
        indent = self._text[first : item.start]
        if item.anchor or item.tag or indent.strip(" "):
            return None
        old, gap = item.items, self._gap(item, item.items[0])
        head = _kept(old, values)
        tail = _kept(old[head:][::-1], values[head:][::-1])
        start = self._line_end(old[head - 1].end) if head else first
        end = self._line_end(old[len(old) - tail - 1].end) if head + tail < len(old) else start
        new = values[head : len(values) - tail]
        return self._spliced(
            start, end, "".join(f"{indent}-{gap}{written(one)}{self._newline}" for one in new)
        )

    def _with_block_item(self, item: Item, value: Value) -> str:
        column = self._column(self._dash(item))
        indent = " " * column
        last = item.items[-1]
        gap = self._gap(item, last)
        lines = [written(value)]
        if last.kind == "map" and not last.style and isinstance(value, Mapping) and value:
            lines = [f"{written(name, in_flow=True)}: {written(part)}" for name, part in value.items()]
        inner = self._newline + indent + " " * (1 + len(gap))
        at = self._line_end(item.end)
        return self._spliced(at, at, f"{indent}-{gap}{inner.join(lines)}{self._newline}")

    def _with_flow_item(self, item: Item, value: Value) -> str:
        new = written(value, in_flow=True)
        if item.items:
            end = item.items[-1].end
            return self._spliced(end, end, f", {new}")
        return self._spliced(item.end - 1, item.end - 1, new)

    def _with_flow_pair(self, item: Item, name: str, value: Value) -> str:
        new = f"{written(name, in_flow=True)}: {written(value, in_flow=True)}"
        if item.pairs:
            end = max(half.end for half in item.pairs[-1])
            return self._spliced(end, end, f", {new}")
        return self._spliced(item.end - 1, item.end - 1, new)

    def _without_flow_pair(self, item: Item, pair: tuple[Item, Item]) -> str:
        at = next(number for number, other in enumerate(item.pairs) if other is pair)
        end = max(half.end for half in pair)
        if at:
            return self._spliced(max(half.end for half in item.pairs[at - 1]), end, "")
        if len(item.pairs) > 1:
            return self._spliced(pair[0].start, item.pairs[1][0].start, "")
        return self._spliced(pair[0].start, end, "")

    def _without_lines(self, key: Item, value: Item) -> str:
        start = self._text.rfind("\n", 0, key.start) + 1
        return self._spliced(start, self._line_end(max(key.end, value.end)), "")

    def _refuse_shared(self, place: _Place, item: Item | None = None) -> None:
        """Refuses to change what an alias elsewhere repeats: that place would change, or break, as well."""
        anchors = {around.anchor for around in place.maps if around.anchor}
        anchors |= item.names("anchor") if item is not None else set()
        if anchors & place.maps[0].names("alias"):
            raise Invalid(
                "page.anchor",
                "the value has an anchor that is used elsewhere on the page, so an edit would change both",
                hint="edit the page by hand, or write the value out where the alias stands",
            )

    def _line(self, indent: str, name: str, value: Value) -> str:
        return f"{indent}{written(name, in_flow=True)}: {written(value)}{self._newline}"

    def _spliced(self, start: int, end: int, new: str) -> str:
        return self._text[:start] + new + self._text[end:]

    def _line_end(self, at: int) -> int:
        """Gives the offset after the line end that follows `at`."""
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end + 1

    def _content_end(self, at: int) -> int:
        """Gives the offset of the line end that follows `at`."""
        end = self._line_end(at)
        return at + len(self._text[at:end].rstrip("\r\n"))

    def _column(self, at: int) -> int:
        return at - (self._text.rfind("\n", 0, at) + 1)

    def _dash(self, item: Item) -> int:
        """Gives the offset of a dash of the block list `item`; all stand in one column."""
        if not item.anchor and not item.tag:
            return item.start
        before = self._text[: item.items[0].start].rstrip()
        if not before.endswith("-"):
            raise Invalid("page.layout", "the list is laid out in a way that pcpd does not edit")
        return len(before) - 1

    def _gap(self, item: Item, child: Item) -> str:
        """Gives the blanks between the dash of `child` and its text, one blank where that is not on a line."""
        before = self._text[max(0, child.start - 40) : child.start]
        gap = before[len(before.rstrip(" ")) :]
        return gap if gap and before.rstrip(" ").endswith("-") and child.start > item.start else " "


def _segments(key: str) -> tuple[str, ...]:
    segments = tuple(key.split("."))
    if not all(segments):
        raise Invalid(
            "key.invalid", f"{key[:80]!r} is not a key", hint="keys of nested maps: `source.client`"
        )
    return segments


def _pair(item: Item, name: str) -> tuple[Item, Item] | None:
    return next((pair for pair in item.pairs if pair[0].kind == "scalar" and pair[0].value == name), None)


def _kept(items: Sequence[Item], values: Sequence[Value]) -> int:
    """Gives how many items, from the first, already say the string that is to stand in their place."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0].says_string(pair[1]), zip(items, values, strict=False))
    )


def _no_map(segments: tuple[str, ...]) -> Invalid:
    name = ".".join(segments)[:80]
    return Invalid("key.type", f"`{name}` is no map, so it has no keys", hint=f"set `{name}` to a map first")


def _comment(rest: str) -> str:
    """Gives the comment of a key's line with the blanks before it; `rest` follows the colon."""
    at = rest.find("#")
    while at > 0 and rest[at - 1] not in " \t":
        at = rest.find("#", at + 1)
    return rest[len(rest[:at].rstrip(" \t")) :].rstrip() if at > 0 else ""

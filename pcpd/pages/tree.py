"""The source tree of a YAML block: where each key and value stands in the text, aliases kept as such.

Made for editing one page; indexing uses `nodes`. The text has passed `nodes.compose`, so that its depth and
size are bounded.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from yaml import events
from yaml._yaml import CParser

from pcpd.pages.values import is_word

Kind = Literal["scalar", "list", "map", "alias"]


@dataclass(slots=True)
class Item:
    """A value in the text: `text[start:end]` with its anchor and tag, without what follows on its line.

    `style` is the YAML indicator of a scalar (empty for plain), `[` or `{` for flow collections, empty for
    block ones. `anchor` is also the name that an alias points to.
    """

    kind: Kind
    start: int
    end: int
    style: str = ""
    anchor: str = ""
    tag: str = ""
    value: str = ""
    items: list["Item"] = field(default_factory=list)
    pairs: list[tuple["Item", "Item"]] = field(default_factory=list)

    @property
    def is_block(self) -> bool:
        """Tells whether the value ends by its lines: a block collection or a block scalar."""
        return (self.kind in {"list", "map"} and not self.style) or self.style in {"|", ">"}

    @property
    def is_empty(self) -> bool:
        """Tells whether nothing is written where the value would stand."""
        return self.kind == "scalar" and self.start == self.end

    def says_string(self, value: object) -> bool:
        """Tells whether every YAML reads the value as the string `value`, as it is written."""
        is_string = self.kind == "scalar" and not self.tag and (self.style or is_word(self.value))
        return bool(is_string) and type(value) is str and self.value == value

    def names(self, kind: Literal["anchor", "alias"]) -> set[str]:
        """Gives the anchors that stand in the value, or the names that its aliases use."""
        found = {self.anchor} if self.anchor and (self.kind == "alias") == (kind == "alias") else set()
        for child in [*self.items, *(half for pair in self.pairs for half in pair)]:
            found |= child.names(kind)
        return found


def read_tree(text: str) -> Item | None:
    """Gives the tree of `text`, a YAML block that composes; None if it holds no value."""
    reader = _Reader(text)
    root = reader.document()
    return None if root is None or root.is_empty else root


class _Reader:
    """Turns the parser's events into items."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parser = CParser(text)

    def document(self) -> Item | None:
        """Gives the root of the only document."""
        self._parser.get_event()
        if isinstance(self._parser.get_event(), events.StreamEndEvent):
            return None
        return self._item(self._parser.get_event())

    def _item(self, event: Any) -> Item:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, events.AliasEvent):
            return Item("alias", start, end, anchor=event.anchor or "")
        if isinstance(event, events.SequenceStartEvent):
            return self._list(event)
        if isinstance(event, events.MappingStartEvent):
            return self._map(event)
        style = event.style or ""
        if style in {"|", ">"}:
            end = self._block_scalar_end(start, end)
        return Item("scalar", start, end, style, event.anchor or "", event.tag or "", event.value)

    def _list(self, event: Any) -> Item:
        style = "[" if event.flow_style else ""
        item = Item("list", event.start_mark.index, 0, style, event.anchor or "", event.tag or "")
        found: Any = self._parser.get_event()
        while not isinstance(found, events.SequenceEndEvent):
            item.items.append(self._item(found))
            found = self._parser.get_event()
        item.end = _end(found) if style else item.items[-1].end
        return item

    def _map(self, event: Any) -> Item:
        style = "{" if event.flow_style else ""
        item = Item("map", event.start_mark.index, 0, style, event.anchor or "", event.tag or "")
        found: Any = self._parser.get_event()
        while not isinstance(found, events.MappingEndEvent):
            key = self._item(found)
            item.pairs.append((key, self._item(self._parser.get_event())))
            found = self._parser.get_event()
        item.end = _end(found) if style else max(half.end for half in item.pairs[-1])
        return item

    def _block_scalar_end(self, start: int, end: int) -> int:
        """Gives the end of the last line that belongs to a block scalar, before its line end.

        Blank lines after the text belong to it only where its header says `+`.
        """
        text = self._text
        header = text[start : text.find("\n", start)].partition("#")[0]
        lines = text[start:end]
        if "+" not in header:
            lines = lines.rstrip()
        elif lines.endswith("\n"):
            lines = lines[:-1].removesuffix("\r")
        return start + max(len(lines), len(header.rstrip()))


def _end(event: Any) -> int:
    return int(event.end_mark.index)

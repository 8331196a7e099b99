"""Where the values of a JSON file stand, so that one can be changed without touching the rest. Pure.

Takes what clients take: JSON, and JSON with comments and commas behind the last item. Reads with a stack of its
own, so that no depth ends it, and keeps only what an edit asks for: the object under one key of the root.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

KEPT_DEPTH = 6
"""How deep below the root values are kept: an entry's environment and arguments lie at four."""

BOM = "\ufeff"

_SPACE = re.compile(r"[ \t\r\n]*+")
_WORDS = {"true": True, "false": False, "null": None}
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
    (?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<mark>[{}\[\]:,])
    |(?P<comment>//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<plain>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?(?![0-9A-Za-z.])|(?:true|false|null)\b)
    |(?P<end>\Z))""",
    re.VERBOSE,
)


class MalformedError(Exception):
    """The text is not JSON, also with comments: what is wrong, and on which line and column, from 1."""

    def __init__(self, text: str, at: int, what: str) -> None:
        lines = re.split(r"\r\n|\r|\n", text[:at])
        super().__init__(f"line {len(lines)}, column {len(lines[-1].removeprefix(BOM)) + 1}: {what}")


@dataclass(slots=True)
class Node:
    """A value: where it begins and ends in the text, and what is in it, as far as that was kept.

    `kind` is the first character of objects, arrays and strings, and empty for all else. `comma` is where the
    comma behind the last member stands, or -1. `first` and `last` are the first member's begin and the last
    one's end, also where the members themselves were not kept; `tail` is where the last token or comment inside
    ends.
    """

    kind: str
    start: int
    end: int = -1
    members: "list[Member]" = field(default_factory=list)
    comma: int = -1
    first: int = -1
    last: int = -1
    tail: int = -1


@dataclass(slots=True)
class Member:
    """One key of an object with its value; of an array, an item under an empty key.

    `gap` is where the token or comment before it ends, which may be one up to the line's end (`is_below_note`);
    `before` and `after` are where the commas around it stand, or -1.
    """

    key: str
    start: int
    value: Node
    gap: int
    is_below_note: bool
    before: int = -1
    after: int = -1


@dataclass(slots=True)
class Document:
    """A whole text: its value, None where there are only spaces and comments, and whether it is plain JSON."""

    text: str
    root: Node | None
    is_plain: bool


@dataclass(slots=True)
class _Frame:
    """An object or array that is being read; `wants` is what may come next."""

    node: Node
    depth: int
    is_kept: bool
    wants: str
    key: str = ""
    key_start: int = -1
    gap: int = -1
    is_below_note: bool = False
    comma: int = -1
    member: Member | None = None


def read(text: str, key: str) -> Document:
    """Finds the root's members under `key`, and all that is in them to a depth. Raises MalformedError."""
    return _Reading(text, key).document()


def value_of(document: Document, node: Node) -> object:
    """Gives a kept value as Python has it, numbers as they are spelled; what lies deeper than was kept is missing."""
    if node.kind == "{":
        return {member.key: value_of(document, member.value) for member in node.members}
    if node.kind == "[":
        return [value_of(document, member.value) for member in node.members]
    text = document.text[node.start : node.end]
    return json.loads(text) if node.kind else _WORDS.get(text, text)


class _Reading:
    """One pass over a text."""

    def __init__(self, text: str, key: str) -> None:
        self._text, self._key = text, key
        self._stack: list[_Frame] = []
        self._root: Node | None = None
        self._gap, self._is_below_note = 0, False
        self._is_plain = not text.startswith(BOM)

    def document(self) -> Document:
        """Reads to the end."""
        for kind, start, end in self._tokens():
            if kind == "comment":
                self._is_plain = False
            else:
                self._take(kind, start, end)
            self._gap, self._is_below_note = end, self._text.startswith("//", start)
        if self._stack:
            raise MalformedError(self._text, len(self._text), "the file ends in the middle")
        return Document(self._text, self._root, self._is_plain)

    def _tokens(self) -> Iterator[tuple[str, int, int]]:
        at, text = (1 if self._text.startswith(BOM) else 0), self._text
        match = _TOKEN.match
        while (found := match(text, at)) is not None:
            kind = str(found.lastgroup)
            if kind == "end":
                return
            at = found.end()
            yield kind, found.start(kind), at
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr] # it matches everywhere
        raise MalformedError(text, at, _what_is_wrong(text, at))

    def _take(self, kind: str, start: int, end: int) -> None:
        frame = self._stack[-1] if self._stack else None
        sign = self._text[start] if kind == "mark" else ""
        if frame is None:
            if self._root is not None:
                raise self._unexpected(start, "nothing may follow the value")
            self._root = self._begin(kind, start, end, None)
        elif frame.wants == "colon":
            if sign != ":":
                raise self._unexpected(start, "a colon is missing")
            frame.wants = "value"
        elif sign and sign in "}]" and frame.wants in {"first", "next", "comma"}:
            self._close(frame, sign, start, end)
        elif frame.wants == "comma":
            if sign != ",":
                raise self._unexpected(start, "a comma is missing")
            frame.wants, frame.comma = "next", start
            if frame.member:
                frame.member.after = start
        elif frame.node.kind == "{" and frame.wants in {"first", "next"}:
            if kind != "string":
                raise self._unexpected(start, "a key in double quotes is missing")
            self._begin_member(frame, start)
            frame.wants = "colon"
            frame.key = json.loads(self._text[start:end]) if frame.is_kept else ""
        else:
            self._put(frame, kind, start, end)

    def _begin_member(self, frame: _Frame, start: int) -> None:
        frame.key_start, frame.gap, frame.is_below_note = start, self._gap, self._is_below_note

    def _put(self, frame: _Frame, kind: str, start: int, end: int) -> None:
        """Takes the value of a key, or an item of an array."""
        if frame.node.kind == "[":
            self._begin_member(frame, start)
        node = self._begin(kind, start, end, frame)
        frame.wants = "comma"
        frame.node.first = frame.key_start if frame.node.first < 0 else frame.node.first
        frame.node.last = end
        frame.member = None
        if frame.is_kept and (frame.depth > 0 or frame.key == self._key):
            frame.member = Member(
                frame.key, frame.key_start, node, frame.gap, frame.is_below_note, frame.comma
            )
            frame.node.members.append(frame.member)

    def _begin(self, kind: str, start: int, end: int, frame: _Frame | None) -> Node:
        sign = self._text[start]
        node = Node("" if kind == "plain" else sign, start, end)
        if kind == "mark":
            if sign not in "{[":
                raise self._unexpected(start, "a value is missing")
            depth = frame.depth + 1 if frame else 0
            is_kept = depth == 0 or (
                frame is not None
                and frame.is_kept
                and depth < KEPT_DEPTH
                and (frame.depth > 0 or frame.key == self._key)
            )
            self._stack.append(_Frame(node, depth, is_kept, "first"))
        return node

    def _close(self, frame: _Frame, sign: str, start: int, end: int) -> None:
        if sign != {"{": "}", "[": "]"}[frame.node.kind]:
            raise self._unexpected(start, "a bracket of the other kind is missing")
        if frame.wants == "next":
            frame.node.comma = frame.comma
            self._is_plain = False
        frame.node.end, frame.node.tail = end, self._gap
        self._stack.pop()
        if self._stack:
            self._stack[-1].node.last = end

    def _unexpected(self, at: int, what: str) -> MalformedError:
        return MalformedError(self._text, at, what)


def _what_is_wrong(text: str, at: int) -> str:
    """Says what cannot begin here, without quoting the file: it may hold secrets."""
    if text[at] == '"':
        return "this string does not end, or holds what a JSON string cannot"
    if text.startswith("/*", at):
        return "this comment does not end"
    return "this is no JSON"

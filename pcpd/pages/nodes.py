"""Reads YAML into nodes that keep every scalar's spelling, within bounds that no page can break.

PyYAML's C parser composes the nodes and constructs nothing: `no`, `012`, `1.10` and dates stay as written.
Size is looked at before it runs; depth and number of nodes while it runs, through the hooks that it calls for
every node; what aliases expand to afterwards, by `Expansion`.
"""

from collections.abc import Iterator
from typing import TypeAlias, cast

import yaml
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

SIZE_LIMIT = 256 * 1024
DEPTH_LIMIT = 64
NODE_LIMIT = 20_000
EXPANDED_LIMIT = 1024 * 1024

Pair: TypeAlias = "tuple[str, Node]"


class Unreadable(Exception):
    """Why a block of YAML cannot be taken. `line` is 0-based within the block."""

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line


class _Composer(CParser):
    """Composes without resolving tags: an implicit tag is the empty text, an explicit one stays."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.count = 0

    def resolve(self, kind: object, value: object, implicit: object) -> str:  # noqa: ARG002
        return ""

    def descend_resolver(self, parent: object, index: object) -> None:  # noqa: ARG002
        self.depth += 1
        self.count += 1
        if self.depth > DEPTH_LIMIT or self.count > NODE_LIMIT:
            raise _too_complex()

    def ascend_resolver(self) -> None:
        self.depth -= 1


def compose(text: str) -> MappingNode | None:
    """Gives the map that `text` holds, or None where it holds nothing but comments.

    Raises `Unreadable` for what is too large, too deep, not YAML, or no map.
    """
    if len(text) > SIZE_LIMIT:
        raise Unreadable("front-matter.too-large", f"the front matter has more than {SIZE_LIMIT} characters")
    node = _compose(text)
    if node is None or (type(node) is ScalarNode and node.start_mark.index == node.end_mark.index):
        return None
    if type(node) is not MappingNode:
        raise Unreadable("front-matter.invalid", "the front matter is no map of keys and values", 0)
    return node


def compose_value(text: str) -> Node | None:
    """Gives the node of `text`, any YAML value. Raises `Unreadable`."""
    return _compose(text)


def _compose(text: str) -> Node | None:
    try:
        return _Composer(text).get_single_node()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"the front matter is not YAML: {error.problem or error.context}"
        raise Unreadable("front-matter.invalid", message, mark.line if mark else None) from None
    except ReaderError as error:
        line = text.encode()[: int(error.position)].count(b"\n")
        message = "the front matter holds a character that YAML does not allow"
        raise Unreadable("front-matter.invalid", message, line) from None
    except (yaml.YAMLError, UnicodeError):
        raise Unreadable("front-matter.invalid", "the front matter is not YAML") from None


class Expansion:
    """Turns nodes into (key, spelling) pairs, and counts what aliases add while it does.

    `text` is the source of the nodes: where a key is itself a list or map, as in a template's
    `title: {{title}}`, the value is spelled as it stands there.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = NODE_LIMIT
        self._letters = EXPANDED_LIMIT
        self.pairs: list[tuple[str, str]] = []

    def top(self, node: MappingNode) -> dict[str, Node]:
        """Collects the pairs of the whole block and gives its values by key.

        Raises `Unreadable` for a key that stands twice, at any depth, and for what expands too far.
        """
        found: dict[str, Node] = {}
        for key, value in self._items(node):
            found[key] = value
            if type(value) is ScalarNode:
                self.pairs.append((key, value.value))
            else:
                self._collect(key, value, 1)
        if "*" in self._text:
            self._spend(0, sum(len(value) for _, value in self.pairs))
        return found

    def _collect(self, name: str, node: Node, depth: int) -> None:
        if depth > DEPTH_LIMIT:
            raise _too_complex()
        pairs = self.pairs
        self._spend(len(node.value), len(name) * len(node.value))
        if type(node) is SequenceNode:
            for item in node.value:
                if type(item) is ScalarNode:
                    pairs.append((name, item.value))
                else:
                    self._collect(name, item, depth + 1)
        elif has_plain_keys(node):
            for key, value in self._items(cast("MappingNode", node)):
                if type(value) is ScalarNode:
                    pairs.append((f"{name}.{key}", value.value))
                else:
                    self._collect(f"{name}.{key}", value, depth + 1)
        else:
            start, end = node.start_mark.index, node.end_mark.index
            self._spend(1, end - start)
            pairs.append((name, self._text[start:end].strip()))

    def _spend(self, nodes: int, letters: int) -> None:
        self._left -= nodes
        self._letters -= letters
        if self._left < 0 or self._letters < 0:
            raise _too_complex()

    def _items(self, node: MappingNode) -> Iterator[Pair]:
        seen: set[str] = set()
        for key, value in node.value:
            if type(key) is not ScalarNode:
                raise Unreadable(
                    "front-matter.invalid", "a key is itself a list or a map", key.start_mark.line
                )
            name = key.value
            if name in seen:
                message = f"the key {name[:64]!r} stands twice"
                raise Unreadable("front-matter.duplicate-key", message, key.start_mark.line)
            seen.add(name)
            yield name, value


def has_plain_keys(node: Node) -> bool:
    """Tells whether each key of the map `node` is a scalar."""
    return all(type(key) is ScalarNode for key, _ in node.value)


def _too_complex() -> Unreadable:
    return Unreadable(
        "front-matter.too-complex",
        f"the front matter has more than {NODE_LIMIT} values, or is nested deeper than {DEPTH_LIMIT}",
    )

"""Front matter keys that PCP knows: their values by kind, and what is wrong with them. Source: pages.md §3.

Each reader takes a node and gives a plain value; a value of the wrong kind becomes a Problem and reads as
absent, never an exception.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pcpd.errors import Invalid
from pcpd.pages.ids import PageId
from pcpd.pages.links import split_target
from pcpd.pages.model import LIFECYCLES, SENSITIVITIES, TYPES, Link, Problem
from pcpd.pages.times import normal_time

FIRST_LINE = 2
"""The line of the file on which the YAML starts."""

RELATIONS = frozenset({"supersedes", "contradicts", "refines", "about", "derived_from"})
REVIEW_STATES = ("proposed", "approved", "rejected")
ORIGINS = ("user", "agent", "import", "consolidation")
TIME_KEYS = frozenset({"updated", "recorded_at", "valid_from", "valid_until", "expires"})

_PARTITION = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_OWN_RELATION = re.compile(r"x-[a-z0-9_-]+:\S+")
_NUMBER = re.compile(r"\+?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})

Reader: TypeAlias = "Callable[[Facts, str, Node], None]"


class Facts:
    """What the known keys of one page say, as it is gathered: `values` are fields of `Page` by name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.links: list[Link] = []
        self.problems: list[Problem] = []

    def read(self, top: dict[str, Node]) -> None:
        """Reads every known key of the block."""
        for key, node in top.items():
            reader = _READERS.get(key)
            if reader is not None and not is_null(node):
                reader(self, key, node)
        if "<<" in top:
            self.add("key.merge", "`<<` is taken as a key; what it would merge is not read", top["<<"])

    def add(self, code: str, message: str, node: Node) -> None:
        """Notes a problem at the line of `node`."""
        self.problems.append(Problem(code, message, node.start_mark.line + FIRST_LINE))

    def scalar(self, key: str, node: Node) -> str | None:
        """Gives the spelling of a scalar; anything else is a problem."""
        if type(node) is ScalarNode:
            return cast("str", node.value)
        self.add("key.type", f"`{key}` must be a single value", node)
        return None

    def one_of(self, key: str, node: Node, allowed: tuple[str, ...]) -> str | None:
        """Gives a scalar that is one of `allowed`; anything else is a problem."""
        value = self.scalar(key, node)
        if value is not None and value not in allowed:
            self.add("key.value", f"`{key}` must be one of {', '.join(allowed)}", node)
            return None
        return value


def is_null(node: Node) -> bool:
    """Tells whether a value is left out: nothing, `~` or `null` without quotes."""
    return type(node) is ScalarNode and not node.style and node.value in _NULLS


def _text(facts: Facts, key: str, node: Node) -> None:
    value = facts.scalar(key, node)
    if value is not None and value.strip():
        facts.values[key] = value


def _id(facts: Facts, key: str, node: Node) -> None:
    value = facts.scalar(key, node)
    if value is None:
        return
    try:
        facts.values["id"] = PageId(value)
    except Invalid as error:
        facts.add("key.value", error.message, node)


def _choice(allowed: tuple[str, ...]) -> Reader:
    def read(facts: Facts, key: str, node: Node) -> None:
        value = facts.one_of(key, node, allowed)
        if value is not None:
            facts.values[key] = value

    return read


def _sensitivity(facts: Facts, key: str, node: Node) -> None:
    # A value that we do not know was meant to restrict something: it must not open the page.
    facts.values["sensitivity"] = facts.one_of(key, node, SENSITIVITIES) or "sensitive"


def _partition(facts: Facts, key: str, node: Node) -> None:
    value = facts.scalar(key, node)
    if value is not None and _PARTITION.fullmatch(value):
        facts.values["partition"] = value
        return
    facts.values["is_unclear"] = True
    if value is not None:
        facts.add("key.value", "`partition` must be one slug of a-z, 0-9, `_` and `-`", node)


def _time(facts: Facts, key: str, node: Node) -> None:
    value = facts.scalar(key, node)
    if value is None:
        return
    try:
        facts.values[key] = normal_time(value)
    except Invalid as error:
        facts.add("key.time", f"`{key}`: {error.message}", node)


def _share(facts: Facts, key: str, node: Node) -> None:
    value = facts.scalar(key, node)
    if value is None:
        return
    is_plain = not cast("ScalarNode", node).style
    number = float(value) if is_plain and _NUMBER.fullmatch(value) else -1.0
    if 0 <= number <= 1:
        facts.values[key] = number
    else:
        facts.add("key.value", f"`{key}` must be a number from 0 to 1", node)


def _strings(facts: Facts, key: str, node: Node) -> None:
    """Reads a list of strings. One string where a list belongs is a problem, and counts all the same."""
    if type(node) is not SequenceNode:
        value = facts.scalar(key, node)
        if value is not None and key != "aliases":
            facts.add("key.type", f"`{key}` must be a list", node)
        facts.values[key] = (value,) if value else ()
        return
    values = []
    for item in node.value:
        value = item.value if type(item) is ScalarNode else facts.scalar(key, item)
        if value:
            values.append(value)
    facts.values[key] = tuple(values)


def _map(facts: Facts, key: str, node: Node) -> dict[str, Node]:
    if type(node) is MappingNode:
        return {name.value: value for name, value in node.value if type(name) is ScalarNode}
    facts.add("key.type", f"`{key}` must be a map", node)
    return {}


def _review(facts: Facts, key: str, node: Node) -> None:
    before = len(facts.problems)
    review = _map(facts, key, node)
    state = review.get("state")
    if state is not None and not is_null(state):
        facts.values["review_state"] = facts.one_of("review.state", state, REVIEW_STATES)
    if len(facts.problems) > before or "<<" in review:  # it may have said `proposed`
        facts.values["is_unclear"] = True


def _source(facts: Facts, key: str, node: Node) -> None:
    source = _map(facts, key, node)
    origin, author = source.get("origin"), source.get("principal")
    if origin is not None and not is_null(origin):
        facts.values["origin"] = facts.one_of("source.origin", origin, ORIGINS)
    if author is not None and not is_null(author):
        facts.values["author"] = facts.scalar("source.principal", author)


def _relations(facts: Facts, key: str, node: Node) -> None:
    for item in _items(facts, key, node):
        relation = _map(facts, key, item)
        rel, target = relation.get("rel"), relation.get("target")
        if rel is None or target is None:
            if relation:
                facts.add("key.value", "an entry of `relations` needs `rel` and `target`", item)
            continue
        name, path = facts.scalar("relations.rel", rel), facts.scalar("relations.target", target)
        if name and name not in RELATIONS and not _OWN_RELATION.fullmatch(name):
            facts.add("key.value", f"`{name[:64]}` is no relation; own ones are x-<ns>:<name>", rel)
        if name and path:
            _link(facts, name, path, item)


def _derived_from(facts: Facts, key: str, node: Node) -> None:
    for item in _items(facts, key, node):
        path = facts.scalar(key, item)
        if path:
            _link(facts, "derived_from", path, item)


def _items(facts: Facts, key: str, node: Node) -> Iterator[Node]:
    if type(node) is SequenceNode:
        yield from (item for item in node.value if not is_null(item))
    else:
        facts.add("key.type", f"`{key}` must be a list", node)


def _link(facts: Facts, rel: str, path: str, node: Node) -> None:
    """Adds an edge; people write the target as a path, or as a wiki link in quotes."""
    text = path.strip()
    is_wiki = text.startswith("[[") and text.endswith("]]")
    target, heading, alias = split_target(text[2:-2]) if is_wiki else (text, "", "")
    if target:
        line = node.start_mark.line + FIRST_LINE
        facts.links.append(Link("relation", target, rel, heading, alias, line))


_READERS: dict[str, Reader] = {
    "id": _id,
    "title": _text,
    "type": _choice(TYPES),
    "tags": _strings,
    "aliases": _strings,
    "partition": _partition,
    "sensitivity": _sensitivity,
    "lifecycle": _choice(LIFECYCLES),
    "importance": _share,
    "confidence": _share,
    "review": _review,
    "source": _source,
    "relations": _relations,
    "derived_from": _derived_from,
    **dict.fromkeys(TIME_KEYS, _time),
}

"""Puts one entry into a client's configuration text, and takes it out: every other character stays. Pure.

An entry is a named object under one key of the root (`mcpServers`). What an edit left around the entry is kept as
a `Trace`, so that taking it out gives back what stood there, also after others changed the rest of the file.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pcpd.client import jsonc
from pcpd.client.jsonc import BOM, Document, MalformedError, Member, Node

_SAME_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*(?:[^*\r\n]|\*(?!/))*\*/))*", re.ASCII)
_LINE_ENDS = re.compile(r"[ \t]*(?:[\r\n]|\Z)", re.ASCII)
_BREAKS = frozenset("\r\n")
_UNIT = "  "


@dataclass(frozen=True, slots=True)
class Trace:
    """What an edit put before and after the entry's value, and what had stood in the place of all three."""

    old: str
    prefix: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it stands: its name, and its value as far as `jsonc` keeps it."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text is laid out: its line ends, one step of indentation (empty: all on one line), its colons."""

    newline: str
    unit: str
    colon: str


def entries(text: str, key: str) -> list[Entry]:
    """Gives the entries under `key`, in their order. Raises MalformedError, also where they are no object."""
    document = jsonc.read(text, key)
    container = _container(document, key)
    members = container.members if container is not None else []
    return [Entry(each.key, jsonc.value_of(document, each.value)) for each in members]


def is_plain(text: str) -> bool:
    """Tells whether the text is JSON without comments, trailing commas and byte order mark. Raises MalformedError."""
    return jsonc.read(text, "").is_plain


def put(text: str, key: str, name: str, value: Mapping[str, object]) -> tuple[str, Trace]:
    """Gives the text with the entry `name` set to `value`, and what to keep for `take_out`.

    Raises MalformedError for what is no JSON, is no object where one must be, or has the key or name twice.
    """
    document = jsonc.read(text, key)
    container = _container(document, key)
    style = _style(document)
    if document.root is None:
        return _begun(text, style, key, name, value)
    if container is None:
        prefix, suffix, indent = _wrapped(style, _member_indent(text, document.root, style), name)
        inner = _rendered(value, style, indent)
        return _added(text, document.root, style, key, (prefix, inner, suffix))
    if container.first >= 0 and not _is_below(text, container):
        style = replace(style, unit="")
    present = _only(document, container, name)
    if present is not None:
        node, indent = present.value, _indent_at(text, present.start)
        return _spliced(text, node.start, node.end, ("", _rendered(value, style, indent), ""))
    if container.kind != "{":  # null
        prefix, suffix, indent = _wrapped(style, _indent_at(text, container.start), name)
        return _spliced(
            text, container.start, container.end, (prefix, _rendered(value, style, indent), suffix)
        )
    inner = _rendered(value, style, _member_indent(text, container, style))
    return _added(text, container, style, name, ("", inner, ""))


def take_out(text: str, key: str, name: str, trace: Trace | None = None) -> str:
    """Gives the text without the entry `name`; with what stood in its place where the trace is still to be seen.

    Gives the text as it is where there is no such entry. Raises MalformedError.
    """
    document = jsonc.read(text, key)
    container = _container(document, key)
    member = None if container is None else _only(document, container, name)
    if member is None:
        return text
    before = after = -1
    if trace is not None:
        before, after = member.value.start - len(trace.prefix), member.value.end + len(trace.suffix)
    if trace is not None and _is_seen(text, member, trace) and _may_follow(text, trace.old, after):
        return text[:before] + trace.old + text[after:]
    return _without(text, member)


def _is_seen(text: str, member: Member, trace: Trace) -> bool:
    start, end = member.value.start, member.value.end
    return text[:start].endswith(trace.prefix) and text.startswith(trace.suffix, end)


def _may_follow(text: str, old: str, after: int) -> bool:
    """Tells whether what comes next may stand behind `old`, whose last comment may run to the line's end."""
    return "//" not in old or _LINE_ENDS.match(text, after) is not None


def _without(text: str, member: Member) -> str:
    """Takes a member out with one comma and the space before it."""
    end = member.after + 1 if member.after >= 0 else member.value.end
    gap = member.gap
    if member.is_below_note and not _LINE_ENDS.match(text, end):
        gap += 2 if text.startswith("\r\n", gap) else 1
    rest = text[end:]
    if member.after >= 0 or member.before < 0:
        return text[:gap] + rest
    return text[: member.before] + text[member.before + 1 : gap] + rest


def _container(document: Document, key: str) -> Node | None:
    """Gives the value under `key`, an object or null; None where there is none."""
    root = document.root
    if root is None:
        return None
    if root.kind != "{":
        raise MalformedError(document.text, root.start, "an object must stand here")
    member = _only(document, root, key)
    if member is None:
        return None
    value = member.value
    if value.kind != "{" and document.text[value.start : value.end] != "null":
        raise MalformedError(document.text, value.start, f"the value of {key} must be an object")
    return value


def _only(document: Document, node: Node, key: str) -> Member | None:
    """Gives the member `key`, which may stand there once: programs differ in which of two they take."""
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        raise MalformedError(document.text, found[1].start, "this key stands here a second time")
    return found[0] if found else None


def _begun(text: str, style: _Style, key: str, name: str, value: Mapping[str, object]) -> tuple[str, Trace]:
    """Puts a whole object behind a text of spaces and comments alone."""
    lead = "" if text in {"", BOM} or text.endswith(("\n", "\r")) else style.newline
    outer, outer_end, indent = _wrapped(style, "", key)
    prefix, suffix, indent = _wrapped(style, indent, name)
    around = (lead + outer + prefix, _rendered(value, style, indent), suffix + outer_end + style.newline)
    return _spliced(text, len(text), len(text), around)


def _added(text: str, node: Node, style: _Style, key: str, value: tuple[str, str, str]) -> tuple[str, Trace]:
    """Adds a member behind the last one of an object. `value` is the entry, and what stands around it."""
    prefix, inner, suffix = value
    indent = _member_indent(text, node, style)
    head = json.dumps(key, ensure_ascii=False) + style.colon + prefix
    if node.first < 0:
        return _filled(text, node, style, (head, inner, suffix))
    is_below = _is_below(text, node)
    anchor = node.comma + 1 if node.comma >= 0 else node.last
    place = anchor
    if is_below and (found := _SAME_LINE.match(text, anchor)):
        place = found.end()
    gap = style.newline + indent if is_below else style.colon.removeprefix(":")
    comma, trailing = ("", ",") if node.comma >= 0 else (",", "")
    around = (comma + text[anchor:place] + gap + head, inner, suffix + trailing)
    return _spliced(text, anchor, place, around)


def _filled(text: str, node: Node, style: _Style, value: tuple[str, str, str]) -> tuple[str, Trace]:
    """Puts the first member into an object that has none, behind its comments."""
    prefix, inner, suffix = value
    notes, rest = text[node.start : node.tail], text[node.tail : node.end - 1]
    is_below = bool(style.unit) or notes != "{"
    base = style.newline + _indent_at(text, node.start)
    begin = style.newline + _member_indent(text, node, style) if is_below else ""
    if is_below and _BREAKS.isdisjoint(rest):
        rest = base
    return _spliced(text, node.start, node.end, (notes + begin + prefix, inner, suffix + rest + "}"))


def _spliced(text: str, start: int, end: int, new: tuple[str, str, str]) -> tuple[str, Trace]:
    prefix, inner, suffix = new
    return text[:start] + prefix + inner + suffix + text[end:], Trace(text[start:end], prefix, suffix)


def _style(document: Document) -> _Style:
    """Looks at how the root's first member is laid out; a text without one gets two spaces a step."""
    text, root = document.text, document.root
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"
    if root is None or root.first < 0:
        return _Style(newline, _UNIT, ": ")
    if _is_below(text, root):
        return _Style(newline, _indent_at(text, root.first) or _UNIT, ": ")
    spaced = re.search(r'"[ \t]*:(?=[ \t])', text[root.first :])
    return _Style(newline, "", ": " if spaced else ":")


def _is_below(text: str, node: Node) -> bool:
    """Tells whether an object's first member stands on a line below its brace."""
    return not _BREAKS.isdisjoint(text[node.start : node.first])


def _member_indent(text: str, node: Node, style: _Style) -> str:
    """Gives the space before a member of an object: that of its first one, else one step more than its own."""
    return _indent_at(text, node.first) if node.first >= 0 else _indent_at(text, node.start) + style.unit


def _indent_at(text: str, at: int) -> str:
    """Gives the space at the begin of the line on which `at` is."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    start += text.startswith(BOM, start)
    end = start
    while end < at and text[end] in " \t":
        end += 1
    return text[start:end]


def _wrapped(style: _Style, indent: str, name: str) -> tuple[str, str, str]:
    """Gives what stands around the value of an object's only member, and that member's indentation."""
    head = json.dumps(name, ensure_ascii=False) + style.colon
    if not style.unit:
        return "{" + head, "}", indent
    inner = indent + style.unit
    return f"{{{style.newline}{inner}{head}", f"{style.newline}{indent}}}", inner


def _rendered(value: Mapping[str, object], style: _Style, indent: str) -> str:
    """Gives a value as text, its lines below the first indented by `indent` and more."""
    if not style.unit:
        return json.dumps(value, ensure_ascii=False, separators=(f",{style.colon[1:]}", style.colon))
    text = json.dumps(value, ensure_ascii=False, indent=style.unit)
    return text.replace("\n", style.newline + indent)

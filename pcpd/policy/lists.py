"""Edits one list of a small YAML file line by line: the item comes or goes, every other byte stays.

Works on what people write: a list in block style with one item a line or several, a list in brackets, a key
without a value, or no such key. Gives None for the rest. The caller reads the result back and compares.
"""

from collections.abc import Collection

import yaml

from pcpd.policy.strict_yaml import is_null


def append_item(data: bytes, key: str, item: str) -> bytes | None:
    """Gives the file with `item`, one line of flow YAML, at the end of the list under the top-level `key`."""
    text = data.decode("utf-8")
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        lead = "" if not text or text.endswith("\n") else newline
        return f"{text}{lead}{key}:{newline}  - {item}{newline}".encode()
    if not isinstance(root, yaml.MappingNode):
        return None
    found = [(name, value) for name, value in root.value if name.value == key]
    if not found:
        return _append_key(text, root, key, item, newline)
    return _append_to(text, *found[0], item, newline)


def remove_items(data: bytes, key: str, numbers: Collection[int]) -> bytes | None:
    """Gives the file without the items `numbers` (from 0) of the list under the top-level `key`."""
    text = data.decode("utf-8")
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    found = [(name, value) for name, value in root.value if name.value == key]
    if not found or not isinstance(found[0][1], yaml.SequenceNode):
        return None
    name, value = found[0]
    gone = sorted(set(numbers))
    if not gone:
        return data
    if value.flow_style:
        return _remove_in_brackets(text, value, gone)
    return _remove_lines(text, name, value, gone)


def _append_key(text: str, root: yaml.MappingNode, key: str, item: str, newline: str) -> bytes | None:
    if root.flow_style:
        at = _offset(text, root.end_mark) - 1
        comma = ", " if root.value else ""
        return f"{text[:at]}{comma}{key}: [{item}]{text[at:]}".encode()
    indent = " " * root.start_mark.column
    return _after_line(text, _last_line(root), f"{indent}{key}:{newline}{indent}  - {item}", newline)


def _fill_empty(text: str, name: yaml.Node, value: yaml.Node, item: str, newline: str) -> bytes | None:
    if value.value:  # `~` or `null` gives way to the list
        start, end = _offset(text, value.start_mark), _offset(text, value.end_mark)
        return f"{text[:start]}[{item}]{text[end:]}".encode()
    indent = " " * (name.start_mark.column + 2)
    return _after_line(text, name.end_mark.line, f"{indent}- {item}", newline)


def _append_in_brackets(text: str, value: yaml.SequenceNode, item: str) -> bytes:
    if value.value:
        at = _offset(text, value.value[-1].end_mark)
        return f"{text[:at]}, {item}{text[at:]}".encode()
    at = _offset(text, value.start_mark) + 1
    return f"{text[:at]}{item}{text[at:]}".encode()


def _append_to(text: str, name: yaml.Node, value: yaml.Node, item: str, newline: str) -> bytes | None:
    if is_null(value):
        return _fill_empty(text, name, value, item, newline)
    if not isinstance(value, yaml.SequenceNode):
        return None
    if value.flow_style:
        return _append_in_brackets(text, value, item)
    indent = " " * value.start_mark.column
    return _after_line(text, _last_line(value), f"{indent}- {item}", newline)


def _remove_in_brackets(text: str, value: yaml.SequenceNode, gone: list[int]) -> bytes:
    items = value.value
    for number in reversed(gone):
        start, end = _offset(text, items[number].start_mark), _offset(text, items[number].end_mark)
        last = number == len(items) - 1
        if not last:  # up to the next item, so that its separator goes too
            end = _offset(text, items[number + 1].start_mark)
        elif number > 0:
            start = _offset(text, items[number - 1].end_mark)
        text = text[:start] + text[end:]
        items = items[:number] + items[number + 1 :] if last else items
    return text.encode()


def _remove_lines(text: str, name: yaml.Node, value: yaml.SequenceNode, gone: list[int]) -> bytes | None:
    lines = text.splitlines(keepends=True) if _plain_breaks(text) else None
    if lines is None or value.start_mark.line == name.start_mark.line:
        return None
    for number in reversed(gone):
        item = value.value[number]
        del lines[item.start_mark.line : _last_line(item) + 1]
    return "".join(lines).encode()


def _after_line(text: str, line: int, added: str, newline: str) -> bytes | None:
    if not _plain_breaks(text):
        return None
    lines = text.splitlines(keepends=True)
    if not lines[line].endswith("\n"):
        lines[line] += newline
    lines.insert(line + 1, added + newline)
    return "".join(lines).encode()


def _plain_breaks(text: str) -> bool:
    """Tells whether lines end in LF or CRLF only, so that YAML's line numbers are those of `splitlines`."""
    return text.count("\n") == len(text.splitlines()) - (not text.endswith("\n") and bool(text))


def _last_line(node: yaml.Node) -> int:
    """Gives the 0-based line on which the content of a node ends; a block's own end mark is past comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        name, node = last if isinstance(last, tuple) else (last, last)
        if is_null(node) and not node.value:  # nothing is written there, so its mark is anywhere
            node = name
    end = node.end_mark
    return int(end.line if end.column else max(end.line - 1, node.start_mark.line))


def _offset(text: str, mark: yaml.Mark) -> int:
    # libyaml counts characters from the text's begin, and skips a BOM without counting it.
    return int(mark.index) + (1 if text.startswith("\ufeff") else 0)

"""Checks an edit of front matter with two YAML parsers: it says what was meant, and nothing else changed.

PyYAML's C parser reads as YAML 1.1 does, ruamel.yaml as 1.2. Both must give, for the edited key, exactly the
value and the type that was meant, and for everything else what they gave before.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import yaml

from pcpd.errors import Invalid
from pcpd.pages.nodes import Expansion, Unreadable, compose
from pcpd.pages.splice import Expected
from pcpd.pages.values import Plain, Value, written

Model: TypeAlias = Any
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[-+][0-9]+)?")
_TAG = "tag:yaml.org,2002:"


class Scalar(NamedTuple):
    """A scalar as a parser sees it: its resolved type and its spelling."""

    tag: str
    text: str


def check(before: str, after: str, expected: Expected) -> None:
    """Raises `Invalid` (`page.edit-unsafe`) unless `after` differs from `before` in just what was expected."""
    try:
        node = compose(after)
        if node is not None:
            Expansion(after).top(node)
        if all(_holds(read(before), read(after), expected) for read in (read_11, read_12)):
            return
    except Unreadable as error:
        reason = error.message
    else:
        reason = "a YAML parser reads the result in another way"
    raise Invalid(
        "page.edit-unsafe",
        f"`{'.'.join(expected.path)[:80]}` cannot be edited without touching something else: {reason}",
        hint="edit the page by hand",
    )


def means(model: Model, value: Value) -> bool:
    """Tells whether what a parser read is exactly `value`, type and all."""
    if isinstance(value, Mapping):
        return (
            isinstance(model, tuple)
            and not isinstance(model, Scalar)
            and len(model) == len(value)
            and all(
                isinstance(key, Scalar) and key.text == name and means(item, value[name])
                for (key, item), name in zip(model, value, strict=True)
            )
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            isinstance(model, list)
            and len(model) == len(value)
            and all(means(item, part) for item, part in zip(model, value, strict=True))
        )
    return isinstance(model, Scalar) and _is_scalar(model, value)


def is_already(text: str, path: tuple[str, ...], value: Value) -> bool:
    """Tells whether both parsers read `value` at `path` as it is, so that nothing need be written."""
    return all(means(_at(read(text), path), value) for read in (read_11, read_12))


def _is_scalar(model: Scalar, value: Value) -> bool:
    tag = model.tag.removeprefix(_TAG)
    if value is None:
        return tag == "null"
    if isinstance(value, Plain):
        return model.text == value
    if isinstance(value, str):
        return tag == "str" and model.text == value
    if isinstance(value, bool):
        return tag == "bool" and model.text == ("true" if value else "false")
    if isinstance(value, int):
        return tag == "int" and model.text == written(value)
    return tag == "float" and bool(_DECIMAL.fullmatch(model.text)) and float(model.text) == value


def _holds(before: Model, after: Model, expected: Expected) -> bool:
    path = expected.path
    if _without(before, path) != _without(after, path):
        return False
    new = _at(after, path)
    if expected.operation == "remove":
        return new is None
    if expected.operation == "set":
        return means(new, expected.value)
    old = _at(before, path)
    kept = old if isinstance(old, list) else []
    return isinstance(new, list) and bool(new) and new[:-1] == kept and means(new[-1], expected.value)


def _at(model: Model, path: tuple[str, ...]) -> Model:
    for name in path:
        if isinstance(model, Scalar) or not isinstance(model, tuple):
            return None
        model = next((item for key, item in model if isinstance(key, Scalar) and key.text == name), None)
    return model


def says(text: str, value: Value) -> bool:
    """Tells whether both parsers read `text`, a whole block, as exactly `value`."""
    return all(means(read(text), value) for read in (read_11, read_12))


def _without(model: Model, path: tuple[str, ...]) -> Model:
    """Gives the model without the pair at `path`; a map that the pair alone filled stays, empty."""
    if isinstance(model, Scalar) or not isinstance(model, tuple):
        return model
    kept = []
    for key, item in model:
        if isinstance(key, Scalar) and key.text == path[0]:
            if len(path) > 1:
                kept.append((key, _without(item, path[1:])))
        else:
            kept.append((key, item))
    return tuple(kept)


def read_11(text: str) -> Model:
    """Gives what YAML 1.1 makes of a block."""
    return _model(yaml.CSafeLoader(text).get_single_node())


def read_12(text: str) -> Model:
    """Gives what YAML 1.2 makes of a block, read with ruamel; tabs after a colon, which it does not know, are read
    as blanks. Raises `Unreadable`.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    def read(source: str) -> Model:
        return _model(YAML(typ="safe", pure=True).compose(source))

    return _first_that_reads(read, (text, text.replace("\t", " ")), YAMLError)


def _first_that_reads(
    read: Callable[[str], Model], sources: tuple[str, ...], error: type[Exception]
) -> Model:
    for source in sources:
        try:
            return read(source)
        except (error, ValueError):
            continue
    raise Unreadable("front-matter.invalid", "a second YAML parser cannot read the front matter")


def _model(node: Any) -> Model:
    """Gives a node of either parser as plain values: pairs in a tuple for a map, aliases written out."""
    if node is None:
        return ()
    if isinstance(node.value, str):
        return Scalar(str(node.tag), node.value)
    if node.id == "sequence":
        return [_model(item) for item in node.value]
    return tuple((_model(key), _model(value)) for key, value in node.value)

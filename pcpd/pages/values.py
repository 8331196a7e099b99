"""Values of front matter: what JSON can hold, how each is written in YAML, and how a node reads as one.

What is written reads back the same in YAML 1.1 and 1.2: whatever either would take for something else than a
string is quoted, numbers take the form that both know, and everything stands on one line.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pcpd.errors import Invalid, Usage
from pcpd.pages.keys import TIME_KEYS
from pcpd.pages.nodes import DEPTH_LIMIT, Unreadable, compose_value, has_plain_keys
from pcpd.pages.times import normal_time

Value: TypeAlias = Union[str, int, float, bool, Sequence["Value"], Mapping[str, "Value"], None]  # noqa: UP007


class Plain(str):
    """A scalar that stands without quotes, spelled exactly so: `1.10`, `012`, `2026-01-05`, `no`."""

    __slots__ = ()


_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))?", re.ASCII)
_CLOCK = re.compile(r"[0-9TZ:.+-]+")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_SAFE_DIGITS = 15
_DEEPEST = DEPTH_LIMIT - 4
_MOMENTS = TIME_KEYS | {"at"}
_SHARES = frozenset({"importance", "confidence"})


def written(value: Value, *, in_flow: bool = False) -> str:
    """Gives the YAML of `value` on one line; lists and maps in flow style, `in_flow` for a part of one.

    Raises `Invalid` (`value.invalid`) for what YAML cannot hold: NaN, infinity, half of a surrogate pair,
    nesting deeper than front matter may be.
    """
    return _written(value, in_flow, 0)


def _written(value: Value, in_flow: bool, depth: int) -> str:
    if depth > _DEEPEST:
        raise _refused("is nested too deep")
    if isinstance(value, str):
        return _string(value, in_flow)
    if value is None or isinstance(value, bool | int | float):
        return _number(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(name)}: {_written(item, True, depth + 1)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_written(item, True, depth + 1) for item in value) + "]"
    raise _refused("is no text, number, truth value, list or map")


def spelled(node: Node, source: str) -> Value:
    """Gives what `node` says, as JSON types: nothing that is written loses its spelling.

    A scalar without quotes is a number or a truth value only where JSON would write it in the same letters
    (`3`, `0.5`, `true`); else it is its text (`012`, `1.10`, `no`, dates), as `Plain` where quotes would change
    what YAML makes of it. A map whose keys are no scalars, as in a template's `{{title}}`, is its text in
    `source`. The caller has bounded the depth.
    """
    if isinstance(node, ScalarNode):
        return _scalar(node.value) if not node.style and not node.tag else node.value
    if isinstance(node, SequenceNode):
        return [spelled(item, source) for item in node.value]
    if isinstance(node, MappingNode) and has_plain_keys(node):
        return {key.value: spelled(value, source) for key, value in node.value}
    return source[node.start_mark.index : node.end_mark.index].strip()


def parse_assignment(text: str) -> tuple[str, Value]:
    """Reads `KEY=VALUE`, as `pcpd edit --set` takes it.

    The value is a truth value, null, a number, a date, a list or map in YAML's flow style, or a text in quotes,
    if it looks like one; else it is a text, as it stands. Raises `Usage` (`edit.assignment`).
    """
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise Usage("edit.assignment", f"{text[:80]!r} is not KEY=VALUE", hint="write it as importance=0.5")
    return key.strip(), _typed(value)


def as_meant(key: str, value: Value, depth: int = 0) -> Value:
    """Gives `value` with moments (`updated`, `source.at`, …) and shares (`importance`) as `Plain`.

    Pages write these without quotes; JSON has brought them as texts. Raises `Invalid` (`value.invalid`) for nesting
    deeper than front matter may be.
    """
    if depth > _DEEPEST:
        raise _refused("is nested too deep")
    if isinstance(value, str):
        name = key.rpartition(".")[2]
        is_plain = (name in _MOMENTS and _is_date(value)) or (key in _SHARES and _DECIMAL.fullmatch(value))
        return Plain(value) if is_plain else value
    if isinstance(value, Mapping):
        return {name: as_meant(name, item, depth + 1) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [as_meant("", item, depth + 1) for item in value]
    return value


def _typed(text: str) -> Value:
    bare = text.strip()
    if bare[:1] in {"[", "{", '"', "'"} and not bare.startswith("[["):
        try:
            node = compose_value(bare)
            return spelled(node, bare) if node is not None else text
        except Unreadable:
            return text
    typed = _scalar(bare)
    if not bare or not isinstance(typed, Plain):
        return text if (typed is None and bare != "null") or isinstance(typed, str) else typed
    return typed if _is_date(bare) or _DECIMAL.fullmatch(bare) else text


def _scalar(text: str) -> Value:
    if text in {"", "null"}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    if len(text) <= _SAFE_DIGITS and _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text if is_word(text) else Plain(text)


def is_word(text: str) -> bool:
    """Tells whether every YAML takes `text`, without quotes, for a string."""
    return text[:1].isalpha() and text.lower() not in _WORDS


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        normal_time(text)
    except Invalid:
        return False
    return True


def _string(text: str, in_flow: bool) -> str:
    if isinstance(text, Plain):
        return text if _is_plain(text, in_flow) or _CLOCK.fullmatch(text) else _quoted(text)
    return text if text and is_word(text) and _is_plain(text, in_flow) else _quoted(text)


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise _refused("has a key that is no text")
    return _string(str(name), True)


def _is_plain(text: str, in_flow: bool) -> bool:
    """Tells whether `text` can stand without quotes, whatever it would then mean."""
    if not text or not text.isprintable() or text[-1] in " :" or ": " in text or " #" in text:
        return False
    first = text[0]
    if not (first.isalnum() or first in "+~.=<_" or (first == "-" and text[1:2].isalnum())):
        return False
    return not (in_flow and any(mark in text for mark in ",[]{}:?"))


def _quoted(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    code = ord(letter)
    category = unicodedata.category(letter)
    if category == "Cs":
        raise _refused("holds half of a surrogate pair")
    if letter.isprintable() or (category in {"Cf", "Zs", "Co"} and code != 0xFEFF):
        return letter
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _number(value: float | None) -> str:
    """Writes a number, a truth value or null."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _integer(value) if isinstance(value, int) else _float(value)


def _integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        raise _refused("is a number of too many digits") from None


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise _refused("is no finite number")
    mantissa, sign, exponent = repr(value).partition("e")
    if sign and "." not in mantissa:
        # YAML 1.1 takes 1e-05 for a string.
        mantissa += ".0"
    return mantissa + sign + exponent


def _refused(why: str) -> Invalid:
    return Invalid("value.invalid", f"the value {why} and cannot stand in front matter")

"""Renders a page that has no file yet: front matter in the order given, then the body byte for byte.

A `frontmatter.Post` carries the page; its handler emits YAML through ruamel. What a string needs to stay a
string, `values` decides; both YAML parsers then read the block back and must find what was meant.
"""

import io
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import frontmatter as post_format
from frontmatter.default_handlers import BaseHandler
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter

from pcpd.errors import Invalid
from pcpd.pages.block import FENCE, Text, decode
from pcpd.pages.nodes import Unreadable, compose
from pcpd.pages.values import Value, as_meant, written
from pcpd.pages.verify import says

FLOW_LONGEST = 96
_STRING_TAG = "tag:yaml.org,2002:str"


class _Scalar(NamedTuple):
    """A scalar on its way to the emitter: quoted text, or text that stands as it is."""

    text: str
    is_quoted: bool


class _Representer(RoundTripRepresenter):
    """Represents `_Scalar` without asking ruamel what it would quote."""

    def represent_own(self, data: _Scalar) -> ScalarNode:
        if data.is_quoted:
            return self.represent_scalar(_STRING_TAG, data.text, style='"')
        tag = self.serializer.resolver.resolve(ScalarNode, data.text, (True, False))
        return self.represent_scalar(tag, data.text)


_Representer.add_representer(_Scalar, _Representer.represent_own)


class RuamelHandler(BaseHandler):
    """Emits a post's metadata through ruamel, and its content without touching a byte."""

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = FENCE

    def export(self, metadata: dict[str, object], **_: object) -> str:
        """Gives the YAML of `metadata`, each line with its end; the empty text for no keys."""
        if not metadata:
            return ""
        yaml = YAML(typ="rt", pure=True)
        yaml.Representer = _Representer
        yaml.width = sys.maxsize
        yaml.allow_unicode = True
        yaml.indent(mapping=2, sequence=4, offset=2)
        out = io.StringIO()
        yaml.dump(_block_map(metadata), out)
        return out.getvalue()

    def format(self, post: post_format.Post, **_: object) -> str:
        """Gives the text of the page."""
        yaml = self.export(post.metadata)
        return f"{FENCE}\n{yaml}{FENCE}\n{post.content}" if yaml else str(post.content)


def rendered(fields: Mapping[str, Value], body: str) -> bytes:
    """Gives the bytes of a new page; `frontmatter.new_page` says what holds. Raises `Invalid`."""
    meant = {key: as_meant(key, value) for key, value in fields.items()}
    for key, value in meant.items():
        written({key: value})
    post = post_format.Post(body, RuamelHandler())
    post.metadata.update(meant)
    try:
        data = post_format.dumps(post).encode()
    except UnicodeEncodeError:
        raise Invalid("page.content", "the text holds half of a surrogate pair") from None
    _check(decode(data), meant, body)
    return data


def _check(page: Text, meant: Mapping[str, Value], body: str) -> None:
    """Raises `Invalid` unless the page has exactly the front matter and the body that were meant."""
    span = page.span
    try:
        yaml = page.text[span.start : span.end]
        compose(yaml)
        is_right = page.text[span.body :] == body
        is_right = is_right and (says(yaml, meant) if meant else span.is_absent)
    except Unreadable:
        is_right = False
    if not is_right:
        raise Invalid(
            "page.content",
            "the text would be taken for something else than the body of a page",
            hint="begin it with something else than a line `---` or a byte order mark",
        )


def _block_map(fields: Mapping[str, Any]) -> CommentedMap:
    return CommentedMap((_scalar(key), _node(value)) for key, value in fields.items())


def _node(value: Value) -> Any:
    """Gives `value` for the emitter: in flow style where that fits a line, else as a block."""
    if not isinstance(value, Mapping) and (isinstance(value, str) or not isinstance(value, Sequence)):
        return _scalar(value)
    is_flow = len(written(value)) <= FLOW_LONGEST
    if isinstance(value, Mapping):
        node: Any = CommentedMap(
            (_scalar(key, in_flow=is_flow), _part(item, is_flow)) for key, item in value.items()
        )
    else:
        node = CommentedSeq(_part(item, is_flow) for item in value)
    if is_flow:
        node.fa.set_flow_style()
    return node


def _part(value: Value, is_flow: bool) -> Any:
    if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
        return _scalar(value, in_flow=is_flow)
    return _node(value)


def _scalar(value: Value, *, in_flow: bool = False) -> _Scalar:
    text = written(value, in_flow=in_flow)
    return _Scalar(str(value), True) if text.startswith('"') else _Scalar(text, False)

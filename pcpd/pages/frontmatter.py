"""Front matter of a page's bytes: read it, edit one key, make it anew. Every byte that is not meant stays.

An edit splices the source text and is checked by two YAML parsers before anybody sees it; where it cannot be
made safely it is refused, and nothing has changed. A page whose front matter does not parse is never edited.
Source: pages.md §2 and §3, product.md (promise 2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pcpd.errors import Invalid
from pcpd.pages.block import FENCE, Text, decode
from pcpd.pages.keys import FIRST_LINE
from pcpd.pages.model import SIZE_LIMIT
from pcpd.pages.nodes import Expansion, Unreadable, compose
from pcpd.pages.splice import Change, Expected, Splicer
from pcpd.pages.values import Plain, Value, as_meant, parse_assignment, spelled
from pcpd.pages.verify import check, is_already

__all__ = [
    "Block",
    "Plain",
    "Value",
    "append_item",
    "new_page",
    "parse_assignment",
    "read",
    "remove_key",
    "set_key",
    "split",
]


@dataclass(frozen=True, slots=True)
class Block:
    """The two parts of a page. `yaml` is None without front matter; `body` starts at line `body_line`."""

    yaml: str | None
    body: str
    body_line: int
    newline: str
    has_bom: bool


class _Page(NamedTuple):
    """A page ready to be edited: its text, and the YAML of its block, which parses."""

    text: Text
    yaml: str


def split(data: bytes) -> Block:
    """Gives front matter and body of `data`. Raises `Invalid` as `read` does, but does not parse the YAML."""
    text = _closed(decode(data))
    span = text.span
    yaml = None if span.is_absent else text.text[span.start : span.end]
    line = 1 + text.text.count("\n", 0, span.body)
    return Block(yaml, text.text[span.body :], line, text.newline, text.has_bom)


def read(data: bytes) -> dict[str, Value]:
    """Gives the front matter as JSON types, each scalar as it is spelled (see `values.spelled`).

    Raises `Invalid`: `page.front-matter` (line and reason) if it does not parse, `page.encoding`, `page.nul` or
    `page.too-large` for bytes that are no page.
    """
    yaml = _editable(data).yaml
    node = compose(yaml)
    return {} if node is None else {key.value: spelled(value, yaml) for key, value in node.value}


def set_key(data: bytes, key: str, value: Value) -> bytes:
    """Gives the page in which `key` has `value`; `a.b` is the key `b` of the map `a`.

    A key that is missing is added at the end of its map, a page without front matter gets a block on top. A
    value that is there already, type and all, changes nothing. Raises `Invalid` as `read` does, and
    `page.anchor`, `page.edit-unsafe`, `key.type` or `value.invalid` where it would touch something else.
    """
    page = _editable(data)
    meant = as_meant(key, value)

    def edit(splicer: Splicer) -> Change:
        change = splicer.set_key(key, meant)
        expected = change.expected
        return Change(page.yaml, expected) if _stands(page.yaml, expected) else change

    return _edited(page, edit)


def remove_key(data: bytes, key: str) -> bytes:
    """Gives the page without `key`, its lines gone, comments of other keys kept.

    Raises like `set_key`, and `NotFound` (`page.key-not-found`).
    """
    return _edited(_editable(data), lambda splicer: splicer.remove_key(key))


def append_item(data: bytes, key: str, value: Value) -> bytes:
    """Gives the page in which the list `key` ends with `value`, in the style that the list has.

    A missing or empty list is made. Raises like `set_key`; `key.type` for a value that is no list.
    """
    return _edited(_editable(data), lambda splicer: splicer.append_item(key, as_meant("", value)))


def new_page(fields: Mapping[str, Value], body: str) -> bytes:
    """Gives the bytes of a page with `fields` as front matter, in their order, and `body` after it.

    Moments (`updated`, `source.at`, …) stand without quotes, every other string as a string. Without fields
    there is no front matter. Raises `Invalid` (`value.invalid`, `page.too-large`, `page.content`) for what no
    page can hold.
    """
    from pcpd.pages.render import rendered

    return rendered(fields, body)


def check_editable(data: bytes) -> Text:
    """Gives the text of a page that may be edited. Raises as `read` does."""
    return _editable(data).text


def _stands(yaml: str, expected: Expected) -> bool:
    return is_already(yaml, expected.path, expected.value)


def _edited(page: _Page, edit: Callable[[Splicer], Change]) -> bytes:
    text = page.text
    change = edit(Splicer(page.yaml, text.newline))
    if change.text == page.yaml:
        return text.encode(text.text)
    check(page.yaml, change.text, change.expected)
    span = text.span
    if span.is_absent:
        fence = FENCE + text.newline
        new = f"{fence}{change.text}{fence}{text.text}"
    else:
        new = text.text[: span.start] + change.text + text.text[span.end :]
    result = text.encode(new)
    if len(result) > SIZE_LIMIT:
        raise Invalid("page.too-large", f"the page would have more than {SIZE_LIMIT} bytes")
    return result


def _editable(data: bytes) -> _Page:
    """Gives a page whose front matter, if it has any, parses. Raises `Invalid`."""
    text = _closed(decode(data))
    yaml = text.text[text.span.start : text.span.end]
    try:
        node = compose(yaml)
        if node is not None:
            Expansion(yaml).top(node)
    except Unreadable as error:
        raise _unparsable(error) from None
    return _Page(text, yaml)


def _closed(text: Text) -> Text:
    if text.span.is_unclosed:
        raise _unparsable(Unreadable("front-matter.unclosed", "it has no closing line `---`", 1 - FIRST_LINE))
    return text


def _unparsable(error: Unreadable) -> Invalid:
    line = None if error.line is None else error.line + FIRST_LINE
    at = "" if line is None else f" (line {line} of the file)"
    return Invalid(
        "page.front-matter",
        f"the page is not edited, since its front matter cannot be read{at}: {error.message}",
        hint="correct it in an editor; nothing has been changed",
        details={"line": line, "problem": error.code},
    )

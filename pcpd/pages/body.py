"""Edits of a page's text: by heading, by unique text, at its start or end. Every other byte stays.

Text that comes in takes the line ends of the page. No edit of the body can make, unmake or change front matter,
and a page whose front matter does not parse is not edited. Source: pages.md, product.md (promise 2).
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from pcpd.errors import Invalid, NotFound
from pcpd.pages.block import Text, decode
from pcpd.pages.frontmatter import check_editable
from pcpd.pages.markdown import Heading, headings
from pcpd.pages.sections import place_of, with_sizes

__all__ = [
    "Heading",
    "append",
    "outline",
    "prepend",
    "replace_body",
    "replace_section",
    "replace_text",
    "section",
]

LINES_NAMED = 10
_BREAK = re.compile(r"\r\n|\n|\r")


def outline(data: bytes) -> list[Heading]:
    """Gives the headings of the body that stand outside code: offsets in the body, lines in the file, and the bytes
    of each section, with its sub-sections.

    Raises `Invalid` for bytes that are no page (`page.encoding`, `page.nul`, `page.too-large`).
    """
    text = decode(data)
    return with_sizes(_headings(_body(text), _lines_before(text)), _body(text))


def section(data: bytes, heading: str) -> str:
    """Gives the text under `heading`, with its sub-sections, without the heading itself.

    `heading` names it as `sections.place_of` takes it: `Text`, `## Text`, `Above > Text`, `Text [2]`. Raises
    `NotFound` (`heading.not-found`) and `Invalid` (`heading.not-unique`).
    """
    text = decode(data)
    body = _body(text)
    start, end = _section(body, heading, _lines_before(text))
    return body[start:end]


def replace_section(data: bytes, heading: str, text: str) -> bytes:
    """Gives the page in which `text` stands under `heading`, in place of what did, sub-sections included.

    The blank lines after the heading and before the next one stay. Raises as `section` does, and as all edits.
    """

    def edit(body: str, newline: str) -> str:
        start, end = _section(body, heading, before)
        old, new = body[start:end], _adapted(text, newline).strip("\r\n")
        if not old.strip("\r\n"):
            return _ended(body[:start], newline) + _ended(new, newline) + body[start:]
        lead = old[: len(old) - len(old.lstrip("\r\n"))]
        tail = old[len(old.rstrip("\r\n")) :]
        return body[:start] + lead + new + tail + body[end:]

    before = _lines_before(decode(data))

    return _edited(data, edit)


def replace_text(data: bytes, old: str, new: str) -> bytes:
    """Gives the page in which `new` stands for `old`, which stands in the body exactly once.

    Raises `NotFound` (`text.not-found`), `Invalid` (`text.not-unique`, with count and lines), and as all edits.
    """

    def edit(body: str, newline: str) -> str:
        for wanted in dict.fromkeys((old, _adapted(old, newline))):
            at = body.find(wanted) if wanted else -1
            if at >= 0:
                _refuse_second(body, wanted, at, before)
                return body[:at] + _adapted(new, newline) + body[at + len(wanted) :]
        raise NotFound(
            "text.not-found",
            "the text to replace does not stand in the body of the page",
            hint="read the page again and copy the text exactly, blanks and line breaks too",
        )

    before = _lines_before(decode(data))
    return _edited(data, edit)


def append(data: bytes, text: str) -> bytes:
    """Gives the page with `text` as its last lines. Raises as all edits."""
    return _edited(
        data, lambda body, newline: _ended(body, newline) + _ended(_adapted(text, newline), newline)
    )


def prepend(data: bytes, text: str) -> bytes:
    """Gives the page with `text` as the first lines of its body, below the front matter. Raises as all edits."""
    return _edited(data, lambda body, newline: _ended(_adapted(text, newline), newline) + body)


def replace_body(data: bytes, text: str) -> bytes:
    """Gives the page with its front matter as it was, and `text` as its body. Raises as all edits."""
    return _edited(data, lambda _, newline: _adapted(text, newline))


def _edited(data: bytes, edit: Callable[[str, str], str]) -> bytes:
    text = check_editable(data)
    head = text.text[: text.span.body]
    new = edit(text.text[text.span.body :], text.newline)
    if new and head and not head.endswith("\n"):
        head += text.newline
    try:
        result = text.encode(head + new)
        after = decode(result)
    except UnicodeEncodeError:
        raise Invalid("text.invalid", "the text holds half of a surrogate pair") from None
    if after.text[after.span.body :] != new:
        raise Invalid(
            "text.front-matter",
            "the edit would turn text of the page into front matter",
            hint="begin the text with something else than a line `---`",
        )
    return result


def _body(text: Text) -> str:
    return text.text if text.span.is_unclosed else text.text[text.span.body :]


def _lines_before(text: Text) -> int:
    """Gives how many lines of the file stand before the body."""
    return 0 if text.span.is_unclosed else text.text.count("\n", 0, text.span.body)


def _headings(body: str, before: int) -> list[Heading]:
    return [heading._replace(line=heading.line + before) for heading in headings(body)]


def _section(body: str, wanted: str, before: int) -> tuple[int, int]:
    """Gives the offsets of the text under a heading: to the next one of its level or above."""
    found = _headings(body, before)
    match = found[place_of(found, wanted)]
    following = (other.start for other in found if other.start > match.start and other.level <= match.level)
    return match.end, next(following, len(body))


def _refuse_second(body: str, wanted: str, at: int, before: int) -> None:
    if body.find(wanted, at + 1) < 0:
        return
    count = max(2, body.count(wanted))
    lines = [1 + before + body.count("\n", 0, place) for place in islice(_places(body, wanted), LINES_NAMED)]
    raise Invalid(
        "text.not-unique",
        f"the text to replace stands {count} times in the page, on line {', '.join(map(str, lines))}",
        hint="give more of the text around the place that is meant",
        details={"count": count, "lines": lines},
    )


def _places(body: str, wanted: str) -> Iterator[int]:
    at = body.find(wanted)
    while at >= 0:
        yield at
        at = body.find(wanted, at + 1)


def _adapted(text: str, newline: str) -> str:
    """Gives `text` with the line ends of the page."""
    return text if newline == "\n" and "\r" not in text else _BREAK.sub(newline, text)


def _ended(text: str, newline: str) -> str:
    return text if not text or text.endswith("\n") else text + newline

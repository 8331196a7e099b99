"""Merges two versions of a page by meaning, over the version that both were made from.

Front matter by key (`keymerge`), text by lines and words (`textmerge`). What only one side changed is taken from
it, byte for byte but for line ends, which are those of ours; what both changed otherwise clashes, and nothing is
merged then, unless one side is preferred: that decides keys, never text. Nothing is invented, and nothing that a
side wrote is lost. Source: pages.md §5, and what is promised of pages between devices.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pcpd.errors import Invalid
from pcpd.pages.block import BOM, Span, decode, find_block
from pcpd.pages.keyed import Front, read_front
from pcpd.pages.keymerge import Side, merge_fronts
from pcpd.pages.model import SIZE_LIMIT
from pcpd.pages.nodes import Unreadable
from pcpd.pages.textmerge import merge_texts, with_line_ends

__all__ = ["Clash", "Merged", "Side", "merge"]


@dataclass(frozen=True, slots=True)
class Clash:
    """What both sides changed otherwise, as each version has it; None: it has nothing there.

    `key` is a front matter key (`a.b`: of a nested map), `---` for front matter as a whole, empty for the text.
    `chosen` is the side that was taken, None where nobody decided.
    """

    key: str
    base: str | None
    ours: str | None
    theirs: str | None
    chosen: Side | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged page; None where a clash is not decided. `clashes` has those that were decided as well."""

    data: bytes | None
    clashes: tuple[Clash, ...] = ()


class _Version(NamedTuple):
    """One version in parts, with `\\n` as its line end; `front` is None where it cannot be read."""

    text: str
    has_bom: bool
    fence: str
    front: Front | None
    close: str
    body: str


def merge(base: bytes, ours: bytes, theirs: bytes, *, prefer: Side | None = None) -> Merged:
    """Merges `theirs` into `ours`. `base` may be empty: then both were added.

    Never raises: a page that is no text, or too large, clashes as a whole (with all texts None).
    """
    if theirs in (base, ours):
        return Merged(ours)
    if ours == base:
        return Merged(theirs)
    try:
        own = decode(ours)
        versions = (_version(base), _version(ours), _version(theirs))
    except Invalid:
        return Merged(None, (Clash("", None, None, None),))
    text, clashes = _merged(*versions, prefer)
    if any(clash.chosen is None for clash in clashes):
        return Merged(None, clashes)
    newline_like = own.text if "\n" in own.text else decode(theirs).text
    flags = [version.has_bom for version in versions]
    has_bom = flags[2] if flags[1] == flags[0] else flags[1]
    data = own._replace(has_bom=has_bom).encode(with_line_ends(text, newline_like))
    if len(data) > SIZE_LIMIT:
        return Merged(None, (Clash("", None, None, None),))
    return Merged(data, clashes)


def _merged(
    base: _Version, ours: _Version, theirs: _Version, prefer: Side | None
) -> tuple[str, tuple[Clash, ...]]:
    """Gives the text of the merged page, and what clashes."""
    if ours.front is None or theirs.front is None:
        return _by_lines(base, ours, theirs)
    known = base.front or Front("", None)
    front = merge_fronts(known, ours.front, theirs.front, prefer)
    body = merge_texts(base.body, ours.body, theirs.body)
    clashes = (
        *(Clash(*clash) for clash in front.clashes),
        *(Clash("", *clash) for clash in body.clashes),
    )
    text = _page(front.yaml, body.text, (base, ours, theirs))
    if any(clash.chosen is None for clash in clashes) or _is_whole(text, front.yaml, body.text):
        return text, clashes
    return text, (*clashes, Clash("", base.body, ours.body, theirs.body))


def _by_lines(base: _Version, ours: _Version, theirs: _Version) -> tuple[str, tuple[Clash, ...]]:
    """Merges pages of which one has front matter that cannot be read: as text, line by line."""
    merged = merge_texts(base.text, ours.text, theirs.text, by_words=False)
    return merged.text, tuple(Clash("", *clash) for clash in merged.clashes)


def _page(yaml: str, body: str, versions: tuple[_Version, _Version, _Version]) -> str:
    """Puts a page together, with the fences of ours; without front matter where a side gave it up."""
    _, ours, theirs = versions
    if not yaml and not (ours.fence and theirs.fence):
        return body
    side = ours if ours.fence else theirs
    close = side.close if side.close.endswith("\n") or not body else side.close + "\n"
    return side.fence + yaml + close + body


def _is_whole(text: str, yaml: str, body: str) -> bool:
    """Tells whether the page reads as the parts that it was made of."""
    span = find_block(text)
    return not span.is_unclosed and (text[span.start : span.end], text[span.body :]) == (yaml, body)


def _version(data: bytes) -> _Version:
    """Takes a version apart. Raises `Invalid` for bytes that are no text."""
    text = decode(data).text.replace("\r\n", "\n")
    span = find_block(text)
    return _Version(
        text=text,
        has_bom=data.startswith(BOM),
        fence=text[: span.start],
        front=_front(text, span),
        close="" if span.is_unclosed else text[span.end : span.body],
        body=text if span.is_unclosed else text[span.body :],
    )


def _front(text: str, span: Span) -> Front | None:
    """Gives the front matter of a page; None where it cannot be read."""
    if span.is_unclosed:
        return None
    try:
        return read_front(text[span.start : span.end])
    except Unreadable:
        return None

"""A page: Markdown with optional YAML front matter, parsed from bytes without ever failing."""

from typing import Any, NamedTuple

from yaml.nodes import ScalarNode

from pcpd.pages import links
from pcpd.pages.block import BOM, Span, find_block
from pcpd.pages.keys import FIRST_LINE, Facts
from pcpd.pages.markdown import conflict_line, first_title
from pcpd.pages.model import (
    LIFECYCLES,
    SENSITIVITIES,
    SIZE_LIMIT,
    TYPES,
    Link,
    LinkKind,
    Page,
    Problem,
)
from pcpd.pages.nodes import Expansion, Unreadable, compose
from pcpd.pages.paths import PagePath

__all__ = [
    "LIFECYCLES",
    "SENSITIVITIES",
    "SIZE_LIMIT",
    "TYPES",
    "Link",
    "LinkKind",
    "Page",
    "Problem",
    "parse",
]

MESSAGE_MARK = "<!-- pcp:message "


class _FrontMatter(NamedTuple):
    """What was read from a block: fields of `Page`, properties, and edges."""

    values: dict[str, Any]
    properties: tuple[tuple[str, str], ...]
    links: tuple[Link, ...]
    problems: list[Problem]


def parse(path: PagePath, data: bytes) -> Page:
    """Gives the page that `data`, the bytes of the file of `path`, holds.

    Never raises: what cannot be taken as it is becomes one of `problems`. A page whose front matter cannot be
    read has its whole text as body and counts as sensitive: nobody can tell what it said about who may see
    it.
    Source: pages.md §2 and §3.
    """
    text, problems = _text(data)
    span = find_block(text)
    front = _front_matter(text, span, problems)
    hidden = front is None
    values, properties, edges, found = front or _FrontMatter({"sensitivity": "sensitive"}, (), (), [])
    problems += found
    if values.pop("is_unclear", False) or (span.is_absent and _has_nul(problems)):
        values["sensitivity"] = "sensitive"
    shown = text[span.body :] if span.body else text
    line = 1 + text.count("\n", 0, span.body)
    if "<<<<<<<" in text and (conflict := conflict_line(text if hidden else shown)) is not None:
        at = conflict + (1 if hidden else line)
        problems.append(Problem("page.conflict", "a merge left its conflict markers here", at))
        if at == 1:  # both sides may have front matter, which is none while the markers stand before it
            values["sensitivity"] = "sensitive"
    title = values.pop("title", None) or first_title(shown) or path.name
    edges += links.extract(shown, line)
    if len(edges) >= links.LINK_LIMIT:
        edges = edges[: links.LINK_LIMIT]
        problems.append(Problem("page.links", f"only the first {links.LINK_LIMIT} links are followed"))
    return Page(
        path=path,
        title=title,
        is_conversation="x_session" in values.pop("keys", ()) or _has_messages(shown),
        links=edges,
        properties=properties,
        body=text if hidden else shown,
        body_line=1 if hidden else line,
        problems=tuple(problems),
        **values,
    )


def _text(data: bytes) -> tuple[str, list[Problem]]:
    """Gives what decodes of the first 10 MiB, without BOM, and what is wrong with the bytes."""
    problems: list[Problem] = []
    if len(data) > SIZE_LIMIT:
        problems.append(Problem("page.too-large", f"the page has more than {SIZE_LIMIT} bytes"))
        data = _cut(data)
    data = data.removeprefix(BOM)
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        problems.append(Problem("page.encoding", f"the page is not UTF-8 (byte {error.start})"))
        is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = str(data, "utf-16" if is_utf16 else "utf-8", "replace")
    if "\0" in text:
        problems.append(
            Problem("page.nul", "the page holds NUL bytes", 1 + text.count("\n", 0, text.index("\0")))
        )
        text = text.replace("\0", "\ufffd")
    return text, problems


def _has_nul(problems: list[Problem]) -> bool:
    """Tells whether the bytes may be UTF-16 or UTF-32 without a mark, in which front matter looks like none."""
    return any(each.code == "page.nul" for each in problems)


def _cut(data: bytes) -> bytes:
    """Gives the first 10 MiB, without the part of a character that the cut would leave."""
    end = SIZE_LIMIT
    while end > SIZE_LIMIT - 4 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def _front_matter(text: str, span: Span, problems: list[Problem]) -> _FrontMatter | None:
    """Reads the block at `span`; None, and a problem, if nothing of it can be taken."""
    if span.is_absent:
        return _FrontMatter({}, (), (), [])
    if span.is_unclosed:
        problems.append(Problem("front-matter.unclosed", "the front matter has no closing line `---`", 1))
        return None
    source = text[span.start : span.end]
    try:
        node = compose(source)
        expansion = Expansion(source)
        top = expansion.top(node) if node is not None else {}
    except Unreadable as error:
        line = None if error.line is None else error.line + FIRST_LINE
        problems.append(Problem(error.code, error.message, line))
        return None
    facts = Facts()
    facts.read(top)
    if "[[" in source:
        _property_links(top, facts)
    facts.values["keys"] = top.keys()
    return _FrontMatter(facts.values, tuple(expansion.pairs), tuple(facts.links), facts.problems)


def _property_links(top: dict[str, Any], facts: Facts) -> None:
    """Adds wiki links that stand in values of the person's own keys, which Obsidian follows as well."""
    for key, node in top.items():
        if key in {"relations", "derived_from"}:
            continue
        for item in [node] if type(node) is ScalarNode else node.value:
            if type(item) is ScalarNode and "[[" in item.value:
                facts.links += links.extract(item.value, item.start_mark.line + FIRST_LINE)


def _has_messages(body: str) -> bool:
    return MESSAGE_MARK in body and (body.startswith(MESSAGE_MARK) or f"\n{MESSAGE_MARK}" in body)

"""The tool read_page: a page whole, in parts when it is long, its outline, or one section.

The version that replaces a page is given to who has seen all of it in one answer. All else gets a mark that is good
for edits alone (`memory.bases`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcpd.errors import Usage
from pcpd.mcp_server.answers import DATA_NOTE, NOTE, SOURCE, WORD_BYTES, Shape, said, source_of, title_of
from pcpd.mcp_server.arguments import Arguments, number, optional, page, truth
from pcpd.mcp_server.budget import cut, shortened
from pcpd.mcp_server.tool import Answer, Tool, boolean, integer, maybe, rows, string
from pcpd.memory import read
from pcpd.memory.bases import part_mark
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import PageRead
from pcpd.pages import body
from pcpd.pages.markdown import Heading

HEADINGS = 1_000
HEADING_BYTES = 300


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a page is given: `what` it is in words, its text or headings, and where the next one begins.

    `characters` is how long all of it is: the page, or the section.
    """

    what: str
    content: str
    characters: int
    following: int | None
    is_whole: bool = False
    headings: Sequence[Any] = ()


def read_page(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Reads one page or a part of it."""
    path, heading = page(arguments), (optional(arguments, "section") or "").strip()
    wants_outline = truth(arguments, "outline")
    if heading and wants_outline:
        raise Usage("tool.argument", "`outline` and `section` are two ways to read", hint="send one of them")
    offset = number(arguments, "offset", 0)
    found = read.read_page(memory, caller, path)
    if wants_outline:
        return _answer(found, _outline(found, offset))
    if heading:
        return _answer(found, _section(found, heading, offset))
    return _answer(found, _text(found, offset))


def _text(found: PageRead, offset: int) -> _Part:
    whole = found.data.decode("utf-8", "replace")
    content, following = cut(whole, min(offset, len(whole)))
    is_whole = offset == 0 and following is None
    what = "whole page" if is_whole else "part of the page"
    return _Part(what, content, len(whole), following, is_whole and whole.encode() == found.data)


def _section(found: PageRead, heading: str, offset: int) -> _Part:
    whole = body.section(found.data, heading)
    content, following = cut(whole, min(offset, len(whole)))
    return _Part(f"section {shortened(heading, HEADING_BYTES)!r}", content, len(whole), following)


def _outline(found: PageRead, offset: int) -> _Part:
    """Gives the headings from the one of that number on."""
    whole = found.data.decode("utf-8", "replace")
    headings = body.outline(found.data)
    before = len(whole) - len(found.page.body) if whole.endswith(found.page.body) else 0
    rows = [(heading, heading.start + before) for heading in headings[offset : offset + HEADINGS]]
    shown = rows[: _HEADING.fit(rows)]
    following = offset + len(shown) if offset + len(shown) < len(headings) else None
    return _Part(f"outline, {len(headings)} headings", "", len(whole), following, headings=shown)


def _answer(found: PageRead, part: _Part) -> Answer:
    headings, lines = _HEADING.shown(part.headings)
    version = found.version if part.is_whole else None
    edit_version = None if part.is_whole else part_mark(found.version)
    which = (
        f"version {version}" if version else f"for edits: if_version {edit_version}; not to be written back"
    )
    where = source_of(found)
    unit = "headings" if part.headings else f"of {part.characters} characters"
    more = [] if part.following is None else [f"[cut: read on with offset {part.following} ({unit})]"]
    data = {
        "path": str(found.path),
        "title": title_of(found),
        "type": shortened(found.known.type if found.known else found.page.type, WORD_BYTES),
        **where,
        "what": part.what,
        "version": version,
        "edit_version": edit_version,
        "content": part.content,
        "headings": headings,
        "characters": part.characters,
        "next_offset": part.following,
        "note": DATA_NOTE,
    }
    head = f"{found.path}: {part.what} ({which}; {said(where)}). {DATA_NOTE}"
    return Answer("\n".join([head, "", *([part.content] if not headings else lines), *more]), data)


def _heading(row: tuple[Heading, int]) -> dict[str, Any]:
    heading, offset = row
    return {
        "level": heading.level,
        "text": shortened(heading.text, HEADING_BYTES),
        "line": heading.line,
        "offset": offset,
        "bytes": heading.bytes,
    }


_HEADING = Shape(
    _heading,
    lambda row: f"{'#' * row['level']} {row['text']} ({row['bytes']} bytes, offset {row['offset']})",
)

READING: tuple[Tool, ...] = (
    Tool(
        "read_page",
        "Read a page",
        "Read one page of the memory: whole, or only its `outline` (headings with sizes) or one `section`. Read a "
        "page before you change it. A whole page comes with the `version` that write_page needs to replace it. A "
        "page of more than some 40,000 bytes comes in parts: go on with `offset`, or look at its outline and read "
        "the section that you need. Parts, outlines and sections come with an `edit_version`, which edit_page, "
        "move_page and remove_page take, and write_page does not.",
        {
            "path": string(
                "The page's path, such as notes/boiler, or its file name where that is the only one."
            ),
            "outline": boolean("True: the headings of the page instead of its text."),
            "section": string(
                "A heading of the page: only the text below it. `## Costs` names the level too."
            ),
            "offset": integer(
                "Where to go on: the next_offset of the answer before, or the offset of a heading."
            ),
        },
        ("path",),
        {
            "path": string("The page's path."),
            "title": string("The page's title."),
            "type": string("semantic, episodic or procedural."),
            **SOURCE,
            "what": string("What this is of the page: whole, part, section or outline."),
            "version": maybe(
                string("What write_page takes as if_version; null unless this is the whole page.")
            ),
            "edit_version": maybe(
                string("What edit_page, move_page and remove_page take as if_version after a part was read.")
            ),
            "content": string(
                "The text, with its front matter where the page has some; empty for an outline."
            ),
            "headings": rows(
                "The outline.",
                {
                    "level": integer("1 to 6."),
                    "text": string("The heading, as `section` takes it."),
                    "line": integer("Its line in the file, from 1."),
                    "offset": integer("Where it begins: read_page goes on there."),
                    "bytes": integer("How long its section is, with all below it."),
                },
            ),
            "characters": integer("How long the page, or the section, is as a whole."),
            "next_offset": maybe(integer("Where the next part begins; null at the end.")),
            **NOTE,
        },
        read_page,
    ),
)

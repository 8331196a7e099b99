"""The tool page_links: what a page links to, what links to it, the pages around it; or all links to nowhere."""

from collections.abc import Mapping, Sequence
from typing import Any

from pcpd.errors import Usage
from pcpd.index.graph import Neighbour
from pcpd.index.links import Edge, LinksAnswer
from pcpd.mcp_server.answers import (
    CURSOR,
    DATA_NOTE,
    HINT,
    NOTE,
    SOURCE,
    TITLE_BYTES,
    WORD_BYTES,
    Shape,
    hinted,
    more,
    place,
    said,
    source,
)
from pcpd.mcp_server.arguments import Arguments, cursor_of, number, optional_page, truth
from pcpd.mcp_server.budget import shortened
from pcpd.mcp_server.tool import Answer, Schema, Tool, boolean, integer, maybe, rows, string
from pcpd.memory import read
from pcpd.memory.describe import how_to_be_let_in
from pcpd.memory.memory import Caller, Memory

DEEPEST = 5
BACKLINKS = 1_000
"""As many links to a page are told; it may have more."""


def page_links(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Gives the links of a page, or those of the whole memory that lead nowhere."""
    path = optional_page(arguments)
    wants_loose = truth(arguments, "unresolved")
    limit = number(arguments, "limit", 100, least=1, most=500)
    cursor = cursor_of(arguments)
    if path and wants_loose:
        raise Usage(
            "tool.argument",
            "`unresolved` is for the whole memory, and `path` for one page",
            hint="a page's own links that lead nowhere are among its outgoing ones, with `to` null",
        )
    if wants_loose:
        loose = read.unresolved(memory, caller, limit=limit, cursor=cursor, fit=_fit)
        found = [("loose", edge) for edge in loose.links]
        hint = how_to_be_let_in(memory, caller)
        return _answer(None, found, {"total": None, "complete": True, "cursor": loose.cursor, "hint": hint})
    if not path:
        raise Usage("tool.argument", "`path` is missing", hint="or send `unresolved`: true")
    depth = number(arguments, "depth", 1, least=1, most=DEEPEST)
    start = place(cursor)
    return _page(read.links(memory, caller, path, depth=depth), path, start, limit)


def _page(answer: LinksAnswer, path: str, start: int, limit: int) -> Answer:
    every = [
        *(("out", edge) for edge in answer.outgoing),
        *(("in", edge) for edge in answer.backlinks),
        *(("near", page) for page in answer.neighbours.pages),
    ]
    found = every[start : start + limit]
    end = start + _SHAPE.fit(found)
    told = {
        "total": len(every),
        "complete": answer.neighbours.complete and len(answer.backlinks) < BACKLINKS,
        "cursor": str(end) if end < len(every) else None,
        "hint": None,
    }
    return _answer(path, every[start:end], told)


def _answer(path: str | None, found: Sequence[tuple[str, Any]], told: Mapping[str, Any]) -> Answer:
    shown, lines = _SHAPE.shown(found)
    parts: dict[str, list[dict[str, Any]]] = {"out": [], "loose": [], "in": [], "near": []}
    for (part, _), row in zip(found, shown, strict=True):
        parts[part].append({key: value for key, value in row.items() if key != "part"})
    whose = f" ({said(parts['out'][0])})" if parts["out"] else ""
    what = f"Links of {shortened(path, TITLE_BYTES)}{whose}" if path else "Links that lead to no page"
    rest = [] if told["complete"] else ["[there are more pages around it than are told]"]
    text = "\n".join([f"{what}. {DATA_NOTE}", *lines, *rest, *more(told["cursor"]), *hinted(told["hint"])])
    data = {
        "outgoing": parts["out"] + parts["loose"],
        "backlinks": parts["in"],
        "pages": parts["near"],
        **told,
        "note": DATA_NOTE,
    }
    return Answer(text, data)


def _row(found: tuple[str, Edge | Neighbour]) -> dict[str, Any]:
    part, each = found
    if isinstance(each, Neighbour):
        return {
            "part": part,
            "path": each.path,
            "title": shortened(each.title, TITLE_BYTES),
            "distance": each.distance,
            **source(each.origin, each.review, each.updated),
        }
    return {
        "part": part,
        "from": each.source,
        "to": each.target,
        "written": shortened(each.link.target, TITLE_BYTES),
        "heading": shortened(each.link.heading, TITLE_BYTES),
        "kind": each.link.kind,
        "relation": shortened(each.link.rel, WORD_BYTES),
        "line": each.link.line,
        **source(each.origin, each.review, each.updated),
    }


def _line(row: Mapping[str, Any]) -> str:
    if row["part"] == "near":
        return f"- {row['distance']} away: {row['path']} ({said(row)}): {row['title']}"
    to = row["to"] or f"nowhere, written as {row['written']}"
    relation = f" ({row['relation']})" if row["relation"] else ""
    if row["part"] == "out":
        return f"- to {to}{relation}"
    return f"- from {row['from']} ({said(row)}) to {to}{relation}"


def _fit(loose: Sequence[Edge]) -> int:
    return _SHAPE.fit([("loose", edge) for edge in loose])


_SHAPE = Shape(_row, _line)

_EDGE: Mapping[str, Schema] = {
    "from": string("The page on which the link stands."),
    "to": maybe(string("The page that it leads to; null: there is none.")),
    "written": string("The target as it is written."),
    "heading": string("The heading that it names, or empty."),
    "kind": string("wiki, embed, markdown, relation or relation-line."),
    "relation": string("The relation that it states, such as supersedes, or empty."),
    "line": maybe(integer("Its line in the file.")),
    **SOURCE,
}

LINKS: tuple[Tool, ...] = (
    Tool(
        "page_links",
        "Show links",
        "Show how a page is linked: what it links to, what links to it, and the pages around it. Use it to find "
        "more on a subject when search gave one page of it, and before you move or remove a page. With "
        "`unresolved` instead of `path`: all links of the memory that lead to no page.",
        {
            "path": string("The page's path, such as notes/boiler."),
            "depth": integer("How many links away the pages around it may be, 1 to 5; 1 if left out."),
            "unresolved": boolean("True, without `path`: the links that lead to no page."),
            "limit": integer("How many rows, 1 to 500; 100 if left out."),
            "cursor": string(
                "Where to go on: the cursor of the answer before; all other arguments as they were."
            ),
        },
        (),
        {
            "outgoing": rows("Links on the page, in the order of its text.", _EDGE),
            "backlinks": rows("Links to the page.", _EDGE),
            "pages": rows(
                "The pages around it, nearest first.",
                {
                    "path": string("The page's path."),
                    "title": string("Its title."),
                    "distance": integer("How many links away it is."),
                    **SOURCE,
                },
            ),
            "total": maybe(integer("How many rows there are in all; null where they are not counted.")),
            "complete": boolean("False where there are more pages around it than are told."),
            **CURSOR,
            **HINT,
            **NOTE,
        },
        page_links,
    ),
)

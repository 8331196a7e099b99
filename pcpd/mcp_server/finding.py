"""The tools that find pages: search_memory, list_pages, recent_pages."""

from collections.abc import Mapping
from typing import Any

from pcpd.index.listing import PageList
from pcpd.index.rows import PageRow
from pcpd.index.search import Hit
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
    said,
    source,
)
from pcpd.mcp_server.arguments import Arguments, cursor_of, number, optional, text
from pcpd.mcp_server.budget import shortened
from pcpd.mcp_server.tool import Answer, Schema, Tool, integer, rows, string
from pcpd.memory import read
from pcpd.memory.describe import how_to_be_let_in
from pcpd.memory.memory import Caller, Memory

SNIPPET_BYTES = 1_000

_PAGE: Mapping[str, Schema] = {
    "path": string("The page's path: what read_page and links take."),
    "title": string("The page's title."),
    "type": string("semantic, episodic or procedural."),
    **SOURCE,
}
_LIST: Mapping[str, Schema] = {
    "pages": rows("The pages.", _PAGE),
    "total": integer("How many pages the whole list has."),
    **CURSOR,
    **HINT,
    **NOTE,
}
_CURSOR = string("Where to go on: the cursor of the answer before; all other arguments as they were.")


def search_memory(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Searches by words and filters."""
    found = read.search(
        memory,
        caller,
        text(arguments, "query"),
        limit=number(arguments, "limit", 10, least=1, most=100),
        cursor=cursor_of(arguments),
        fit=_HIT.fit,
    )
    results, lines = _HIT.shown(found.results)
    hint = how_to_be_let_in(memory, caller)
    head = f"{len(results)} of {found.total} pages. {DATA_NOTE}"
    return Answer(
        "\n".join([head, *lines, *more(found.cursor), *hinted(hint)]),
        {
            "results": results,
            "total": found.total,
            "cursor": found.cursor,
            "hint": hint,
            "note": DATA_NOTE,
        },
    )


def list_pages(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Lists pages below a folder."""
    listing = read.list_pages(
        memory,
        caller,
        folder=(optional(arguments, "folder") or "").strip().strip("/"),
        limit=number(arguments, "limit", 50, least=1, most=500),
        cursor=cursor_of(arguments),
        fit=_ROW.fit,
    )
    return _listed(memory, caller, listing)


def recent_pages(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Lists pages, the newest first."""
    listing = read.recent(
        memory,
        caller,
        since=(optional(arguments, "since") or "").strip() or None,
        limit=number(arguments, "limit", 20, least=1, most=500),
        cursor=cursor_of(arguments),
        fit=_ROW.fit,
    )
    return _listed(memory, caller, listing)


def _listed(memory: Memory, caller: Caller, listing: PageList) -> Answer:
    pages, lines = _ROW.shown(listing.pages)
    hint = how_to_be_let_in(memory, caller)
    head = f"{len(pages)} of {listing.total} pages. {DATA_NOTE}"
    return Answer(
        "\n".join([head, *lines, *more(listing.cursor), *hinted(hint)]),
        {"pages": pages, "total": listing.total, "cursor": listing.cursor, "hint": hint, "note": DATA_NOTE},
    )


def _row(row: PageRow) -> dict[str, Any]:
    return {
        "path": row.path,
        "title": shortened(row.title, TITLE_BYTES),
        "type": shortened(row.type, WORD_BYTES),
        **source(row.origin, row.review, row.updated),
    }


def _line(row: Mapping[str, Any]) -> str:
    return f"- {row['path']} ({row['type']}; {said(row)}): {row['title']}"


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "path": hit.path,
        "title": shortened(hit.title, TITLE_BYTES),
        "type": shortened(hit.type, WORD_BYTES),
        **source(hit.origin, hit.review, hit.updated),
        "snippet": shortened(hit.snippet, SNIPPET_BYTES),
        "score": hit.score,
    }


_ROW = Shape(_row, _line)
_HIT = Shape(_hit, lambda row: f"{_line(row)}\n  {row['snippet']}")

FINDING: tuple[Tool, ...] = (
    Tool(
        "search_memory",
        "Search the memory",
        "Find pages of the person's memory by words. Use this first, before you answer from memory and before you "
        "write, so that you add to the page that is there instead of making a second one. Gives paths, titles and "
        "the passage that fits; read_page gives the text. Pages with all words come first; fewer words find more. "
        'In the query you can also use: "an exact phrase", -without, begin*, this or that, and filters: '
        "type:procedural, tag:heat, path:house/, partition:work, lifecycle:active, after:2026-01-31, "
        "before:2026-06, x-key:value.",
        {
            "query": string("Words to find, and filters. Filters alone list pages, newest first."),
            "limit": integer("How many results, 1 to 100; 10 if left out."),
            "cursor": _CURSOR,
        },
        ("query",),
        {
            "results": rows(
                "The pages, best first.",
                {
                    **_PAGE,
                    "snippet": string("The passage that fits best."),
                    "score": {
                        "type": "number",
                        "description": "How well it fits, within this answer; 0 for a list by time.",
                    },
                },
            ),
            "total": integer("How many pages were found."),
            **CURSOR,
            **HINT,
            **NOTE,
        },
        search_memory,
    ),
    Tool(
        "list_pages",
        "List pages",
        "List the pages in a folder and below, or all, by path. Use it to see what there is and how the person "
        "orders it, for instance before you choose a path for a new page. To find something by what it says, "
        "search_memory is better.",
        {
            "folder": string("Folder, such as notes or house/heating; all pages if left out."),
            "limit": integer("How many pages, 1 to 500; 50 if left out."),
            "cursor": _CURSOR,
        },
        (),
        _LIST,
        list_pages,
    ),
    Tool(
        "recent_pages",
        "List recent pages",
        "List the pages that changed last, the newest first. Use it to catch up at the start of a conversation, or "
        "to see what changed since a day.",
        {
            "since": string("Only pages that changed at or after this time, such as 2026-01-31; UTC."),
            "limit": integer("How many pages, 1 to 500; 20 if left out."),
            "cursor": _CURSOR,
        },
        (),
        _LIST,
        recent_pages,
    ),
)

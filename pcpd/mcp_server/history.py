"""The tool page_history: the versions of a page, the text of one, or what changed between two."""

from collections.abc import Mapping
from typing import Any

from pcpd.errors import Usage
from pcpd.mcp_server.answers import (
    CURSOR,
    DATA_NOTE,
    NOTE,
    SOURCE,
    WORD_BYTES,
    Shape,
    more,
    said,
    source,
)
from pcpd.mcp_server.arguments import Arguments, cursor_of, number, optional, page
from pcpd.mcp_server.budget import cut, shortened
from pcpd.mcp_server.tool import Answer, Tool, integer, maybe, rows, string
from pcpd.memory import versions
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.versions import PageVersion

NOW = "now"
_NOTHING: Mapping[str, Any] = {
    "versions": [],
    "cursor": None,
    "rev": None,
    "against": None,
    "content": "",
    "characters": 0,
    "next_offset": None,
    "origin": None,
    "review": None,
    "updated": None,
    "note": DATA_NOTE,
}


def page_history(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Lists versions, or shows one, or the difference of two."""
    path = page(arguments)
    rev, against = ((optional(arguments, name) or "").strip().lower() or None for name in ("rev", "against"))
    offset = number(arguments, "offset", 0)
    if against and not rev:
        raise Usage("tool.argument", "`against` needs `rev`", hint="`rev` is the older of the two")
    if rev and against:
        return _changes(memory, caller, path, (rev, against), offset)
    if rev:
        return _version(memory, caller, path, rev, offset)
    return _list(memory, caller, path, arguments)


def _list(memory: Memory, caller: Caller, path: str, arguments: Arguments) -> Answer:
    found = versions.history(
        memory,
        caller,
        path,
        limit=number(arguments, "limit", 20, least=1, most=100),
        cursor=cursor_of(arguments),
        fit=_SHAPE.fit,
    )
    shown, lines = _SHAPE.shown(found.versions)
    head = f"{len(shown)} versions of {found.path}, newest first. {DATA_NOTE}"
    data = {**_NOTHING, "path": found.path, "versions": shown, "cursor": found.cursor}
    return Answer("\n".join([head, *lines, *more(found.cursor)]), data)


def _version(memory: Memory, caller: Caller, path: str, rev: str, offset: int) -> Answer:
    found = versions.version(memory, caller, path, rev)
    where = source(found.page.origin, found.page.review_state, found.page.updated or found.at or None)
    whole = found.data.decode("utf-8", "replace")
    head = f"{found.page.path} as it was at {found.rev} ({found.at}; {said(where)}). {DATA_NOTE}"
    told = {"path": str(found.page.path), "rev": found.rev, **where}
    return _text(head, whole, offset, told)


def _changes(memory: Memory, caller: Caller, path: str, between: tuple[str, str], offset: int) -> Answer:
    rev, against = between
    whole = versions.changes(memory, caller, path, rev, None if against == NOW else against)
    head = f"{path}: what changed from {shortened(rev, WORD_BYTES)} to {shortened(against, WORD_BYTES)}"
    text = f"{head}{'' if whole else ': nothing'}. {DATA_NOTE}"
    return _text(text, whole, offset, {"path": path, "rev": rev, "against": against})


def _text(head: str, whole: str, offset: int, told: Mapping[str, Any]) -> Answer:
    content, following = cut(whole, min(offset, len(whole)))
    rest = (
        [] if following is None else [f"[cut: read on with offset {following} (of {len(whole)} characters)]"]
    )
    data = {
        **_NOTHING,
        **told,
        "content": content,
        "characters": len(whole),
        "next_offset": following,
    }
    return Answer("\n".join([head, "", content, *rest]), data)


def _row(version: PageVersion) -> dict[str, Any]:
    return {
        "rev": version.rev,
        "at": version.at,
        "by": shortened(version.principal, WORD_BYTES),
        "change": version.change,
        "path": version.path,
    }


def _line(row: Mapping[str, Any]) -> str:
    by = f"by {row['by']}" if row["by"] else "by the person, or outside pcpd"
    which = (
        f"{row['rev']}: {row['change']} {row['at']} {by}" if row["rev"] else f"in no commit yet: {row['at']}"
    )
    return f"- {which}, as {row['path']}"


_SHAPE = Shape(_row, _line)

HISTORY: tuple[Tool, ...] = (
    Tool(
        "page_history",
        "Show a page's history",
        "Show how a page came to be what it is. With `path` alone: its versions, the newest first, with who made "
        "them and when. With `rev`: the text of that version. With `rev` and `against`: what changed from the one "
        "to the other, as a diff. An old version is for reading; to bring it back is for the person.",
        {
            "path": string("The page's path, such as notes/boiler."),
            "rev": string("A version of the list: its text, or the older side of a diff."),
            "against": string("With `rev`: the newer version, or `now` for the page as it is."),
            "offset": integer("Where a long text or diff goes on: the next_offset of the answer before."),
            "limit": integer("How many versions, 1 to 100; 20 if left out."),
            "cursor": string("Where the list goes on: the cursor of the answer before."),
        },
        ("path",),
        {
            "path": string("The page's path."),
            "versions": rows(
                "The versions, the newest first; empty where `rev` was sent.",
                {
                    "rev": maybe(string("Its name in the history; null: on disk, in no commit yet.")),
                    "at": string("When, RFC 3339 UTC."),
                    "by": string("Who made it through pcpd; empty: the person, or another program."),
                    "change": string("added, modified, renamed or removed."),
                    "path": string("The page's path then."),
                },
            ),
            **CURSOR,
            "rev": maybe(string("The version whose text or diff this is.")),
            "against": maybe(string("The version that it is compared with.")),
            "content": string("The text of the version, or the diff; empty for a list."),
            "characters": integer("How long the text or diff is as a whole."),
            "next_offset": maybe(integer("Where the next part begins; null at the end.")),
            **{key: maybe(schema) for key, schema in SOURCE.items()},
            **NOTE,
        },
        page_history,
    ),
)

"""The tools that change pages: write_page, edit_page, move_page, remove_page.

What is there is replaced only by who names the version that they read whole. An edit says what it means, and is made
on whatever the page is by then, unless it names a version.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pcpd.errors import Conflict, Usage
from pcpd.mcp_server.arguments import Arguments, choice, optional, page, text, texts, version
from pcpd.mcp_server.budget import fitting
from pcpd.mcp_server.tool import Answer, Effect, Schema, Tool, integer, maybe, string, strings
from pcpd.memory import write
from pcpd.memory.bases import is_part, part_mark
from pcpd.memory.carry_out import Written
from pcpd.memory.memory import Caller, Memory
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.pages.frontmatter import Value, parse_assignment
from pcpd.pages.page import TYPES

PROPOSED = "proposed"
LINKS_BYTES = 20_000
"""Of the paths of pages whose links broke, in one answer."""

_PLACES: Mapping[str, tuple[str, ...]] = {
    "section": ("heading", "content"),
    "replace_text": ("old_text", "content"),
    "append": ("content",),
    "prepend": ("content",),
    "set_key": ("key", "value"),
    "add_item": ("key", "value"),
    "remove_key": ("key",),
}
"""The arguments that each operation takes, and wants."""

_OPERATIONS: Mapping[str, Callable[[Arguments], Edit]] = {
    "section": lambda given: Edit("replace_section", text(given, "heading"), text(given, "content")),
    "replace_text": lambda given: Edit("replace_text", text(given, "old_text"), text(given, "content")),
    "append": lambda given: Edit("append", value=text(given, "content")),
    "prepend": lambda given: Edit("prepend", value=text(given, "content")),
    "set_key": lambda given: Edit("set", text(given, "key").strip(), _value(given)),
    "add_item": lambda given: Edit("append_item", text(given, "key").strip(), _value(given)),
    "remove_key": lambda given: Edit("remove", text(given, "key").strip()),
}


def write_page(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Makes a page, or replaces one whose version is named."""
    proposed = Proposed(
        text(arguments, "content"),
        title=optional(arguments, "title") or None,
        type=(optional(arguments, "type") or "").strip().lower() or None,
        tags=texts(arguments, "tags"),
        partition=(optional(arguments, "partition") or "").strip() or None,
    )
    try:
        written = write.write_page(memory, caller, page(arguments), proposed, if_version=version(arguments))
    except Conflict as conflict:
        if conflict.code != "page.exists":
            raise
        # Without its version: who has not read the page would replace it unread.
        raise Conflict(
            conflict.code,
            conflict.message,
            hint="read it with read_page; then add to it with edit_page, or replace it with `if_version`",
        ) from None
    return _written(written, knows_all=True)


def edit_page(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Makes one edit."""
    op = choice(arguments, "op", tuple(_PLACES))
    _refuse_others(arguments, op)
    base = version(arguments)
    edit = _OPERATIONS[op](arguments)
    written = write.edit_page(memory, caller, page(arguments), [edit], if_version=base)
    return _written(written, knows_all=_is_of_whole(base))


def move_page(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Gives a page another path."""
    base = version(arguments)
    written = write.move_page(memory, caller, page(arguments), page(arguments, "to"), if_version=base)
    answer = _written(written, knows_all=_is_of_whole(base))
    if written.outcome == PROPOSED:
        return Answer(answer.text, {**answer.data, **_UNBROKEN})
    broken, told = _broken(written)
    return Answer(answer.text + broken, {**answer.data, **told})


def remove_page(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Removes a page whose version is named."""
    path, base = page(arguments), version(arguments)
    if base is None:
        raise Usage(
            "tool.argument",
            "`if_version` is missing: only what was read is removed",
            hint="read the page, and send the `version` or `edit_version` of that answer",
        )
    written = write.remove_page(memory, caller, path, if_version=base)
    if written.outcome == PROPOSED:
        data = {"path": written.path, "outcome": PROPOSED, "proposal": written.proposal, **_UNBROKEN}
        return Answer(_waits(written), data)
    broken, told = _broken(written)
    text_ = f"removed: {written.path}. The person can bring it back from its history.{broken}"
    return Answer(text_, {"path": written.path, "outcome": written.outcome, "proposal": None, **told})


def _refuse_others(arguments: Arguments, op: str) -> None:
    """Refuses what the operation does not take: what it was meant to say would be lost."""
    for name in dict.fromkeys(name for names in _PLACES.values() for name in names):
        if name not in _PLACES[op] and arguments.get(name) not in (None, ""):
            raise Usage(
                "tool.argument",
                f"the operation `{op}` takes no `{name}`",
                hint=f"it takes: {', '.join(_PLACES[op])}; make another change by another call",
            )


def _value(arguments: Arguments) -> Value:
    """Gives the value for a key: JSON as it is, text as `pcpd edit --set` reads it, so that `3` is a number."""
    value: Value = arguments.get("value")
    if value is None:
        raise Usage("tool.argument", "`value` is missing", hint="remove_key takes a key away")
    if not isinstance(value, str):
        return value
    return parse_assignment(f"key={value}")[1]


def _is_of_whole(base: str | None) -> bool:
    """Tells whether who names this version has seen the whole page."""
    return base is not None and not is_part(base)


def _broken(written: Written) -> tuple[str, dict[str, Any]]:
    """Gives the pages with links that do not lead to the page any more, as many as an answer holds."""
    pages = written.broken_links
    few = list(pages[: fitting(pages, [{"path": path} for path in pages], LINKS_BYTES)])
    rest = f" and {len(pages) - len(few)} more" if len(few) < len(pages) else ""
    text_ = f" Links to it lead nowhere now on: {', '.join(few)}{rest}." if pages else ""
    return text_, {"broken_links": few, "broken_links_total": len(pages)}


def _written(written: Written, *, knows_all: bool) -> Answer:
    """Gives the answer of an act. Who does not know the whole page gets a mark for the next edit, no version.

    What was proposed has changed nothing: there is no version to go on from.
    """
    if written.outcome == PROPOSED:
        return Answer(_waits(written), _shown(written, None, None))
    new = written.version if knows_all else None
    mark = None if knows_all else part_mark(written.version)
    kept = (
        f" Another version that was met underway is kept as {written.conflict_copy}."
        if written.conflict_copy
        else ""
    )
    which = f"version {new}" if new else f"for edits: if_version {mark}"
    return Answer(f"{written.outcome}: {written.path} ({which}).{kept}", _shown(written, new, mark))


def _shown(written: Written, new: str | None, mark: str | None) -> dict[str, Any]:
    return {
        "path": written.path,
        "outcome": written.outcome,
        "version": new,
        "edit_version": mark,
        "conflict_copy": written.conflict_copy,
        "proposal": written.proposal or None,
    }


def _waits(written: Written) -> str:
    return (
        f"proposed: {written.path}. Nothing has changed yet: it waits for the person's review (proposal "
        f"{written.proposal}). Tell them so; do not write it again."
    )


_PATH = string("The page's path, such as notes/boiler.")
_IF_VERSION = "The `version` or `edit_version` of the answer in which you read the page"
_PROPOSAL: Mapping[str, Schema] = {
    "proposal": maybe(string("The proposal that waits, where the outcome is proposed."))
}
_UNBROKEN: Mapping[str, Any] = {"broken_links": [], "broken_links_total": 0}
_BROKEN: Mapping[str, Schema] = {
    "broken_links": strings("Pages with a link that led to the page and leads nowhere now."),
    "broken_links_total": integer("How many such pages there are; not all may be named."),
}
_WRITTEN: Mapping[str, Schema] = {
    "path": string("The page's path now."),
    "outcome": string(
        "created, replaced, moved; unchanged: it said this already; proposed: nothing has changed, it waits for the "
        "person's review."
    ),
    "version": maybe(string("The page's version now, if you know all of it.")),
    "edit_version": maybe(string("What edit_page, move_page and remove_page take instead.")),
    "conflict_copy": maybe(string("The file that kept a version that somebody saved at the same moment.")),
    **_PROPOSAL,
}

CHANGING: tuple[Tool, ...] = (
    Tool(
        "write_page",
        "Write a page",
        "Make a new page, or replace the whole text of one that you have read whole. To add something to a page or "
        "to change a part of it, use edit_page: it leaves the rest as it is. Replacing needs `if_version`; without "
        "it nothing that is there is overwritten. Keep a page to one subject, link others as [[path]], and search "
        "first whether there is a page on it. Who wrote it, and when, is noted for you.",
        {
            "path": string(
                "Where the page goes, such as notes/boiler: small letters, digits, `.`, `_` and `-`, in folders "
                "joined by `/`."
            ),
            "content": string(
                "The page's text as Markdown. When it replaces a page, keys of the front matter that you do not "
                "name stay."
            ),
            "title": string("The title; the first heading if left out."),
            "type": string(
                "semantic: facts (if left out); episodic: what happened; procedural: how to do it.",
                among=TYPES,
            ),
            "tags": strings("Tags, such as heating."),
            "partition": string(
                "The part of the memory that it goes to; describe_context names those you may use."
            ),
            "if_version": string(
                "To replace a page: the `version` of the answer in which you read it whole. Left out for a new page."
            ),
        },
        ("path", "content"),
        _WRITTEN,
        write_page,
        Effect(destroys=True),
    ),
    Tool(
        "edit_page",
        "Edit a page",
        "Change one thing on a page; all else stays as it is. `op` is one of: section (replace the text below "
        "`heading` by `content`), replace_text (replace `old_text`, which must stand on the page exactly once, by "
        "`content`), append or prepend (put `content` last, or first below the front matter), set_key (set the front "
        "matter's `key` to `value`), add_item (add `value` to the list `key`, such as tags), remove_key. Two agents "
        "that append both keep their lines.",
        {
            "path": _PATH,
            "op": string("What to do.", among=tuple(_PLACES)),
            "heading": string(
                "For section: the heading, as read_page takes it: `Costs`, `## Costs`, `House > Costs`."
            ),
            "old_text": string("For replace_text: the text as it stands on the page, line breaks and all."),
            "content": string("The new text; empty takes the old one away."),
            "key": string("For set_key, add_item, remove_key: such as tags, lifecycle or x_birthday."),
            "value": string(
                'The value as text or JSON: some words, 0.5, true, 2026-01-31, ["a", "b"]; "3" in quotes is text.'
            ),
            "if_version": string(
                f"{_IF_VERSION}: the edit is refused if the page has changed since. If left out, it is made on the "
                "page as it is now; name it for `section`, so that nothing is replaced that you have not seen."
            ),
        },
        ("path", "op"),
        _WRITTEN,
        edit_page,
        Effect(destroys=True, repeats=False),
    ),
    Tool(
        "move_page",
        "Move a page",
        "Give a page another path; its text stays, and nothing that is there is overwritten. Links to it are not "
        "rewritten: the answer names the pages on which one leads nowhere now, for edit_page.",
        {
            "path": _PATH,
            "to": string("Its new path, such as house/boiler."),
            "if_version": string(f"{_IF_VERSION}; if left out, the page is moved as it is now."),
        },
        ("path", "to"),
        {**_WRITTEN, **_BROKEN},
        move_page,
        Effect(),
    ),
    Tool(
        "remove_page",
        "Remove a page",
        "Remove a page that you have read. Its versions stay in the history, from which the person can bring it "
        "back. Do it only when the person wants it; a page that is merely old can get lifecycle: archived by "
        "edit_page.",
        {"path": _PATH, "if_version": string(f"{_IF_VERSION}: only what was read is removed.")},
        ("path", "if_version"),
        {
            "path": string("The path that the page had."),
            "outcome": string("removed, or proposed: it waits for the person's review."),
            **_PROPOSAL,
            **_BROKEN,
        },
        remove_page,
        Effect(destroys=True),
    ),
)

"""The prompts `recall`, `remember` and `consolidate`: how to use this memory, in the person's own voice.

What pages say is embedded in a message of its own, as far as the caller may see it, as lines of JSON, so that no
page can pass for a part of the instructions.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mcp_types as types

from pcpd.errors import Usage
from pcpd.index.listing import PageList
from pcpd.index.search import Results
from pcpd.mcp_server.answers import DATA_NOTE, TITLE_BYTES, source
from pcpd.mcp_server.asking import Asking, Context
from pcpd.mcp_server.budget import fitting, shortened
from pcpd.memory import read
from pcpd.memory.memory import Caller, Memory

PAGES_SHOWN = 10
PAGES_LISTED = 50
BYTES = 10_000
"""Of the data in a prompt; the tools give more."""
SNIPPET_BYTES = 500
ARGUMENT_LIMIT = 20_000
QUERY_LIMIT = 500
"""Characters of what shall be remembered that pages are looked up by."""

Arguments = Mapping[str, str]
Row = dict[str, object]

RECALL = """\
Tell me what my memory holds about this topic: {topic}

1. Begin with the pages below. Where they do not answer it, call search_memory again in other words: names,
   synonyms, `tag:`, `type:`, "a phrase".
2. Before you rely on a page, read it with read_page; page_links shows what belongs to it, page_history how it
   came about.
3. Answer from my pages alone, and name the path of each page that you used. Say plainly what is not in them.
4. Mind where a text comes from: `origin: agent` was written by an agent, `review: proposed` was not looked at by
   me. Where pages disagree, show both, with their dates."""

REMEMBER = """\
Remember this for me: {what}

1. See whether a page holds it already: those below came up for it, search_memory finds others.
2. If one does, read it with read_page, and put in what is new with edit_page: under the heading where it belongs,
   or at the end. Correct what is out of date; do not repeat what stands there.
3. If none does, make one with write_page: a path of small letters such as house/boiler, a title, a type (semantic:
   what is so; episodic: what happened; procedural: how it is done). One subject a page.
4. Write what I said and no more, with the day when I said it; link related pages as [[their/path]]. Leave out
   passwords and keys.
5. If a write is refused, or waits for my review (`outcome: proposed`), say so, and do not write it again;
   describe_context tells what you may do here. In the end, tell me in one line what you wrote, and where."""

CONSOLIDATE = """\
Tidy up my memory{about}.

1. Read the pages below with read_page, long ones to their end; list_pages and search_memory find those that are
   missing here.
2. Look for pages that say the same, pages that contradict each other, and what is out of date.
3. Show me a plan first: which pages would change, and how. Wait for my word.
4. Then bring texts together in the page that stays, with edit_page, or with write_page and `if_version`. Keep every
   fact, date and source; of a contradiction keep both sides, and say that they disagree.
5. Only when its text stands elsewhere, and I have agreed, take a page away with remove_page. What I wrote myself
   stays unless I name it. In the end, list each path that changed."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """One prompt: what it is for, its arguments (name, description, whether it is needed), and what fills it."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]
    fill: Callable[[Memory, Caller, Arguments], tuple[str, str, list[Row]]]


class Prompts:
    """The handlers of `prompts/list` and `prompts/get`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def listing(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Gives the three prompts."""
        return _LISTED

    async def get(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Gives one prompt, filled in."""
        return await self._asking.answer(
            ctx,
            "get_prompt",
            lambda memory, caller: _got(memory, caller, params.name, params.arguments or {}),
        )


def _got(memory: Memory, caller: Caller, name: str, given: Arguments) -> types.GetPromptResult:
    prompt = _BY_NAME.get(name)
    if prompt is None:
        raise Usage(
            "prompt.unknown", f"there is no prompt {name[:100]!r}", hint=f"there are: {', '.join(_BY_NAME)}"
        )
    arguments = _checked(prompt, given)
    text, head, rows = prompt.fill(memory, caller, arguments)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    shown = lines[: fitting(lines, rows, BYTES)] if lines else ["(none)"]
    data = "\n".join([f"{head} {DATA_NOTE}", *shown])
    return types.GetPromptResult(
        description=prompt.description,
        messages=[
            types.PromptMessage(role="user", content=types.TextContent(type="text", text=text)),
            types.PromptMessage(role="user", content=types.TextContent(type="text", text=data)),
        ],
    )


def _checked(prompt: _Prompt, given: Arguments) -> dict[str, str]:
    """Gives the arguments without the empty ones. Raises `Usage` for one that is missing, unknown or too long."""
    known = [name for name, _, _ in prompt.arguments]
    for name, value in given.items():
        if name not in known:
            raise Usage(
                "prompt.argument",
                f"the prompt has no argument `{name[:60]}`",
                hint=f"it has: {', '.join(known)}",
            )
        if len(value) > ARGUMENT_LIMIT:
            raise Usage(
                "prompt.argument",
                f"`{name}` is longer than {ARGUMENT_LIMIT} characters",
                hint="shorten it, or write it as a page with write_page",
            )
    arguments = {name: value.strip() for name, value in given.items() if value.strip()}
    for name, _, is_needed in prompt.arguments:
        if is_needed and name not in arguments:
            raise Usage("prompt.argument", f"`{name}` is missing", hint="list the prompts")
    return arguments


def _recall(memory: Memory, caller: Caller, given: Arguments) -> tuple[str, str, list[Row]]:
    found = read.search(memory, caller, given["topic"], limit=PAGES_SHOWN)
    head = f"The first pages that search_memory finds, of {found.total}."
    return RECALL.format(topic=given["topic"]), head, _hits(found)


def _remember(memory: Memory, caller: Caller, given: Arguments) -> tuple[str, str, list[Row]]:
    found = read.search(memory, caller, given["what"][:QUERY_LIMIT], limit=PAGES_SHOWN)
    return REMEMBER.format(what=given["what"]), "Pages that may be about it already.", _hits(found)


def _consolidate(memory: Memory, caller: Caller, given: Arguments) -> tuple[str, str, list[Row]]:
    folder, topic = given.get("folder", "").strip("/"), given.get("topic", "")
    about = (f", in the folder {folder}" if folder else "") + (f", about this: {topic}" if topic else "")
    if topic:
        hits = read.search(memory, caller, f"path:{folder}/ {topic}" if folder else topic, limit=PAGES_LISTED)
        rows, total = _hits(hits), hits.total
    else:
        pages = (
            read.list_pages(memory, caller, folder=folder, limit=PAGES_LISTED)
            if folder
            else read.recent(memory, caller, limit=PAGES_LISTED)
        )
        rows, total = _listed(pages), pages.total
    return CONSOLIDATE.format(about=about), f"The first pages, of {total}.", rows


def _hits(found: Results) -> list[Row]:
    return [
        _row(hit.path, hit.title, source(hit.origin, hit.review, hit.updated))
        | {"snippet": shortened(hit.snippet, SNIPPET_BYTES)}
        for hit in found.results
    ]


def _listed(found: PageList) -> list[Row]:
    return [
        _row(page.path, page.title, source(page.origin, page.review, page.updated)) for page in found.pages
    ]


def _row(path: str, title: str, comes_from: Mapping[str, object]) -> Row:
    return {"path": path, "title": shortened(title, TITLE_BYTES), **comes_from}


_PROMPTS = (
    _Prompt(
        "recall",
        "Recall",
        "What the memory holds about a topic, with the pages that say so.",
        (("topic", "What to recall: words, a name, a question.", True),),
        _recall,
    ),
    _Prompt(
        "remember",
        "Remember",
        "Put something into the memory, where it belongs, without saying anything twice.",
        (("what", "What to remember, in plain words.", True),),
        _remember,
    ),
    _Prompt(
        "consolidate",
        "Consolidate",
        "Tidy up pages: find what is said twice, contradicted or out of date, and bring it together.",
        (
            ("folder", "Only pages of this folder and below; empty for all.", False),
            ("topic", "Only pages about this; empty for all.", False),
        ),
        _consolidate,
    ),
)
_BY_NAME = {prompt.name: prompt for prompt in _PROMPTS}
_LISTED = types.ListPromptsResult(
    prompts=[
        types.Prompt(
            name=prompt.name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                types.PromptArgument(name=name, description=described, required=is_needed)
                for name, described, is_needed in prompt.arguments
            ],
        )
        for prompt in _PROMPTS
    ]
)


def _folders(paths: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(folder for path in paths if (folder := path.rpartition("/")[0])))


def _names(paths: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(path.rpartition("/")[2] for path in paths))


COMPLETED: Mapping[tuple[str, str], Callable[[Sequence[str]], list[str]] | None] = {
    ("recall", "topic"): _names,
    ("remember", "what"): None,
    ("consolidate", "folder"): _folders,
    ("consolidate", "topic"): _names,
}
"""What makes suggestions of the paths that begin as an argument was typed; None for free text."""

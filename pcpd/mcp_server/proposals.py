"""The tools of review: list_proposals, which also shows one, and review_proposal.

For principals with the right `review`; for all others the queue is empty, and no proposal exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcpd.errors import Usage
from pcpd.mcp_server.answers import CURSOR, DATA_NOTE, NOTE, TITLE_BYTES, WORD_BYTES, Shape, more
from pcpd.mcp_server.arguments import Arguments, choice, cursor_of, number, optional, text
from pcpd.mcp_server.budget import cut, shortened
from pcpd.mcp_server.tool import Answer, Effect, Tool, integer, maybe, rows, string, strings
from pcpd.memory import review
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.review import Waiting
from pcpd.memory.verdicts import Asked
from pcpd.pages.merge import Clash
from pcpd.pages.worddiff import Span

DECISIONS = ("approve", "reject")
NAMES_SHOWN = 10
CLASH_BYTES = 2_000
_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
_SIDES = (("base", "was"), ("ours", "is now"), ("theirs", "proposed"))
_NOTHING: Mapping[str, Any] = {
    "proposals": [],
    "total": 0,
    "cursor": None,
    "id": None,
    "content": "",
    "characters": 0,
    "next_offset": None,
    "digest": None,
    "note": DATA_NOTE,
}


def list_proposals(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Lists what waits for review, or shows one proposal."""
    id_ = (optional(arguments, "id") or "").strip()
    if id_:
        return _one(memory, caller, id_, number(arguments, "offset", 0))
    found = review.queue(
        memory,
        caller,
        limit=number(arguments, "limit", 20, least=1, most=100),
        cursor=cursor_of(arguments),
        fit=_SHAPE.fit,
    )
    shown, lines = _SHAPE.shown(found.items)
    head = f"{found.total} proposals wait for review, the oldest first. {DATA_NOTE}"
    data = {**_NOTHING, "proposals": shown, "total": found.total, "cursor": found.cursor}
    return Answer("\n".join([head, *lines, *more(found.cursor)]), data)


def review_proposal(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Approves or rejects one proposal."""
    decision = choice(arguments, "decision", DECISIONS)
    content = optional(arguments, "content") or None
    if content is not None and decision != "approve":
        raise Usage("tool.argument", "a rejection takes no `content`", hint="say why in `reason`")
    asked = Asked(
        decision,
        (optional(arguments, "reason") or "").strip(),
        content.encode() if content is not None else None,
        (optional(arguments, "if_digest") or "").strip() or None,
    )
    decided = review.decide_one(memory, caller, text(arguments, "id").strip(), asked)
    data = {
        "id": decided.id,
        "outcome": decided.outcome,
        "path": decided.path,
        "version": decided.version or None,
    }
    which = f" (version {decided.version})" if decided.version else ""
    return Answer(f"{decided.outcome}: {decided.path}{which}.", data)


def _one(memory: Memory, caller: Caller, id_: str, offset: int) -> Answer:
    """Shows what a proposal would change, in parts where it is long."""
    found = review.show(memory, caller, id_)
    row = _row(found.waiting)
    whole = "".join([*_clashes(found.clashes), _marked(found.diff)])
    content, following = cut(whole, min(offset, len(whole)))
    rest = (
        [] if following is None else [f"[cut: read on with offset {following} (of {len(whole)} characters)]"]
    )
    head = f"What would go stands in [-…-], what would come in {{+…+}}. Digest: {found.digest}. {DATA_NOTE}"
    data = {
        **_NOTHING,
        "proposals": [row],
        "total": 1,
        "id": found.waiting.id,
        "content": content,
        "characters": len(whole),
        "next_offset": following,
        "digest": found.digest,
    }
    return Answer("\n".join([_line(row), head, "", content, *rest]), data)


def _marked(spans: Sequence[Span]) -> str:
    return "".join(f"{_MARKS[span.op][0]}{span.text}{_MARKS[span.op][1]}" for span in spans)


def _clashes(clashes: Sequence[Clash]) -> Iterator[str]:
    """Gives where the proposal and the page as it is now contradict each other."""
    for clash in clashes:
        yield f"Both changed {f'the key {clash.key}' if clash.key else 'the text'}:\n"
        for side, name in _SIDES:
            said = getattr(clash, side)
            yield f"  {name}: {'nothing' if said is None else shortened(said, CLASH_BYTES)}\n"
        yield "\n"


def _row(waiting: Waiting) -> dict[str, Any]:
    return {
        "id": waiting.id,
        "op": waiting.op,
        "path": waiting.path,
        "to": waiting.to or None,
        "by": shortened(waiting.by, WORD_BYTES),
        "also_by": [shortened(each, WORD_BYTES) for each in waiting.also_by[:NAMES_SHOWN]],
        "at": waiting.at,
        "state": waiting.state,
        "summary": shortened(waiting.summary, TITLE_BYTES),
    }


def _line(row: Mapping[str, Any]) -> str:
    to = f" to {row['to']}" if row["to"] else ""
    names = " and ".join([row["by"] or "somebody", *row["also_by"]])
    what = f"{row['op'] or 'no proposal'} {row['path']}{to} ({row['state']})"
    return f"- {row['id']}: {what}, by {names} {row['at']}: {row['summary']}"


_SHAPE = Shape(_row, _line)

PROPOSALS: tuple[Tool, ...] = (
    Tool(
        "list_proposals",
        "List what waits for review",
        "List what agents proposed and nobody has decided, the oldest first; with `id`, show one: what it would "
        "change, word by word, and where it contradicts the page as it is now. For those who may review; for all "
        "others nothing waits. It is the person who decides: review for them only when they asked you to.",
        {
            "id": string("A proposal of the list: show what it would change."),
            "offset": integer("With `id`: where a long text goes on: the next_offset of the answer before."),
            "limit": integer("How many, 1 to 100; 20 if left out."),
            "cursor": string("Where the list goes on: the cursor of the answer before."),
        },
        (),
        {
            "proposals": rows(
                "What waits.",
                {
                    "id": string("What review_proposal takes; that of a new page is its path."),
                    "op": string("new, change, move, remove; empty for a file that is no proposal."),
                    "path": string("The page."),
                    "to": maybe(string("The path that a move would give it.")),
                    "by": string("Who proposed it."),
                    "also_by": strings("Who proposed the same later."),
                    "at": string("When, RFC 3339 UTC."),
                    "state": string(
                        "open; stale: the page changed since, both still go together; conflict: they do not; orphan: "
                        "the page is gone; invalid; rejected."
                    ),
                    "summary": string("What it is about."),
                },
            ),
            "total": integer("How many wait."),
            **CURSOR,
            "id": maybe(string("The proposal that is shown.")),
            "content": string(
                "What it would change, with [-what goes-] and {+what comes+}; empty for a list."
            ),
            "characters": integer("How long that is as a whole."),
            "next_offset": maybe(integer("Where the next part begins; null at the end.")),
            "digest": maybe(string("What review_proposal takes as `if_digest`.")),
            **NOTE,
        },
        list_proposals,
    ),
    Tool(
        "review_proposal",
        "Approve or reject a proposal",
        "Decide what waits for review: approve it, approve another text in its place (`content`), or reject it with a "
        "reason, which whoever proposes the same again is told. Do it only as the person told you to, after showing "
        "them what list_proposals says of it. What conflicts is refused, and waits.",
        {
            "id": string("The proposal, as list_proposals names it."),
            "decision": string("What the person decided.", among=DECISIONS),
            "reason": string("Why it is rejected."),
            "content": string("With approve: the whole text that the page gets instead of the proposed one."),
            "if_digest": string(
                "The `digest` of the answer that showed it: what has changed since is not decided. Needed with "
                "`content` where the page changed."
            ),
        },
        ("id", "decision"),
        {
            "id": string("The proposal."),
            "outcome": string("approved or rejected."),
            "path": string("The page's path now."),
            "version": maybe(string("The page's version now; null: it was removed.")),
        },
        review_proposal,
        Effect(destroys=True),
    ),
)

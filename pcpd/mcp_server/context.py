"""The tool describe_context: where an agent is, who it is here, what it may do, and how the person can change that."""

from collections.abc import Mapping, Sequence
from typing import Any

from pcpd.mcp_server.answers import CURSOR, DATA_NOTE, NOTE, TITLE_BYTES, Shape, more, place
from pcpd.mcp_server.arguments import Arguments, cursor_of
from pcpd.mcp_server.budget import shortened
from pcpd.mcp_server.tool import Answer, Tool, boolean, integer, maybe, rows, string, strings
from pcpd.memory.describe import Description, GrantedPart, PartOfContext, describe
from pcpd.memory.memory import Caller, Memory

NAMES = 100


def describe_context(memory: Memory, caller: Caller, arguments: Arguments) -> Answer:
    """Describes the context as the caller may know it."""
    start = place(cursor_of(arguments))
    found = describe(memory, caller)
    every = [*found.partitions, *found.grants]
    end = start + _SHAPE.fit(every[start:])
    cursor = str(end) if end < len(every) else None
    shown, lines = _SHAPE.shown(every[start:end])
    how = list(found.how_to_ask)
    data = {
        "context": found.context,
        "controller": found.controller,
        "principal": found.principal,
        "features": _few(found.features),
        "pages": found.pages,
        "profile": found.profile,
        "partitions": [row for row in shown if "name" in row],
        "grants": [row for row in shown if "rights" in row],
        "cursor": cursor,
        "how_to_ask": how,
        "note": DATA_NOTE,
    }
    return Answer("\n".join([*_head(found), *lines, *more(cursor), *how, DATA_NOTE]), data)


def _head(found: Description) -> list[str]:
    whose = f"This is the memory of {found.controller} ({found.context})."
    head = [f"{whose} You are {found.principal}, and may read {found.pages} pages."]
    if found.profile:
        head.append(f"Begin with their profile: {found.profile}")
    return head


def _row(part: PartOfContext | GrantedPart) -> dict[str, Any]:
    if isinstance(part, PartOfContext):
        return {
            "name": part.name,
            "description": shortened(part.description, TITLE_BYTES),
            "is_default": part.is_default,
            "pages": sum(part.pages.values()),
        }
    return {
        "rights": _few(part.rights),
        "partitions": _few(part.partitions),
        "categories": _few(part.categories),
        "sensitivity": part.sensitivity,
        "until": part.until,
    }


def _few(names: Sequence[str]) -> list[str]:
    """Gives names as far as one row can hold them, and says how many more there are."""
    more_ = [f"… and {len(names) - NAMES} more"] if len(names) > NAMES else []
    return [*names[:NAMES], *more_]


def _line(row: Mapping[str, Any]) -> str:
    if "name" in row:
        default = ", the default" if row["is_default"] else ""
        described = f": {row['description']}" if row["description"] else ""
        return f"- partition {row['name']}{default}, {row['pages']} pages{described}"
    until = f", until {row['until']}" if row["until"] else ""
    rights, partitions, categories = (", ".join(row[key]) for key in ("rights", "partitions", "categories"))
    sensitive = "sensitive pages too" if row["sensitivity"] == "sensitive" else "no sensitive pages"
    return f"- you may {rights} in {partitions} ({categories}; {sensitive}{until})"


_SHAPE = Shape(_row, _line)

CONTEXT: tuple[Tool, ...] = (
    Tool(
        "describe_context",
        "Describe the context",
        "Tell whose memory this is, who you are here, and what you may read and write, by partition. Use it when "
        "you find less than you expected or a write was refused, and before you name a partition: it says how the "
        "person can let you do more.",
        {"cursor": string("Where a long answer goes on: the cursor of the answer before.")},
        (),
        {
            "context": string("The id of the context."),
            "controller": string("The person whose memory this is."),
            "principal": string("Who you are here."),
            "features": strings("What the person has switched on, such as review."),
            "pages": integer("How many pages you may read."),
            "profile": maybe(string("The page or folder to begin with, if you may read it.")),
            "partitions": rows(
                "The partitions of your grants.",
                {
                    "name": string("Its name, as `partition` takes it."),
                    "description": string("What the person says of it."),
                    "is_default": boolean("Whether pages that name no partition belong to it."),
                    "pages": integer("How many of its pages you may read."),
                },
            ),
            "grants": rows(
                "What you may do.",
                {
                    "rights": strings("read, propose, write, review, forget, record."),
                    "partitions": strings("Where."),
                    "categories": strings("On which pages: a type, conversation or profile."),
                    "sensitivity": string("normal; or sensitive, which covers both."),
                    "until": maybe(string("When it ends; null: it does not.")),
                },
            ),
            **CURSOR,
            "how_to_ask": strings("How the person can let you do more."),
            **NOTE,
        },
        describe_context,
    ),
)

"""The shape of a page: what its bytes say, its links, and what is wrong with it."""

from dataclasses import dataclass
from typing import Literal

from pcpd.pages.paths import PagePath

SIZE_LIMIT = 10 * 1024 * 1024
TYPES = ("semantic", "episodic", "procedural")
LIFECYCLES = ("active", "validated", "stale", "archived")
SENSITIVITIES = ("normal", "sensitive")

PCP_KEYS = frozenset(
    {
        "id", "title", "type", "tags", "updated", "recorded_at", "valid_from", "valid_until", "expires",
        "partition", "sensitivity", "importance", "confidence", "lifecycle", "review", "source", "relations",
        "derived_from", "x_import",
    }
)  # fmt: skip
"""The keys that pages.md §3 gives a meaning; others are a person's own."""

LinkKind = Literal["wiki", "embed", "markdown", "relation", "relation-line"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a page, or one value on it, could not be taken as it is. `line` is 1-based in the file."""

    code: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One outgoing edge as written. `target` is a path, file name or alias; `rel` empty for plain links."""

    kind: LinkKind
    target: str
    rel: str = ""
    heading: str = ""
    alias: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What the bytes of one page say. Times are RFC 3339 UTC (`…Z`) or None; other values as written.

    `properties` has one pair a scalar: keys of nested maps joined by `.`, list items repeating their key,
    values spelled as in the file. `body` is the text after the front matter and starts at line `body_line`
    of the file; a page with a problem that hides its structure has its whole text there.
    """

    path: PagePath
    title: str
    type: str = "semantic"
    id: str | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    partition: str | None = None
    sensitivity: str = "normal"
    lifecycle: str = "active"
    updated: str | None = None
    recorded_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires: str | None = None
    importance: float | None = None
    confidence: float | None = None
    review_state: str | None = None
    origin: str | None = None
    author: str | None = None
    is_conversation: bool = False
    links: tuple[Link, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    body: str = ""
    body_line: int = 1
    problems: tuple[Problem, ...] = ()

"""What the index keeps of files and pages, as rows: from a parsed page to values, and back. No SQL here."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pcpd.index.resolve import form_of, tail_of
from pcpd.pages.changes import Stat
from pcpd.pages.model import PCP_KEYS
from pcpd.pages.page import Page
from pcpd.pages.paths import Kind, lookup_key
from pcpd.pages.times import from_ns
from pcpd.policy.decide import Facts

VALUE_LIMIT = 200
"""Characters of a property's value that filters look at."""

_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file as it was read. `version` is the hex SHA-256 of its bytes, empty if it was not read (`note`)."""

    file: str
    kind: Kind
    stat: Stat
    read_at_ns: int
    version: str
    note: str = ""


class Declared(NamedTuple):
    """What a page itself says of the facts that access depends on; context.yaml says the rest."""

    path: str
    type: str
    partition: str | None
    sensitivity: str
    review_state: str | None
    is_conversation: bool

    @classmethod
    def of(cls, page: Page) -> "Declared":
        """Gives what the page declares."""
        return cls(
            page.path, page.type, page.partition, page.sensitivity, page.review_state, page.is_conversation
        )


@dataclass(frozen=True, slots=True)
class PageRow:
    """A page as the index has it. `id` is the page's own or None; `problems` counts; `version` as in FileRow.

    `partition` and `category` are what access is decided by; `updated` is the page's own, else its file's.
    """

    path: str
    title: str
    id: str | None
    type: str
    declared: str | None
    partition: str
    category: str
    sensitivity: str
    hidden: bool
    lifecycle: str
    review: str | None
    updated: str
    recorded_at: str | None
    valid_from: str | None
    valid_until: str | None
    expires: str | None
    importance: float | None
    confidence: float | None
    origin: str
    author: str | None
    is_conversation: bool
    problems: int
    size: int
    version: str

    @property
    def facts(self) -> Facts:
        """What `policy.decide` answers from."""
        return Facts(self.path, self.partition, self.category, self.sensitivity, self.hidden)

    @property
    def said(self) -> Declared:
        """What the page itself says of them."""
        return Declared(
            self.path, self.type, self.declared, self.sensitivity, self.review, self.is_conversation
        )


PAGE_COLUMNS = (
    "p.path, p.title, p.own_id, p.type, p.declared, p.partition, p.category, p.sensitivity, p.hidden,"
    " p.lifecycle, p.review_state, p.updated, p.recorded_at, p.valid_from, p.valid_until, p.expires,"
    " p.importance, p.confidence, coalesce(p.origin, 'user'), p.author, p.is_conversation, p.problems,"
    " f.size, hex(f.version)"
)
"""What `page_row` takes, from PAGE_TABLES."""

PAGE_TABLES = "pages AS p JOIN files AS f ON f.file = p.path || '.md'"


def page_row(row: Any) -> PageRow:
    """Makes a PageRow of one row of PAGE_COLUMNS (further columns are left alone)."""
    values = list(row)[:24]
    values[8], values[20] = bool(values[8]), bool(values[20])
    values[23] = values[23].lower()
    return PageRow(*values)


def file_values(row: FileRow) -> tuple[object, ...]:
    """Gives the values of a row of `files`."""
    stat = row.stat
    wide = None
    if not all(-_INT64 <= value < _INT64 for value in stat):
        wide, stat = json.dumps(stat), Stat(0, 0, 0, 0, 0)
    tail = tail_of(lookup_key(row.file)) if row.kind == "attachment" else None
    version = bytes.fromhex(row.version)
    return (row.file, row.kind, tail, *stat, wide, row.read_at_ns, version, row.note)


def page_values(number: int, row: FileRow, page: Page, facts: Facts) -> tuple[object, ...]:
    """Gives the values of a row of `pages`."""
    key = page.path.key
    return (
        number, page.path, None if key == page.path else key, tail_of(key), page.title,
        page.id, page.type, page.partition,
        facts.partition, facts.category, facts.sensitivity, facts.hidden,
        page.lifecycle, page.review_state,
        page.updated or from_ns(row.stat.mtime_ns), page.updated is not None,
        page.recorded_at, page.valid_from, page.valid_until, page.expires, page.importance, page.confidence,
        page.origin, page.author, page.is_conversation, len(page.problems),
    )  # fmt: skip


def tag_values(number: int, page: Page) -> Iterator[tuple[object, ...]]:
    """Gives the rows of `tags`."""
    tags: dict[str, str] = {}
    for tag in page.tags:
        tags.setdefault(lookup_key(tag), tag)
    return ((number, key, None if tag == key else tag) for key, tag in tags.items())


def alias_values(number: int, page: Page) -> Iterator[tuple[object, ...]]:
    """Gives the rows of `aliases`."""
    aliases: dict[str, str] = {}
    for alias in page.aliases:
        aliases.setdefault(form_of(alias, "").tail, alias)
    return ((number, tail, alias) for tail, alias in aliases.items() if tail)


def property_values(number: int, page: Page) -> Iterator[tuple[object, ...]]:
    """Gives the rows of `properties`: the keys that pcpd does not know."""
    pairs = {
        (lookup_key(key), lookup_key(value[:VALUE_LIMIT]))
        for key, value in page.properties
        if key.partition(".")[0] not in PCP_KEYS
    }
    return ((number, key, value) for key, value in pairs)


def problem_values(number: int, page: Page) -> Iterator[tuple[object, ...]]:
    """Gives the rows of `problems`."""
    return (
        (number, seq, problem.code, problem.message, problem.line)
        for seq, problem in enumerate(page.problems)
    )

"""What an agent's page looks like: the keys that say who wrote it and when, and those it cannot set.

Source: pages.md §3, *Who sets keys*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pcpd.errors import Denied, Invalid
from pcpd.pages import body, frontmatter
from pcpd.pages.frontmatter import Value
from pcpd.pages.page import TYPES, parse
from pcpd.pages.paths import PagePath

RESERVED_KEYS = frozenset({"id", "review", "source", "recorded_at", "x_import", "x_session"})


@dataclass(frozen=True, slots=True)
class Authorship:
    """Who writes, when (RFC 3339 UTC), with which client and in which of its sessions; empty: not known."""

    principal: str
    at: str
    client: str = ""
    session: str = ""

    def source(self) -> dict[str, Value]:
        """Gives the value of the page's key `source`."""
        known = {"origin": "agent", "principal": self.principal, "at": self.at}
        optional = {"client": self.client, "session": self.session}
        return {**known, **{key: value for key, value in optional.items() if value}}


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an agent wants a page to be: its text, which may begin with front matter, and keys beside it."""

    content: str
    title: str | None = None
    type: str | None = None
    tags: Sequence[str] | None = None
    partition: str | None = None

    def keys(self) -> dict[str, Value]:
        """Gives the keys that were named beside the text."""
        given: Mapping[str, Value] = {
            "title": self.title,
            "type": self.type,
            "tags": None if self.tags is None else list(self.tags),
            "partition": self.partition,
        }
        return {key: value for key, value in given.items() if value is not None}


def new_page(path: PagePath, proposed: Proposed, author: Authorship) -> bytes:
    """Gives the bytes of a page that an agent makes.

    Raises `Denied` (`page.reserved-key`) for a key that agents cannot set, `Invalid` for front matter that
    does not parse or a type that does not exist.
    """
    given, text = _given(path, proposed)
    refuse_reserved(given)
    title = given.pop("title", None) or parse(path, text.encode()).title
    fields: dict[str, Value] = {
        "title": title,
        "type": given.pop("type", "semantic"),
        **given,
        "recorded_at": author.at,
        "updated": author.at,
        "source": author.source(),
    }
    return frontmatter.new_page(fields, text)


def replacement(path: PagePath, old: bytes, proposed: Proposed, author: Authorship) -> bytes:
    """Gives the bytes of a page whose text an agent replaces: the old front matter stays but for what is named.

    Text that begins with front matter names its keys there; a reserved key may stand in it with the value that
    the page has. Raises like `new_page`.
    """
    given, text = _given(path, proposed)
    before = frontmatter.read(old)
    changed = {key: value for key, value in given.items() if before.get(key) != value}
    changed.pop("updated", None)
    refuse_reserved(changed)
    data = body.replace_body(old, text)
    for key, value in changed.items():
        data = frontmatter.set_key(data, key, value)
    return data if data == old else frontmatter.set_key(data, "updated", author.at)


def refuse_reserved(keys: Mapping[str, object] | frozenset[str]) -> None:
    """Raises `Denied` when one of the keys is one that agents cannot set."""
    reserved = sorted(RESERVED_KEYS & set(keys))
    if reserved:
        raise Denied(
            "page.reserved-key",
            f"agents cannot set {', '.join(f'`{key}`' for key in reserved)}",
            hint="leave these keys out; pcpd fills in who wrote the page and when",
        )


def _given(path: PagePath, proposed: Proposed) -> tuple[dict[str, Value], str]:
    """Splits what was sent into keys and text; keys named beside the text win."""
    data = proposed.content.encode()
    keys = {**frontmatter.read(data), **proposed.keys()}
    if keys.get("type", "semantic") not in TYPES:
        raise Invalid("page.type", f"`type` must be one of {', '.join(TYPES)}")
    problems = [problem for problem in parse(path, data).problems if problem.code.startswith("page.")]
    if problems:
        raise Invalid("page.content", f"the page cannot be taken: {problems[0].message}")
    return keys, frontmatter.split(data).body

"""Edits: one change each to a page's front matter or text, applied in order, all or none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pcpd.errors import Usage
from pcpd.pages import body, frontmatter
from pcpd.pages.frontmatter import Value

MOST_EDITS = 100
"""Edits of one request: each may take apart a front matter of the largest size, which takes a second."""

Operation = Literal[
    "set", "remove", "append_item", "replace_section", "replace_text", "append", "prepend", "replace_body"
]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `where` is the key, the heading or the text to replace; `value` what comes there."""

    op: Operation
    where: str = ""
    value: Value = None

    def text(self) -> str:
        """Gives the value of an edit of the page's text; raises `Usage` when it is no string."""
        if not isinstance(self.value, str):
            raise Usage("edit.value", f"the edit `{self.op}` wants a text as its value")
        return self.value


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Gives the page's bytes after all edits; every byte that no edit concerns stays (product.md, promise 2).

    Raises what `frontmatter` and `body` raise, and `Usage` for an operation that does not exist and for more than
    `MOST_EDITS`.
    """
    if len(edits) > MOST_EDITS:
        raise Usage(
            "edit.too-many",
            f"{len(edits)} edits came at once",
            hint=f"send {MOST_EDITS} at most, or the whole page",
        )
    for edit in edits:
        data = _apply(data, edit)
    return data


def touched_keys(edits: Sequence[Edit]) -> frozenset[str]:
    """Gives the top-level front matter keys that the edits set, remove or append to."""
    ops = {"set", "remove", "append_item"}
    return frozenset(edit.where.partition(".")[0] for edit in edits if edit.op in ops)


def _apply(data: bytes, edit: Edit) -> bytes:
    change = _CHANGES.get(edit.op)
    if change is None:
        raise Usage("edit.operation", f"there is no edit called {edit.op!r}")
    return change(data, edit)


_CHANGES: Mapping[str, Callable[[bytes, Edit], bytes]] = {
    "set": lambda data, edit: frontmatter.set_key(data, edit.where, edit.value),
    "remove": lambda data, edit: frontmatter.remove_key(data, edit.where),
    "append_item": lambda data, edit: frontmatter.append_item(data, edit.where, edit.value),
    "replace_section": lambda data, edit: body.replace_section(data, edit.where, edit.text()),
    "replace_text": lambda data, edit: body.replace_text(data, edit.where, edit.text()),
    "append": lambda data, edit: body.append(data, edit.text()),
    "prepend": lambda data, edit: body.prepend(data, edit.text()),
    "replace_body": lambda data, edit: body.replace_body(data, edit.text()),
}

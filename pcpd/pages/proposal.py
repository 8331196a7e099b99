"""Proposals: a change, a move or a removal of a page that waits for review, as the file `.pcp/proposals/<id>.md`.

Front matter says what is meant, by whom and over which version; after it stands, for a change, the whole page
as it is proposed, byte for byte. What is read may come from anybody. Source: pages.md §5.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcpd.errors import Invalid
from pcpd.pages import frontmatter
from pcpd.pages.block import BOM, find_block
from pcpd.pages.digest import Op, digest_of
from pcpd.pages.ids import PageId, ProposalId
from pcpd.pages.model import SIZE_LIMIT
from pcpd.pages.paths import PagePath, kind_of
from pcpd.pages.reviewing import REASON_LONGEST, rejection_of
from pcpd.pages.times import normal_time
from pcpd.pages.values import Value, written

OPS: tuple[Op, ...] = ("change", "move", "remove")

HEAD_LIMIT = 64 * 1024
"""Bytes of the front matter of a proposal, fences and all."""
SUMMARY_LONGEST = 1000
"""Characters of a summary."""
PROPOSERS_MOST = 100
"""Names under one proposal; who comes later changes nothing."""

PATH_LONGEST = 4096
"""Characters of a path."""
PROBLEMS_SHOWN = 20

_FOLDER = ".pcp/proposals/"
_KNOWN = frozenset(
    {"op", "to", "target", "target_id", "base", "by", "at", "summary", "also_by", "approved", "rejected"}
)
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Act:
    """Who did something with a proposal, when (RFC 3339 UTC), and why; the reason may be empty."""

    by: str
    at: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed. `base` is the blob of the version that it is made over, empty where that is not known.

    `to` is the new path of a move, `page` the proposed bytes of a change. `also_by` are those who proposed the
    same later. `extra` holds keys that are not known, which stay.
    """

    op: Op
    target: PagePath
    by: str
    at: str
    to: PagePath | None = None
    target_id: PageId | None = None
    base: str = ""
    summary: str = ""
    page: bytes | None = None
    also_by: tuple[Act, ...] = ()
    approved: Act | None = None
    rejected: Act | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Tells whether it still waits for somebody's decision."""
        return self.approved is None and self.rejected is None

    @property
    def digest(self) -> str:
        """The digest of what is proposed (`digest_of`)."""
        return digest_of(self.op, self.target, page=self.page, to=self.to, base=self.base)

    @property
    def id(self) -> ProposalId:
        """The id that its digest gives it."""
        return proposal_id(self.digest)


def proposal_id(digest: str) -> ProposalId:
    """Gives the id of the proposal with this digest, so that the same proposed twice is one file."""
    return ProposalId(digest[:20])


def proposal_file(proposal: ProposalId) -> str:
    """Gives the vault-relative file of a proposal."""
    return f"{_FOLDER}{proposal}.md"


def proposal_of_file(file: str) -> ProposalId | None:
    """Gives the id of the proposal that a vault-relative file holds; None for any other file."""
    name = file.removeprefix(_FOLDER)
    if name == file or not name.endswith(".md"):
        return None
    try:
        return ProposalId(name[: -len(".md")])
    except Invalid:
        return None


def render_proposal(proposal: Proposal) -> bytes:
    """Gives the bytes of the file. Raises `Invalid` (`value.invalid`) for what YAML cannot hold."""
    fields: dict[str, Value] = {"op": proposal.op}
    for key, value in (("to", proposal.to), ("target", proposal.target), ("target_id", proposal.target_id)):
        if value is not None:
            fields[key] = str(value)
    if proposal.base:
        fields["base"] = proposal.base
    fields |= {"by": proposal.by, "at": proposal.at}
    if proposal.summary:
        fields["summary"] = proposal.summary
    if proposal.also_by:
        fields["also_by"] = [_act_value(act) for act in proposal.also_by]
    for key, act in (("approved", proposal.approved), ("rejected", proposal.rejected)):
        if act is not None:
            fields[key] = _act_value(act)
    return frontmatter.new_page({**fields, **proposal.extra}, "") + (proposal.page or b"")


def parse_proposal(data: bytes) -> Proposal:
    """Gives the proposal that a file holds.

    Raises `Invalid` (`proposal.invalid`) that names every problem, also in `details`.
    """
    head, page = _parts(data)
    try:
        keys = frontmatter.read(head)
    except Invalid as error:
        raise _refused([error.message]) from None
    reader = _Reader(keys)
    proposal = reader.proposal(page)
    if reader.problems or proposal is None:
        raise _refused(reader.problems)
    return proposal


def joined(data: bytes, by: str, at: str) -> bytes:
    """Gives the file with one more who proposes the same; those who do already are not named twice."""
    proposal = parse_proposal(data)
    known = {proposal.by, *(act.by for act in proposal.also_by)}
    if by in known or len(known) > PROPOSERS_MOST:
        return data
    head, page = _parts(data)
    return frontmatter.append_item(head, "also_by", _act_value(Act(by, at))) + page


def approved(data: bytes, by: str, at: str) -> bytes:
    """Gives the file as that of an approved proposal."""
    return _marked(data, "approved", {"by": by, "at": at})


def rejected(data: bytes, by: str, at: str, reason: str = "") -> bytes:
    """Gives the file as that of a rejected proposal: it stays, so that the same is not asked again."""
    return _marked(data, "rejected", rejection_of(by, at, reason))


def _marked(data: bytes, key: str, value: Mapping[str, Value]) -> bytes:
    """Sets one key of the proposal's own front matter; every other byte stays."""
    parse_proposal(data)
    head, page = _parts(data)
    return frontmatter.set_key(head, key, value) + page


class _Reader:
    """Takes the values of a proposal out of its keys, and notes all that is wrong with them."""

    def __init__(self, keys: Mapping[str, Value]) -> None:
        self._keys = keys
        self.problems: list[str] = []

    def proposal(self, page: bytes) -> Proposal | None:
        """Gives the proposal; None where `problems` say why there is none."""
        op = next((known for known in OPS if known == self._text("op", required=True)), None)
        target, to = self._path("target", required=True), self._path("to", required=op == "move")
        by, at = self._text("by", required=True), self._time(self._keys.get("at"), "at")
        if op is None and "op" in self._keys:
            self.problems.append(f"`op` must be one of {', '.join(OPS)}")
        if op != "move" and to is not None:
            self.problems.append("`to` belongs to a move alone")
        if op != "change" and page.strip():
            self.problems.append("only a change has a page after its front matter")
        if len(page) > SIZE_LIMIT:
            self.problems.append(f"the proposed page has more than {SIZE_LIMIT} bytes")
        rest = self._optional()
        if self.problems or op is None or target is None:
            return None
        return Proposal(
            op=op, target=target, by=by, at=at, to=to, page=page if op == "change" else None, **rest
        )

    def _optional(self) -> dict[str, Any]:
        return {
            "target_id": self._id(),
            "base": self._base(),
            "summary": self._text("summary", longest=SUMMARY_LONGEST),
            "also_by": self._acts(),
            "approved": self._act(self._keys.get("approved"), "approved"),
            "rejected": self._act(self._keys.get("rejected"), "rejected"),
            "extra": {key: value for key, value in self._keys.items() if key not in _KNOWN},
        }

    def _text(self, key: str, *, required: bool = False, longest: int = 255) -> str:
        """Gives a text on one line; empty where there is none."""
        return self._line(self._keys.get(key), key, required=required, longest=longest)

    def _line(self, value: Value, name: str, *, required: bool = False, longest: int = 255) -> str:
        if value is None or value == "":
            if required:
                self.problems.append(f"`{name}` is missing")
            return ""
        if isinstance(value, int | float):
            value = written(value)
        if not isinstance(value, str) or len(value) > longest or not value.isprintable():
            self.problems.append(f"`{name}` must be a text on one line, of {longest} characters at most")
            return ""
        return str(value)

    def _path(self, key: str, *, required: bool = False) -> PagePath | None:
        text = self._text(key, required=required, longest=PATH_LONGEST)
        if not text:
            return None
        try:
            path = PagePath(text)
        except Invalid:
            path = None
        if path is None or kind_of(path.file) != "page":
            self.problems.append(f"`{key}` must be the path of a page")
            return None
        return path

    def _id(self) -> PageId | None:
        text = self._text("target_id")
        try:
            return PageId(text) if text else None
        except Invalid as error:
            self.problems.append(f"`target_id`: {error.message}")
            return None

    def _base(self) -> str:
        text = self._text("base")
        if text and not _OID.fullmatch(text):
            self.problems.append("`base` must be the id of a git blob")
            return ""
        return text

    def _time(self, value: Value, name: str) -> str:
        text = self._line(value, name, required=True)
        try:
            return normal_time(text) if text else ""
        except Invalid as error:
            self.problems.append(f"`{name}`: {error.message}")
            return ""

    def _act(self, value: Value, name: str) -> Act | None:
        if value is None:
            return None
        if not isinstance(value, dict) or set(value) - {"by", "at", "reason"}:
            self.problems.append(f"`{name}` must be a map of `by`, `at` and, if there is one, `reason`")
            return None
        return Act(
            self._line(value.get("by"), f"{name}.by", required=True),
            self._time(value.get("at"), f"{name}.at"),
            self._line(value.get("reason"), f"{name}.reason", longest=REASON_LONGEST),
        )

    def _acts(self) -> tuple[Act, ...]:
        value = self._keys.get("also_by")
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > PROPOSERS_MOST:
            self.problems.append(f"`also_by` must be a list of {PROPOSERS_MOST} at most")
            return ()
        found = [self._act(item, f"also_by[{at}]") for at, item in enumerate(value, 1) if item is not None]
        return tuple(act for act in found if act is not None)


def _act_value(act: Act) -> dict[str, Value]:
    return {"by": act.by, "at": act.at, **({"reason": act.reason} if act.reason else {})}


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Splits a file into its own front matter and the page after it, which may be any bytes."""
    start = len(BOM) if data.startswith(BOM) else 0
    span = find_block(data[start : start + HEAD_LIMIT].decode("latin-1"))
    if span.is_absent or span.is_unclosed:
        raise _refused([f"it has no front matter of {HEAD_LIMIT} bytes at most"])
    return data[: start + span.body], data[start + span.body :]


def _refused(problems: list[str]) -> Invalid:
    shown = problems[:PROBLEMS_SHOWN]
    return Invalid(
        "proposal.invalid",
        f"the file is no proposal: {'; '.join(shown)}",
        hint="reject it by removing the file; nothing has been changed",
        details={"problems": shown},
    )

"""The shapes of answers that routes put together themselves, for the API's description alone.

Other answers are dataclasses of the acts. None of these is made when a route answers: checking a large answer
again would cost more than finding it. `tests/api/test_openapi.py` holds real answers to them.
"""

from dataclasses import dataclass

from pcpd.history.versions import Kind, Version
from pcpd.ledger.issued import Issued
from pcpd.memory.consent import PrincipalAccess
from pcpd.memory.health import Work
from pcpd.memory.review import Decided
from pcpd.pages.page import Problem as PageProblem


@dataclass(frozen=True)
class ProblemDetails:
    """Why a request was refused (RFC 9457). `code` is stable; `hint` is the next step, or empty.

    `docs/troubleshooting.md` explains every code.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    details: dict[str, object]


@dataclass(frozen=True)
class Health:
    """Whether an owner answers, has read the vault, and whether its index follows it."""

    ok: bool
    version: str
    ready: bool
    in_step: bool
    pid: int


@dataclass(frozen=True)
class VaultNamed:
    """Which vault it is."""

    root: str
    id: str
    features: list[str]


@dataclass(frozen=True)
class IndexStatus:
    """How the index stands. `proved_at` is when it was last compared with all files."""

    in_step: bool
    proved_at: str | None
    bytes: int


@dataclass(frozen=True)
class HistoryStatus:
    """What history is at. Where none is kept, `why` says so; the keys after it are those of one that is."""

    kept: bool
    waiting: int
    why: str = ""
    kind: Kind = "own"
    branch: str = ""
    operation: str = ""
    detached: bool = False
    unborn: bool = False
    locked: str | None = None
    notice: str = ""
    wip: int = 0
    unsettled: int = 0


@dataclass(frozen=True)
class Notice:
    """Something that wants a person."""

    topic: str
    text: str


@dataclass(frozen=True)
class OwnerStatus:
    """The process that owns the vault. `url` is where it serves on this machine."""

    pid: int
    version: str
    url: str
    idle_exit_s: float | None
    watch: str


@dataclass(frozen=True)
class Status:
    """How the vault, its index, its history and its owner are. `left_out` are files not read, each with why;
    `proposals` wait for the person's review."""

    vault: VaultNamed
    pages: int
    attachments: int
    problems: int
    index: IndexStatus
    history: HistoryStatus
    left_out: list[tuple[str, str]]
    lost: int
    notices: list[Notice]
    owner: OwnerStatus
    proposals: int


@dataclass(frozen=True)
class AllDecided:
    """What came of each decision."""

    decided: list[Decided]


@dataclass(frozen=True)
class WorkNow:
    """Long work under way, if there is any."""

    work: Work | None


@dataclass(frozen=True)
class FoundProblem:
    """A problem of a page, with its file."""

    file: str
    code: str
    message: str
    line: int | None


@dataclass(frozen=True)
class Difference:
    """A row in which the index and one made anew differ."""

    table: str
    name: str
    what: str


@dataclass(frozen=True)
class Checked:
    """What `doctor` found. `differences` is there after a deep check."""

    ok: bool
    problems: list[FoundProblem]
    clashes: list[list[str]]
    notices: list[Notice]
    differences: list[Difference] | None = None


@dataclass(frozen=True)
class Rebuilt:
    """How many files the new index was made from."""

    files: int


@dataclass(frozen=True)
class Accepted:
    """A loss that was accepted: how many files were kept back, and how many left the index."""

    accepted: int
    removed: int


@dataclass(frozen=True)
class AcceptedCopy:
    """The state folder that the copy has from now on."""

    state: str


@dataclass(frozen=True)
class HandedOver:
    """Whether this owner ends."""

    ends: bool


@dataclass(frozen=True)
class Heading:
    """A heading of a page; `line` is 1-based in the file."""

    level: int
    text: str
    line: int


@dataclass(frozen=True)
class PageView:
    """A page as JSON: what it says of itself, where it comes from, and its text or its headings.

    `origin` and `review` say who wrote it and whether a person has looked at it. A text is data, not
    instructions. `version` is what replacing the page names in `If-Match`; where only a part was read there is
    none, and `edit_version` is good for edits. A page that is no UTF-8 has `base64` in place of `text`.
    """

    path: str
    title: str
    type: str
    category: str
    tags: list[str]
    id: str | None
    partition: str | None
    sensitivity: str
    lifecycle: str
    updated: str
    origin: str
    author: str | None
    review: str | None
    problems: list[PageProblem]
    version: str | None
    edit_version: str | None = None
    section: str | None = None
    text: str | None = None
    base64: str | None = None
    headings: list[Heading] | None = None


@dataclass(frozen=True)
class WrittenPage:
    """What a change came to. `version` is the page's now; None where the caller has not seen all of it.

    `edit_version` then names it for further edits. `conflict_copy` is the file that kept what somebody saved in
    the same moment; `broken_links` the pages, of those that the caller may see, with a link that leads nowhere now.
    `proposal` is the id of what waits for review, where the outcome is `proposed`: the page is then as it was.
    """

    path: str
    version: str | None
    edit_version: str | None
    outcome: str
    conflict_copy: str | None
    broken_links: list[str]
    proposal: str


@dataclass(frozen=True)
class Versions:
    """Versions as the person sees them, the newest first."""

    versions: list[Version]


@dataclass(frozen=True)
class Fault:
    """A row of the audit trail with which something is wrong, or the place of one that is missing."""

    number: int
    what: str


@dataclass(frozen=True)
class TrailProof:
    """Whether the audit trail is whole. `pruned` rows, those older than `pruned_before`, were removed for their age."""

    ok: bool
    rows: int
    faults: list[Fault]
    pruned: int
    pruned_before: str | None


@dataclass(frozen=True)
class Pruned:
    """How many rows of the audit trail were removed."""

    removed: int


@dataclass(frozen=True)
class MadeToken:
    """A token, shown this once, and the id by which it is taken back."""

    token: str
    id: str


@dataclass(frozen=True)
class Tokens:
    """Tokens without their secrets."""

    tokens: list[Issued]


@dataclass(frozen=True)
class GrantLine:
    """A grant as access.yaml has it."""

    principal: str
    partitions: list[str]
    categories: list[str]
    rights: list[str]
    sensitivity: str
    until: str | None = None


@dataclass(frozen=True)
class Granted:
    """A grant, whether it is new, and what in it may be a slip of the pen."""

    granted: bool
    grant: GrantLine
    warnings: list[str]


@dataclass(frozen=True)
class Grants:
    """The grants in force, and what is wrong with access.yaml, if anything."""

    grants: list[GrantLine]
    notice: str | None


@dataclass(frozen=True)
class TakenBack:
    """How many grants were taken back."""

    grants: int


@dataclass(frozen=True)
class Revoked:
    """How many grants and tokens were taken back."""

    grants: int
    tokens: int


@dataclass(frozen=True)
class Paused:
    """Who is paused, `*` for everybody with a token, and since when."""

    paused: dict[str, str]


@dataclass(frozen=True)
class Resumed:
    """How many pauses were ended, and which are left."""

    resumed: int
    paused: dict[str, str]


@dataclass(frozen=True)
class Principals:
    """Every principal that has tokens or grants; `state` is the folder of the vault's state on this device."""

    principals: list[PrincipalAccess]
    notice: str | None
    state: str

"""The words of history: what is to be committed, what became of it, and what can be read back.

Data alone; nothing here touches git. Files are vault-relative names, `oid` is git's id of a blob (lowercase
hex), `rev` git's id of a commit. A name that is not UTF-8 carries its bytes as surrogate escapes.
"""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pcpd.errors import Conflict, Unavailable

Kind = Literal["own", "adopted", "above"]
NAME = "pcpd"
EMAIL = "pcpd@localhost"
PRINCIPAL = "Pcp-Principal"

REGULAR = 0o100644
EXECUTABLE = 0o100755
GITLINK = 0o160000
FOLDER = 0o040000


@dataclass(frozen=True, slots=True)
class Change:
    """One file's next version: bytes (`data`), a blob that `store` wrote (`oid`), or neither: a deletion.

    `executable` counts for files that HEAD does not have yet; others keep the bit that HEAD has.
    """

    file: str
    oid: str | None = None
    executable: bool = False
    data: bytes | None = field(default=None, repr=False, kw_only=True)

    @property
    def is_deletion(self) -> bool:
        """Tells whether the file is to vanish from the tree."""
        return self.oid is None and self.data is None


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that git cannot or must not hold, with the reason in words for a person."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Blob:
    """What a tree or an index says of a file."""

    mode: int
    oid: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of a commit: what the base had, what the new tree has. `file` is spelled as HEAD spells it."""

    file: str
    old: Blob | None
    new: Blob | None


@dataclass(frozen=True, slots=True)
class Head:
    """Where HEAD points: the branch's full name, or None when detached; its commit, or None when unborn."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """The ref that a commit goes to, and what it is built on. `aside` means the device's wip ref."""

    ref: str
    tip: str | None
    base: str | None
    parents: tuple[str, ...]
    head: Head
    aside: bool


@dataclass(frozen=True, slots=True)
class EditedIndex:
    """A copy of the index with entries set, durable; `path` is None when nothing had to change in it.

    It stands for an index that still has `stamp`.
    """

    path: Path | None
    stamp: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Objects that are in the repository and durable, waiting for their ref. `rev` is None for no change.

    `index` and `note` are the person's index and our queue for it, made ahead of time; None where they stay.
    """

    target: Target
    rev: str | None
    edits: tuple[Edit, ...]
    unchanged: tuple[str, ...]
    refused: tuple[Refused, ...]
    index: EditedIndex | None = None
    note: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did. `unsettled` files wait for the person's index, which somebody holds locked.

    `rev` is None when every file equalled the base. `aside` is true when the versions went to the wip ref.
    """

    rev: str | None
    ref: str
    skipped_unchanged: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    unsettled: tuple[str, ...] = ()
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """One commit that touched a file. `change` is added, modified, removed or renamed; `at` is UTC.

    `principal` comes from the trailer `Pcp-Principal`, and is empty for commits that a person made with git.
    `file` is the file's name in that commit; for a log of the whole vault, the first file touched.
    """

    rev: str
    at: datetime
    author: str
    principal: str
    subject: str
    file: str
    change: str


@dataclass(frozen=True, slots=True)
class Touched:
    """One file of a commit: its blob in the commit before, and in this one; None where it is not there."""

    file: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """What `status` shows of history.

    `operation` names what the person has under way (merge, rebase, cherry-pick, revert, bisect, am, unmerged),
    or is empty. `locked` says which lock is held and for how long. `wip` is the number of files whose versions
    wait on the wip ref. `notice` is a sentence with advice, or empty.
    """

    kind: Kind
    branch: str
    operation: str
    detached: bool
    unborn: bool
    locked: str | None
    notice: str
    wip: int = 0
    unsettled: int = 0


class Busy(Unavailable):
    """Git must be left alone for a moment; nothing was committed. Try again after `retry_ms`."""

    def __init__(self, reason: str, retry_ms: int) -> None:
        super().__init__(
            "history.busy",
            f"nothing is committed yet: {reason}",
            hint="it is tried again by itself",
            details={"retry_ms": retry_ms},
        )
        self.reason = reason
        self.retry_ms = retry_ms


class Moved(Conflict):
    """The branch moved, or HEAD was switched, while the commit was built; build it again."""

    def __init__(self, ref: str) -> None:
        super().__init__(
            "history.moved", f"{ref} moved while a commit for it was built", hint="build it again"
        )


class Locked(Exception):
    """Somebody else holds a lock file of git."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock

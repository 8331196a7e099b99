"""What this room asks of git's object store and refs; `libgit2` and `plumbing` both answer it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pcpd.history.versions import Blob, Edit, Head


class Objects(Protocol):
    """Blobs, trees, commits and refs. Everything that is written is durable before the call returns."""

    def blob_id(self, data: bytes) -> str:
        """Gives the id that `data` would have."""

    def write_blob(self, data: bytes) -> str:
        """Stores `data` as it is."""

    def read_blob(self, oid: str) -> bytes:
        """Gives a blob's bytes. Raises Unavailable (`history.absent`) where a partial clone lacks it."""

    def size(self, oid: str) -> int:
        """Gives how many bytes a blob has, without reading it. Raises Unavailable (`history.absent`)."""

    def entry(self, commit: str, file: str) -> Blob | None:
        """Gives what `commit` has under `file`, of any kind, or None."""

    def names(self, commit: str, folder: str) -> Sequence[str]:
        """Gives the names in a folder of `commit`, empty where there is none."""

    def files(self, commit: str) -> Iterator[tuple[str, Blob]]:
        """Gives all files of `commit`; nested repositories as entries with mode 160000."""

    def changed(self, old: str | None, new: str) -> list[Edit]:
        """Gives the files in which two commits differ, without looking for renames."""

    def tree(self, commit: str) -> str:
        """Gives the id of a commit's tree."""

    def parents(self, commit: str) -> tuple[str, ...]:
        """Gives a commit's parents."""

    def message(self, commit: str) -> str:
        """Gives a commit's message."""

    def change_tree(self, base: str | None, edits: Mapping[str, Blob | None]) -> str:
        """Gives the tree of commit `base` (None: empty) with `edits` made: a blob, or None to remove."""

    def commit(self, tree: str, parents: Sequence[str], message: str, now: datetime) -> str:
        """Writes a commit under pcpd's own identity. No ref moves."""

    def head(self) -> Head:
        """Gives where HEAD points now."""

    def ref(self, name: str) -> str | None:
        """Gives the commit of a ref by its full name."""

    def move(self, ref: str, *, old: str | None, new: str, log: str) -> None:
        """Moves a ref from `old` to `new` durably. Raises Moved or Locked."""

    def resolve(self, rev: str) -> str | None:
        """Gives the commit that a person's word means (id, its beginning, branch, tag, `HEAD~2`), or None."""

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Tells whether `commit` is `of` or one of its ancestors."""

    def close(self) -> None:
        """Lets go of open files."""

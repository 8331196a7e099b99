"""Reads history: the log of a file or of the vault, versions as they were on disk, differences as text.

Read from the branch that keeps the vault's history and from the wip ref, so that nothing recorded is out of
sight. Lists and differences come from the git program; a version's bytes need it only for filters.
"""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from pcpd.errors import NotFound, Usage
from pcpd.history import names
from pcpd.history.attributes import Attributes, Conversion
from pcpd.history.blobs import absent
from pcpd.history.layout import Layout
from pcpd.history.objects import Objects
from pcpd.history.program import LONG_S, Program
from pcpd.history.versions import EXECUTABLE, GITLINK, PRINCIPAL, REGULAR, Blob, Touched, Version

_FORMAT = f"%x01%H%x00%ct%x00%an%x00%s%x00%(trailers:key={PRINCIPAL},valueonly,separator=%x2C)%x00"
_STATUS = re.compile(r"\n?([AMDTRCX])\d*")
_WORDS = {
    "A": "added",
    "M": "modified",
    "T": "modified",
    "X": "modified",
    "D": "removed",
    "R": "renamed",
    "C": "added",
}
_REV = re.compile(r"[^\s\0-][^\s\0]{0,255}")


class Reading:
    """The reading side of one repository. Thread-safe as far as its parts are."""

    def __init__(self, layout: Layout, program: Program, objects: Objects, attributes: Attributes) -> None:
        self._layout = layout
        self._program = program
        self._objects = objects
        self._attributes = attributes

    def log(self, tips: list[str], file: str | None, *, limit: int, before: str | None) -> list[Version]:
        """Lists versions, newest first; after `before` (a rev of the same list) when that is given."""
        if not tips or limit < 1:
            return []
        follow = ("--follow",) if file is not None else ()
        paths = (file,) if file is not None else ()
        # A follow's names depend on where it began: with `before`, it begins at the top again.
        count = () if before or file is not None else (f"-n{limit}",)
        merges = "--diff-merges=first-parent" if self._program.version >= (2, 31) else "-m"
        out = self._program.run(
            "log", *follow, *count, "--full-history", merges, "--date-order", "-z", "--name-status", "-M", "--root",
            "--no-ext-diff", "--no-textconv", f"--format={_FORMAT}", "--end-of-options", *tips, "--", *paths,
            limit_s=LONG_S,
        ).out  # fmt: skip
        found = (
            [version for version, _ in versions(out)] if file is None else list(_of_one_file(versions(out)))
        )
        if before is not None:
            seen = [version.rev for version in found]
            if before not in seen:
                raise NotFound(
                    "history.no-version", f"{before} is not in this list", hint="begin again without it"
                )
            found = found[seen.index(before) + 1 :]
        return found[:limit]

    def touched(self, commit: str) -> tuple[Touched, ...]:
        """Gives the files that a commit changed; none for a merge."""
        out = self._program.run(
            "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id", "--root", commit, "--",
            limit_s=LONG_S,
        ).out  # fmt: skip
        fields = [os.fsdecode(field) for field in out.split(b"\0")]
        found = []
        for head, file in zip(fields[::2], fields[1::2], strict=False):
            _, _, old, new, _ = head.split(" ")
            found.append(Touched(file, _blob_id(old), _blob_id(new)))
        return tuple(found)

    def blob(self, oid: str, limit: int) -> bytes:
        """Gives a stored blob as it is stored. Raises Unavailable (`history.absent`), also over `limit` bytes."""
        if self._objects.size(oid) > limit:
            raise absent(oid)
        return self._objects.read_blob(oid)

    def show(self, file: str, commit: str, limit: int | None = None) -> bytes:
        """Gives a file's bytes in `commit` as git would write them to disk; none of more than `limit` bytes."""
        blob = self._find(file, commit)
        if blob is None or blob.mode == GITLINK:
            raise NotFound(
                "history.no-version",
                f"{file} is not in version {commit[:12]}",
                hint="`pcpd log` lists its versions",
            )
        if limit is not None and (size := self._objects.size(blob.oid)) > limit:
            raise NotFound(
                "history.no-version", f"{file} has {size} bytes in version {commit[:12]}: too many"
            )
        how = self._attributes.conversions([file]).get(file, Conversion())
        if how == Conversion() or blob.mode not in {REGULAR, EXECUTABLE} or self._program.problem:
            return self._objects.read_blob(blob.oid)
        return self._attributes.smudge(file, blob.oid)

    def diff(self, file: str | None, old: str | None, new: str | None) -> str:
        """Gives what changed from commit or tree `old` (None: nothing) to `new` (None: the disk), as unified text."""
        paths = (file,) if file is not None else ()
        start = (
            old or self._program.run("hash-object", "-t", "tree", "--stdin", stdin=b"").out.decode().strip()
        )
        ends = (start, new) if new is not None else (start,)
        out = self._program.run(
            "diff", "--no-ext-diff", "--no-textconv", "-M", "--end-of-options", *ends, "--", *paths,
            limit_s=LONG_S,
        ).out  # fmt: skip
        return out.decode(errors="replace")

    def compare(self, old: str, new: str) -> str:
        """Gives what changed from one blob to another: git's hunks, or a line about binary data; empty if equal."""
        out = self._program.run(
            "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--end-of-options", old, new, limit_s=LONG_S
        ).out.decode(errors="replace")  # fmt: skip
        start = out.find("\n@@ ")  # before it stand names, which are the blobs' ids here
        return out[start + 1 :] if start >= 0 else "Binary files differ\n" if out else ""

    def on_disk(self, file: str) -> bytes | None:
        """Gives the bytes that a file has now, or None when it is not there, no file, or behind a link."""
        path = self._layout.root / file
        try:
            is_inside = path.parent.resolve() == path.parent and not path.is_symlink() and path.is_file()
            return path.read_bytes() if is_inside else None
        except OSError:
            return None

    def resolve(self, rev: str, tips: list[str], head: str | None) -> str:
        """Gives the full id of the commit that `rev` names; only those that the vault's history holds."""
        if not _REV.fullmatch(rev) or ":" in rev:
            raise Usage("history.bad-rev", f"{rev!r} names no version", hint="`pcpd log` lists them")
        if self._layout.kind == "above" and rev.startswith(("HEAD", "@")):
            rev = (head or "") + rev.removeprefix("HEAD").removeprefix("@")
        found = self._objects.resolve(rev)
        is_ours = found is not None and (
            self._layout.kind != "above" or any(self._objects.is_ancestor(found, tip) for tip in tips)
        )
        if found is None or not is_ours:
            raise NotFound("history.no-version", f"there is no version {rev}", hint="`pcpd log` lists them")
        return found

    def _find(self, file: str, commit: str) -> Blob | None:
        found = self._objects.entry(commit, file)
        if found is None and not file.isascii():
            other = names.other_spelling(file, lambda folder: self._objects.names(commit, folder))
            found = self._objects.entry(commit, other) if other else None
        return found


def _blob_id(text: str) -> str | None:
    """Gives a blob's id; None for the zeros that git writes where there is no file."""
    return text if text.strip("0") else None


def _of_one_file(versions: Iterator[tuple[Version, bool]]) -> Iterator[Version]:
    """Ends where the file began: git's `--follow` goes on with whatever it was copied from, were it but empty."""
    for version, is_copy in versions:
        if version.file:
            yield version
        if is_copy:
            return


def versions(out: bytes) -> Iterator[tuple[Version, bool]]:
    """Reads `git log -z --name-status` with our header, field by field: names may hold anything but NUL."""
    fields = [os.fsdecode(field) for field in out.split(b"\0")]
    place = 0
    while place < len(fields):
        if not fields[place].startswith("\x01"):
            place += 1
            continue
        rev, seconds, author, subject, principal = fields[place : place + 5]
        place, status, file = _touched(fields, place + 5)
        at = datetime.fromtimestamp(int(seconds), UTC)
        change = _WORDS.get(status, "")
        yield Version(rev[1:], at, author, principal, subject, file, change), status == "C"


def _touched(fields: list[str], place: int) -> tuple[int, str, str]:
    """Reads the files of one commit: where it ends, and the first one's status letter and name."""
    first = ("", "")
    while place < len(fields):
        status = _STATUS.fullmatch(fields[place])
        if status is None and fields[place]:
            break
        if status is not None:
            place += 2 if status[1] in "RC" else 1
            first = first if first[0] else (status[1], fields[place])
        place += 1
    return place, *first

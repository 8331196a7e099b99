"""Objects and refs through the git program, for repositories that libgit2 refuses: SHA-256, reftable, and others.

Trees are made in an index of our own, never in the person's. Slower (some ten processes a commit), equal in effect.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pcpd.history import names
from pcpd.history.blobs import absent, blob_id
from pcpd.history.program import Program, failure
from pcpd.history.versions import Blob, Edit, Head, Moved


class Plumbing:
    """One repository's objects. See `objects.Objects` for what each method promises."""

    def __init__(self, program: Program, scratch: Path) -> None:
        self._program = program
        self._scratch = scratch
        self._algorithm = ""

    def blob_id(self, data: bytes) -> str:
        """Gives the id that `data` would have."""
        if not self._algorithm:
            self._algorithm = self._line("rev-parse", "--show-object-format")
        return blob_id(data, self._algorithm)

    def write_blob(self, data: bytes) -> str:
        """Stores `data` as it is."""
        return self._line("hash-object", "-w", "--stdin", "--no-filters", stdin=data)

    def read_blob(self, oid: str) -> bytes:
        """Gives a blob's bytes."""
        found = self._program.run("cat-file", "blob", oid, accept=(0, 1, 128))
        if found.status:
            raise absent(oid)
        return found.out

    def size(self, oid: str) -> int:
        """Gives how many bytes a blob has."""
        found = self._program.run("cat-file", "-s", oid, accept=(0, 1, 128))
        if found.status:
            raise absent(oid)
        return int(found.out)

    def entry(self, commit: str, file: str) -> Blob | None:
        """Gives what `commit` has under `file`."""
        if names.unfit(file):
            return None
        out = self._program.run("ls-tree", "-z", "--full-tree", commit, "--", file).out
        return next((blob for name, blob in _listed(out) if name == file), None)

    def names(self, commit: str, folder: str) -> Sequence[str]:
        """Gives the names in a folder of `commit`."""
        tree = f"{commit}:{folder}"
        found = self._program.run("ls-tree", "-z", "--full-tree", "--name-only", tree, accept=(0, 128))
        return [os.fsdecode(name) for name in found.out.split(b"\0") if name]

    def files(self, commit: str) -> Iterator[tuple[str, Blob]]:
        """Gives all files of `commit`."""
        yield from _listed(self._program.run("ls-tree", "-r", "-z", "--full-tree", commit).out)

    def changed(self, old: str | None, new: str) -> list[Edit]:
        """Gives the files in which two commits differ."""
        if old is None:
            return [Edit(file, None, blob) for file, blob in self.files(new)]
        out = self._program.run("diff-tree", "-r", "-z", "--no-renames", old, new).out
        fields = out.split(b"\0")
        edits = []
        for head, name in zip(fields[::2], fields[1::2], strict=False):
            old_mode, new_mode, old_oid, new_oid, _ = head.decode().lstrip(":").split(" ")
            before, after = Blob(int(old_mode, 8), old_oid), Blob(int(new_mode, 8), new_oid)
            edits.append(
                Edit(os.fsdecode(name), before if before.mode else None, after if after.mode else None)
            )
        return edits

    def tree(self, commit: str) -> str:
        """Gives the id of a commit's tree."""
        return self._line("rev-parse", "--verify", f"{commit}^{{tree}}")

    def parents(self, commit: str) -> tuple[str, ...]:
        """Gives a commit's parents."""
        return tuple(self._line("rev-list", "--parents", "-n1", commit).split()[1:])

    def message(self, commit: str) -> str:
        """Gives a commit's message."""
        return self._program.run("log", "-n1", "--format=%B", commit).out.decode(errors="replace")

    def change_tree(self, base: str | None, edits: Mapping[str, Blob | None]) -> str:
        """Makes the new tree in an index of our own."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            index = Path(folder) / "index"
            self._program.run("read-tree", base or "--empty", index=index)
            # Removals first: a folder may become a file, and a file a folder.
            ordered = sorted(edits.items(), key=lambda item: item[1] is not None)
            lines = b"".join(_index_line(file, edit, len(base or "")) for file, edit in ordered)
            self._program.run("update-index", "--replace", "-z", "--index-info", index=index, stdin=lines)
            return self._program.run("write-tree", index=index).out.decode().strip()

    def commit(self, tree: str, parents: Sequence[str], message: str, now: datetime) -> str:
        """Writes a commit under pcpd's own identity."""
        date = f"{int(now.timestamp())} +0000"
        flags = [part for parent in parents for part in ("-p", parent)]
        output = self._program.run(
            "commit-tree", "--no-gpg-sign", *flags, tree,
            stdin=message.encode(errors="replace"),
            extra={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
        )  # fmt: skip
        return output.out.decode().strip()

    def head(self) -> Head:
        """Gives where HEAD points now."""
        found = self._program.run("symbolic-ref", "-q", "HEAD", accept=(0, 1))
        branch = found.out.decode().strip() or None
        commit = self._program.run("rev-parse", "-q", "--verify", "HEAD^{commit}", accept=(0, 1, 128))
        return Head(branch, commit.out.decode().strip() or None)

    def ref(self, name: str) -> str | None:
        """Gives the commit of a ref."""
        found = self._program.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}", accept=(0, 1, 128))
        return found.out.decode().strip() or None

    def move(self, ref: str, *, old: str | None, new: str, log: str) -> None:
        """Moves a ref by compare-and-swap."""
        message = log.partition("\t")[2]
        expected = old or "0" * len(new)
        moved = self._program.run("update-ref", "-m", message, ref, new, expected, accept=(0, 128))
        if moved.status:
            if self.ref(ref) != old:
                raise Moved(ref)
            raise failure("update-ref", moved.status, moved.err, 0)

    def resolve(self, rev: str) -> str | None:
        """Gives the commit that `rev` means."""
        found = self._program.run(
            "rev-parse", "-q", "--verify", "--end-of-options", f"{rev}^{{commit}}", accept=(0, 1, 128)
        )
        return found.out.decode().split()[-1] if found.status == 0 and found.out.strip() else None

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Tells whether `commit` is `of` or one of its ancestors."""
        return self._program.run("merge-base", "--is-ancestor", commit, of, accept=(0, 1)).status == 0

    def close(self) -> None:
        """Ends git's runs under way; nothing else is open."""
        self._program.close()

    def _line(self, *arguments: str, stdin: bytes | None = None) -> str:
        return self._program.run(*arguments, stdin=stdin).out.decode().strip()


def _listed(out: bytes) -> Iterator[tuple[str, Blob]]:
    """Reads `ls-tree -z`: mode, kind, id, tab, name."""
    for line in out.split(b"\0"):
        if line:
            head, _, name = line.partition(b"\t")
            mode, _, oid = head.decode().split(" ")
            yield os.fsdecode(name), Blob(int(mode, 8), oid)


def _index_line(file: str, edit: Blob | None, length: int) -> bytes:
    head = f"{edit.mode:o} {edit.oid} 0\t" if edit else f"0 {'0' * (length or 40)} 0\t"
    return head.encode() + os.fsencode(file) + b"\0"

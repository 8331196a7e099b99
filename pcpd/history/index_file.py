"""The person's index as a file: looked at, and edited in a copy that then takes its place whole.

Through libgit2, or through the git program where libgit2 does not understand the index (split, sparse, SHA-256)
or many entries change at once.
"""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pygit2
from pygit2.ffi import C, ffi

from pcpd.history.configuration import stamp_of
from pcpd.history.layout import Layout
from pcpd.history.locks import sync_folder
from pcpd.history.program import Program
from pcpd.history.versions import Blob, EditedIndex

MANY = 1000
SKIP_WORKTREE = 0x4000
ASSUME_UNCHANGED = 0x8000
Wanted = dict[str, tuple[frozenset[Blob | None], Blob | None]]
Entries = dict[str, Blob | None]


class IndexFile:
    """One repository's index. `scratch` is our folder beside it."""

    def __init__(self, layout: Layout, program: Program, scratch: Path) -> None:
        self._layout = layout
        self._program = program
        self._scratch = scratch
        self._numbers = itertools.count()
        self._looked_at: object = object()
        self._unmerged = False
        for left in scratch.glob("index-*") if scratch.is_dir() else ():
            left.unlink(missing_ok=True)

    def stamp(self) -> tuple[int, int, int] | None:
        """Gives what changes whenever the index does."""
        return stamp_of(self._layout.index)

    def unmerged(self) -> bool:
        """Tells whether the index holds conflicts that the person has not resolved."""
        stamp = self.stamp()
        if stamp != self._looked_at:
            index = self._read(self._layout.index)
            if index is not None:
                # `conflicts` would build every one of them.
                self._unmerged = bool(C.git_index_has_conflicts(index._index))  # noqa: SLF001
            else:
                self._unmerged = bool(self._program.run("ls-files", "-u", "-z").out)
            self._looked_at = stamp
        return self._unmerged

    def absent_by_design(self) -> frozenset[str]:
        """Gives the files that a sparse checkout leaves out of the work tree."""
        if self._program.problem:
            return frozenset()
        out = self._program.run("ls-files", "-t", "-z").out
        return frozenset(os.fsdecode(line[2:]) for line in out.split(b"\0") if line.startswith(b"S "))

    def edited(self, wanted: Wanted) -> EditedIndex:
        """Gives a copy in which each wanted entry is new, where it was one of the old ones."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        copy = self._scratch / f"index-{next(self._numbers)}"
        stamp = self.stamp()
        if stamp is not None:
            shutil.copy(self._layout.index, copy)
        index = self._read(copy)
        if index is not None and (len(wanted) <= MANY or self._program.problem):
            changed = self._set_by_libgit2(index, wanted)
        else:
            changed = self._set_by_program(copy, wanted)
        if not changed:
            copy.unlink(missing_ok=True)
            return EditedIndex(None, stamp)
        _sync(copy)
        return EditedIndex(copy, stamp)

    def put(self, edited: EditedIndex) -> None:
        """Lets an edited copy take the index's place. The caller holds `index.lock`."""
        if edited.path is not None:
            edited.path.replace(self._layout.index)
            sync_folder(self._layout.gitdir)
            if not self._unmerged:
                self._looked_at = self.stamp()

    def _set_by_libgit2(self, index: pygit2.Index, wanted: Wanted) -> bool:
        changed = False
        for file, (olds, new) in wanted.items():
            present = _present(index, file)
            if isinstance(present, str) or present == new or present not in olds:
                continue
            if new is None:
                index.remove(file)
            else:
                self._add(index, file, new)
            changed = True
        if changed:
            index.write()
        return changed

    def _add(self, index: pygit2.Index, file: str, new: Blob) -> None:
        entry = ffi.new("git_index_entry *")
        path = ffi.new("char[]", os.fsencode(file))
        ffi.buffer(ffi.addressof(entry, "id"))[:] = pygit2.Oid(hex=new.oid).raw
        entry.mode, entry.path = new.mode, path
        present = C.git_index_get_bypath(index._index, path, 0)  # noqa: SLF001
        if present != ffi.NULL:
            entry.flags = present.flags & ASSUME_UNCHANGED
            entry.flags_extended = present.flags_extended & SKIP_WORKTREE
        found = _stat_if_same(self._layout.workdir / file, new)
        if found is not None:
            # With the file's times in it, `git status` need not read the file again.
            entry.mtime.seconds, entry.mtime.nanoseconds = divmod(found.st_mtime_ns, 10**9)
            entry.ctime.seconds, entry.ctime.nanoseconds = divmod(found.st_ctime_ns, 10**9)
            entry.dev, entry.ino = found.st_dev & 0xFFFFFFFF, found.st_ino & 0xFFFFFFFF
            entry.uid, entry.gid = found.st_uid, found.st_gid
            entry.file_size = found.st_size & 0xFFFFFFFF
        if C.git_index_add(index._index, entry):  # noqa: SLF001 - pygit2's own entries carry no times
            raise OSError(f"{file}: git's index does not take it")

    def _set_by_program(self, copy: Path, wanted: Wanted) -> bool:
        listed = self._program.run("ls-files", "-s", "-z", index=copy).out
        present, unmerged = _listed(listed)
        chosen = {
            file: new
            for file, (olds, new) in wanted.items()
            if file not in unmerged and present.get(file) != new and present.get(file) in olds
        }
        length = max((len(old.oid) for olds, _ in wanted.values() for old in olds if old), default=40)
        lines = b"".join(_index_line(file, new, length) for file, new in chosen.items())
        if chosen:
            self._program.run("update-index", "--replace", "-z", "--index-info", index=copy, stdin=lines)
            self._program.run("update-index", "-q", "--refresh", index=copy, accept=(0, 1))
        return bool(chosen)

    def _read(self, path: Path) -> pygit2.Index | None:
        """Opens an index, or gives None for one that libgit2 does not understand."""
        # Not through pygit2.Index(path): one that fails to open complains again when it is collected.
        index = ffi.new("git_index **")
        if C.git_index_open(index, os.fsencode(path)):
            return None
        take: Callable[[None, object], pygit2.Index] = pygit2.Index.from_c
        return take(None, index)


def _present(index: pygit2.Index, file: str) -> Blob | str | None:
    """Gives a file's entry, None for none, or a word for conflicting ones."""
    raw = os.fsencode(file)
    if any(C.git_index_get_bypath(index._index, raw, stage) != ffi.NULL for stage in (1, 2, 3)):  # noqa: SLF001
        return "unmerged"
    entry = C.git_index_get_bypath(index._index, raw, 0)  # noqa: SLF001
    if entry == ffi.NULL:
        return None
    return Blob(int(entry.mode), bytes(ffi.buffer(ffi.addressof(entry, "id"))).hex())


def _stat_if_same(path: Path, new: Blob) -> os.stat_result | None:
    """Gives the file's stat when its bytes are just what was committed."""
    try:
        before = path.lstat()
        same = str(pygit2.hash(path.read_bytes())) == new.oid
        return before if same and before == path.lstat() else None
    except OSError:
        return None


def _listed(out: bytes) -> tuple[Entries, set[str]]:
    """Reads `ls-files -s -z`: entries, and the names of the unmerged ones."""
    entries: Entries = {}
    unmerged = set()
    for line in out.split(b"\0"):
        if line:
            head, _, name = line.partition(b"\t")
            mode, oid, stage = head.decode().split(" ")
            entries[os.fsdecode(name)] = Blob(int(mode, 8), oid)
            if stage != "0":
                unmerged.add(os.fsdecode(name))
    return entries, unmerged


def _index_line(file: str, new: Blob | None, length: int) -> bytes:
    head = f"{new.mode:o} {new.oid} 0\t" if new else f"0 {'0' * length} 0\t"
    return head.encode() + os.fsencode(file) + b"\0"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Keeps the person's index in step with what we committed, and leaves all else in it alone.

Moving a branch without its index would make the person's next commit put the old version back. So the entry of
each committed file is set to the new blob, only where it still equals what HEAD had before. What is staged,
unmerged or absent by design stays. What could not be done waits in a queue on disk (one JSON object a line),
which is written before the branch moves: a killed owner's successor finishes it.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pygit2
from pygit2.ffi import C, ffi

from pcpd.history.configuration import stamp_of
from pcpd.history.layout import Layout
from pcpd.history.locks import Locks, sync_folder
from pcpd.history.program import Program
from pcpd.history.versions import Blob, Edit

MANY = 1000
SKIP_WORKTREE = 0x4000
Wanted = dict[str, tuple[frozenset[Blob | None], Blob | None]]
Entries = dict[str, Blob | None]


class IndexEntries:
    """The person's index and our queue for it. `in_head(file)` gives what HEAD has now."""

    def __init__(self, layout: Layout, program: Program, locks: Locks, queue: Path) -> None:
        self._layout = layout
        self._program = program
        self._locks = locks
        self._queue = queue
        self._waiting: Wanted = {}
        self._looked_at: object = object()
        self._unmerged = False
        self._load()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files whose entries could not be set yet."""
        return tuple(sorted(self._waiting))

    def want(self, edits: Sequence[Edit]) -> None:
        """Notes durably that these entries shall follow, before the branch moves."""
        for edit in edits:
            olds, _ = self._waiting.get(edit.file, (frozenset[Blob | None](), None))
            self._waiting[edit.file] = (olds | {edit.old}, edit.new)
        self._queue.parent.mkdir(parents=True, exist_ok=True)
        with self._queue.open("a", encoding="utf-8") as file:
            file.writelines(_line(edit.file, {edit.old}, edit.new) for edit in edits)
            file.flush()
            os.fsync(file.fileno())

    def settle(self, in_head: Callable[[str], Blob | None]) -> None:
        """Sets what waits. The caller holds `index.lock`."""
        # What HEAD no longer has this way was overtaken: by the person, or by a commit that never came about.
        wanted = {file: want for file, want in self._waiting.items() if in_head(file) == want[1]}
        if wanted:
            self._apply(wanted)
        self._waiting = {}
        self._queue.unlink(missing_ok=True)

    def unmerged(self) -> bool:
        """Tells whether the index holds conflicts that the person has not resolved."""
        stamp = stamp_of(self._layout.index)
        if stamp != self._looked_at:
            index = self._read(self._layout.index)
            if index is not None:
                # `conflicts` would build every one of them.
                self._unmerged = bool(C.git_index_has_conflicts(index._index))  # noqa: SLF001
            else:
                self._unmerged = bool(self._program.run("ls-files", "-u", "-z").out)
            self._looked_at = stamp
        return self._unmerged

    def absent_by_design(self, files: Iterable[str]) -> frozenset[str]:
        """Gives those of `files` that a sparse checkout leaves out of the work tree."""
        if self._program.problem:
            return frozenset()
        out = self._program.run("ls-files", "-t", "-z").out
        left_out = {os.fsdecode(line[2:]) for line in out.split(b"\0") if line.startswith(b"S ")}
        return frozenset(left_out.intersection(files))

    def _apply(self, wanted: Wanted) -> None:
        with tempfile.TemporaryDirectory(dir=self._queue.parent) as folder:
            copy = Path(folder) / "index"
            if self._layout.index.exists():
                shutil.copyfile(self._layout.index, copy)
            index = self._read(copy)
            if index is not None and (len(wanted) <= MANY or self._program.problem):
                changed = self._set_by_libgit2(index, wanted)
            else:
                changed = self._set_by_program(copy, wanted)
            if changed:
                shutil.copymode(self._layout.index, copy) if self._layout.index.exists() else copy.chmod(
                    0o644
                )
                _sync(copy)
                copy.replace(self._layout.index)
                sync_folder(self._layout.gitdir)
                if not self._unmerged:
                    self._looked_at = stamp_of(self._layout.index)

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
        try:
            index = pygit2.Index(str(path))
            index.read()
        except (pygit2.GitError, OSError):
            return None
        return index

    def _load(self) -> None:
        try:
            lines = self._queue.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # torn by a crash before its branch moved
            olds, _ = self._waiting.get(said["file"], (frozenset[Blob | None](), None))
            self._waiting[said["file"]] = (olds | {_blob(old) for old in said["olds"]}, _blob(said["new"]))


def _present(index: pygit2.Index, file: str) -> Blob | str | None:
    """Gives a file's entry, None for none, or a word for one that must be left alone."""
    raw = os.fsencode(file)
    if any(C.git_index_get_bypath(index._index, raw, stage) != ffi.NULL for stage in (1, 2, 3)):  # noqa: SLF001
        return "unmerged"
    entry = C.git_index_get_bypath(index._index, raw, 0)  # noqa: SLF001
    if entry == ffi.NULL:
        return None
    if entry.flags_extended & SKIP_WORKTREE:
        return "absent by design"
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


def _line(file: str, olds: Iterable[Blob | None], new: Blob | None) -> str:
    said: Mapping[str, object] = {
        "file": file,
        "olds": [[old.mode, old.oid] if old else None for old in olds],
        "new": [new.mode, new.oid] if new else None,
    }
    return json.dumps(said) + "\n"


def _blob(said: list[object] | None) -> Blob | None:
    return Blob(int(str(said[0])), str(said[1])) if said else None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

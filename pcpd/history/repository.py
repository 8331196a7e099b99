"""One vault's history in git: commits of what came to rest on disk, and the way back to each version.

Follows architecture.md, *Commits*. Never writes the work tree. Whatever happens, a commit is there whole or not
at all, and doing it again gives the same. Commits carry pcpd's own identity as author and committer, because no
person made them; who acted stands in the trailer `Pcp-Principal`. All methods may be called from any thread;
`build` does the long work, `publish` the short.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pcpd.errors import Invalid, NotFound
from pcpd.history import bulk, ground, layout, libgit2, packing, refs
from pcpd.history.aside import Aside, message_of
from pcpd.history.attributes import Attributes, Unfilterable
from pcpd.history.configuration import Configuration
from pcpd.history.drafting import Draft
from pcpd.history.gate import Gate
from pcpd.history.ground import Ground
from pcpd.history.index_entries import IndexEntries
from pcpd.history.index_file import IndexFile
from pcpd.history.layout import Layout
from pcpd.history.libgit2 import Libgit2
from pcpd.history.locks import Locks
from pcpd.history.objects import Objects
from pcpd.history.plumbing import Plumbing
from pcpd.history.program import Program
from pcpd.history.reading import Reading
from pcpd.history.versions import (
    EXECUTABLE,
    REGULAR,
    Blob,
    Busy,
    Change,
    Committed,
    EditedIndex,
    Locked,
    Moved,
    Prepared,
    RepositoryState,
    Target,
    Touched,
    Version,
)

FEW = 16
ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of one repository, put together once."""

    layout: Layout
    program: Program
    objects: Objects
    locks: Locks
    configuration: Configuration
    index: IndexFile
    entries: IndexEntries
    gate: Gate


class Repository:
    """The history of one vault. Made by `open`; one at a time for each vault."""

    def __init__(self, parts: _Parts, *, context_id: str, device: str, clock: Callable[[], float]) -> None:
        self._layout = parts.layout
        self._program = parts.program
        self._objects = parts.objects
        self._configuration = parts.configuration
        self._index = parts.index
        self._entries = parts.entries
        self._gate = parts.gate
        self._locks = parts.locks
        self._clock = clock
        self._branch = f"refs/heads/pcpd/{context_id}"
        self._builds = itertools.count()
        self._aside = Aside(self._objects, device)
        self._ground = Ground(
            self._layout, self._objects, self._index, branch=self._branch, aside=self._aside
        )
        self._attributes = Attributes(
            self._layout, self._program, self._configuration, self._ground.has_attributes
        )
        self._reading = Reading(self._layout, self._program, self._objects, self._attributes)
        self._index_lock = self._layout.gitdir / "index.lock"
        self._guard = threading.RLock()

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        context_id: str,
        device: str,
        create: bool,
        environment: Mapping[str, str],
        clock: Callable[[], float],
    ) -> "Repository":
        """Opens the repository of the vault at `root`, or makes one when `create` and there is none.

        `clock` gives wall-clock seconds. Clears what a killed owner left, so that the caller must own the vault.
        Raises NotFound (`history.none`), Broken (`history.broken`), Unavailable (`history.git-missing`) where
        only the git program understands the repository and there is none.
        """
        found = layout.find(root)
        if found is None and not create:
            raise NotFound("history.none", f"{root} has no git repository", hint="`pcpd init` makes one")
        where = found or layout.make(root, context_id)
        context_id, device = refs.component(context_id), refs.component(device)
        program = Program(where, environment)
        ours = where.gitdir / "pcpd" / context_id
        locks = Locks(ours / "locks")
        locks.clear()
        plumbing = Plumbing(program, ours / "scratch")
        objects: Objects = Libgit2(where, locks, plumbing) if libgit2.can_open(where) else plumbing
        index = IndexFile(where, program, ours)
        parts = _Parts(
            layout=where,
            program=program,
            objects=objects,
            locks=locks,
            configuration=Configuration(where, program, environment),
            index=index,
            entries=IndexEntries(index, ours / "unsettled"),
            gate=Gate(where, clock, is_new=found is None),
        )
        return cls(parts, context_id=context_id, device=device, clock=clock)

    def store(self, file: str, data: bytes) -> str:
        """Stores one version's bytes now, durable, through git's clean step where attributes ask for one.

        Gives the blob's id for a `Change`. Raises Invalid (`history.filter`) when the filter cannot run.
        """
        how, head = self._attributes.conversion(file), self._ground.base()
        if not how.touches(data, lambda: self._bytes_at(head, file)):
            return self._objects.write_blob(data)
        try:
            return self._attributes.clean(file, data, how, write=True)
        except Unfilterable as error:
            raise Invalid(
                "history.filter", f"{file} is not stored: {error}", hint="see .gitattributes"
            ) from error

    def commit(
        self,
        changes: Iterable[Change],
        *,
        message: str,
        now: datetime,
        principal: str = "",
        aside: bool = False,
    ) -> Committed:
        """Builds and publishes one commit, again when the branch moved meanwhile.

        `aside` sends it to the wip ref in any case: for a version that is no longer on disk. Raises Busy while
        git must be left alone; then nothing was committed.
        """
        given = list(changes)
        for attempt in range(ATTEMPTS):
            # At last other commits of ours wait for this one, which may be long in building.
            with self._guard if attempt > ATTEMPTS // 2 else contextlib.nullcontext():
                prepared = self.build(given, message=message, now=now, principal=principal, aside=aside)
                try:
                    return self.publish(prepared)
                except Moved:
                    continue
        raise Busy("the branch keeps moving", 1000)

    def build(
        self,
        changes: Iterable[Change],
        *,
        message: str,
        now: datetime,
        principal: str = "",
        aside: bool = False,
    ) -> Prepared:
        """Stores blobs, trees and the commit; no ref moves. May take long, and reads `changes` as it goes."""
        with self._guard:
            self._gate.check()
        target = self._ground.target(aside)
        left_out = self._index if ground.is_sparse(self._layout, self._configuration) else None
        utf8_only = bool(self._program.problem)
        draft = Draft(
            self._layout, self._objects, self._attributes, target.base, left_out=left_out, utf8_only=utf8_only
        )
        text = message_of(message, principal, aside=target.aside and (self._ground.operation() or "aside"))
        steps = draft.steps(changes)
        first = list(itertools.islice(steps, FEW + 1))
        if len(first) > FEW and not self._program.problem:
            rev, edits = bulk.write(
                self._program, itertools.chain(first, steps),
                ref=f"{self._aside.ref}-build-{next(self._builds)}", parents=target.parents, message=text, now=now,
            )  # fmt: skip
        else:
            edits = []
            for step in itertools.chain(first, steps):
                if step.data is not None:
                    self._objects.write_blob(step.data)
                edits.append(step.edit)
            made = {edit.file: edit.new for edit in edits}
            tree = self._objects.change_tree(target.base, made) if edits else ""
            rev = self._objects.commit(tree, target.parents, text, now) if edits else ""
        prepared = Prepared(target, rev or None, tuple(edits), tuple(draft.unchanged), tuple(draft.refused))
        if not edits or not self._has_index(target):
            return prepared
        return replace(prepared, index=self._entries.prepare(edits), note=self._entries.note(edits))

    def publish(self, prepared: Prepared) -> Committed:
        """Moves the ref to what was built, and the person's index entries with it.

        Raises Moved when HEAD or the branch is not where it was, Busy while git must be left alone.
        """
        with self._guard:
            target = prepared.target
            try:
                self._gate.check()
                if self._has_moved(target):
                    raise Moved(target.ref)
                self._publish(prepared)
                self._land(prepared)
            except Locked as error:
                raise self._gate.held(Path(error.lock)) from error
            finally:
                self._entries.discard(prepared.index)
        return Committed(
            rev=prepared.rev,
            ref=target.ref,
            skipped_unchanged=prepared.unchanged,
            refused=prepared.refused,
            unsettled=self._entries.waiting,
            aside=target.aside,
        )

    def settle(self) -> tuple[str, ...]:
        """Sets index entries that wait since somebody held the lock; gives the files that still wait."""
        with self._guard:
            if self._entries.waiting:
                try:
                    with self._locks.hold(self._index_lock, b""):
                        self._settle_held()
                except Locked:
                    pass  # told by what is still waiting
            return self._entries.waiting

    def wip_files(self) -> tuple[str, ...]:
        """Gives files whose versions wait on the wip ref, when nothing keeps them from the branch any more.

        Commit them once, as they are on disk then (absent ones as deletions): that ends the waiting.
        """
        return () if self._ground.target(False).aside else self._aside.files()

    def is_aside(self) -> bool:
        """Tells whether versions wait on the wip ref, whatever keeps them from the branch."""
        return bool(self._aside.files())

    def maintain(self) -> bool:
        """Packs loose objects when there are many, and never prunes; tells whether it did. For idle times."""
        return packing.pack(self._layout, self._program)

    def state(self) -> RepositoryState:
        """Gives what `status` shows."""
        with self._guard:
            locked = self._gate.locked()
        head = self._objects.head()
        return RepositoryState(
            kind=self._layout.kind,
            branch=self.branch().removeprefix("refs/heads/"),
            operation=self._ground.operation(),
            detached=head.branch is None,
            unborn=head.commit is None,
            locked=locked,
            notice=" ".join(ground.notices(self._layout, self._program, self._configuration)),
            wip=len(self._aside.files()),
            unsettled=len(self._entries.waiting),
        )

    def branch(self) -> str:
        """Gives the full name of the branch that commits go to now; empty where HEAD is detached."""
        return self._branch if self._layout.kind == "above" else self._objects.head().branch or ""

    def head_files(self) -> dict[str, str]:
        """Gives the blob id of each file that the branch has. Nested repositories are not among them."""
        files = self._objects.files(base) if (base := self._ground.base()) else ()
        return {file: blob.oid for file, blob in files if blob.mode in {REGULAR, EXECUTABLE}}

    def blob_id(self, data: bytes) -> str:
        """Gives the id that git has for bytes stored as they are."""
        return self._objects.blob_id(data)

    def blob(self, oid: str, limit: int) -> bytes:
        """Gives a stored blob's bytes. Raises Unavailable (`history.absent`) where it is not here, or is larger."""
        return self._reading.blob(oid, limit)

    def differs(self, file: str, data: bytes) -> bool:
        """Tells whether a file's bytes differ from what the branch has, filters considered."""
        base = self._ground.base()
        old = self._objects.entry(base, file) if base else None
        if old is None:
            return True
        if self._objects.blob_id(data) == old.oid:
            return False
        how = self._attributes.conversion(file)
        if not how.touches(data, lambda: self._bytes_at(base, file)):
            return True
        try:
            return self._attributes.clean(file, data, how, write=False) != old.oid
        except Unfilterable:
            return True

    def close(self) -> None:
        """Lets go of the repository's files. Nothing may be called afterwards."""
        self._objects.close()

    def log(self, file: str | None = None, *, limit: int = 50, before: str | None = None) -> list[Version]:
        """Lists the versions of a file, across renames, or of the whole vault; newest first."""
        return self._reading.log(self._ground.tips(), file, limit=limit, before=before)

    def show(self, file: str, rev: str, *, limit: int | None = None) -> bytes:
        """Gives a file's bytes at `rev`, as on disk. Raises NotFound (`history.no-version`), also over `limit`."""
        return self._reading.show(file, self.resolve(rev), limit)

    def touched(self, rev: str) -> tuple[Touched, ...]:
        """Gives the files that the commit `rev` changed."""
        return self._reading.touched(self.resolve(rev))

    def diff(self, file: str | None, old: str | None = None, new: str | None = None) -> str:
        """Gives the difference from version `old` (None: the branch's) to `new` (None: the disk), unified.

        Of the whole vault, the disk's side shows files that git knows; in a larger repository it is the branch.
        """
        start = self.resolve(old) if old else self._ground.base()
        if new is not None:
            return self._reading.diff(file, start, self.resolve(new))
        if file is None:
            return self._reading.diff(file, start, self._branch if self._layout.kind == "above" else None)
        data = self._reading.on_disk(file)
        blob = Blob(REGULAR, self.store(file, data)) if data is not None else None
        return self._reading.diff(file, start, self._objects.change_tree(start, {file: blob}))

    def compare(self, old: str, new: str) -> str:
        """Gives the difference between two stored blobs, by their ids, as unified text without names."""
        return self._reading.compare(old, new)

    def resolve(self, rev: str) -> str:
        """Gives the full id of the version that `rev` names. Raises Usage or NotFound."""
        return self._reading.resolve(rev, self._ground.tips(), self._ground.base())

    def _has_moved(self, target: Target) -> bool:
        """Tells whether a commit that was built for `target` must not go there any more."""
        if self._objects.head() != target.head or self._objects.ref(target.ref) != target.tip:
            return True
        return not target.aside and self._ground.operation() != ""

    def _publish(self, prepared: Prepared) -> None:
        target, rev = prepared.target, prepared.rev
        if rev is None:
            self.settle()  # a killed owner may have committed this already, and come no further
            return
        log = refs.log_line(int(self._clock()), f"{len(prepared.edits)} files")
        if not self._has_index(target):
            self._objects.move(target.ref, old=target.tip, new=rev, log=log)
            return
        ahead = prepared.index if not self._entries.waiting else None
        self._entries.want(prepared.edits, prepared.note)
        try:
            with self._locks.hold(self._index_lock, b""):
                self._objects.move(target.ref, old=target.tip, new=rev, log=log)
                self._settle_held(ahead)
        except Locked as error:
            if error.lock != str(self._index_lock):
                raise
            self._objects.move(target.ref, old=target.tip, new=rev, log=log)

    def _has_index(self, target: Target) -> bool:
        """Tells whether the person's index has to follow a commit."""
        return not target.aside and self._layout.kind != "above"

    def _settle_held(self, ahead: EditedIndex | None = None) -> None:
        base = self._ground.base()
        self._entries.settle(lambda file: self._objects.entry(base, file) if base else None, ahead)
        self._gate.settled()

    def _land(self, prepared: Prepared) -> None:
        if prepared.target.aside:
            return
        files = {edit.file for edit in prepared.edits} | {each.file for each in prepared.refused}
        self._aside.land(files.union(prepared.unchanged), log=refs.log_line(int(self._clock()), "landed"))

    def _bytes_at(self, commit: str | None, file: str) -> bytes | None:
        found = self._objects.entry(commit, file) if commit else None
        return self._objects.read_blob(found.oid) if found else None

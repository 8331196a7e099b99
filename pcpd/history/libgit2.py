"""Objects and refs through libgit2: the fast way of one commit. It runs no hook and asks for no name.

Not for repositories that it refuses (SHA-256, reftable, unknown extensions): `plumbing` serves those. Calls are
serialised by a lock, because libgit2's handles are not for several threads at once.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from pcpd.history import names, refs
from pcpd.history.blobs import absent, blob_id
from pcpd.history.layout import Layout
from pcpd.history.locks import Locks
from pcpd.history.plumbing import Plumbing
from pcpd.history.versions import EMAIL, FOLDER, NAME, Blob, Edit, Head

CACHE_BYTES = 8 * 1024 * 1024  # of objects already read; libgit2 would keep 256 MiB
# Of one tree to keep: libgit2's own 4 KiB would parse a larger folder anew for each file in it.
TREE_BYTES = 4 * 1024 * 1024
Group = dict[str, "Blob | Group | None"]


def prepare() -> None:
    """Sets what libgit2 keeps for the whole process: write durably, and leave the owner's check to us.

    A vault on a disk of another system belongs to nobody here; the person named the folder, and we run nothing
    that a repository's configuration asks for but its filters (attributes.py).
    """
    pygit2.settings.enable_fsync_gitdir(True)
    pygit2.settings.owner_validation = False
    pygit2.settings.cache_max_size(CACHE_BYTES)
    pygit2.settings.cache_object_limit(ObjectType.TREE, TREE_BYTES)


def can_open(layout: Layout) -> bool:
    """Tells whether libgit2 understands this repository."""
    prepare()
    try:
        pygit2.Repository(str(layout.gitdir), RepositoryOpenFlag.NO_SEARCH).free()
    except pygit2.GitError:
        return False
    return not (layout.commondir / "reftable").exists()


class Libgit2:
    """One repository's objects, opened once. See `objects.Objects` for what each method promises."""

    def __init__(self, layout: Layout, locks: Locks, program: Plumbing) -> None:
        prepare()
        self._layout = layout
        self._locks = locks
        self._program = program
        self._repository = pygit2.Repository(str(layout.gitdir), RepositoryOpenFlag.NO_SEARCH)
        self._guard = threading.RLock()

    def blob_id(self, data: bytes) -> str:
        """Gives the id that `data` would have."""
        return blob_id(data, "sha1")

    def write_blob(self, data: bytes) -> str:
        """Stores `data` as it is."""
        with self._guard:
            return str(self._repository.create_blob(data))

    def read_blob(self, oid: str) -> bytes:
        """Gives a blob's bytes."""
        with self._guard:
            found = self._repository.get(oid)
            if not isinstance(found, pygit2.Blob):
                raise absent(oid)
            return found.data

    def size(self, oid: str) -> int:
        """Gives how many bytes a blob has."""
        with self._guard:
            try:
                return int(self._repository.odb.read_header(pygit2.Oid(hex=oid))[1])
            except KeyError:
                raise absent(oid) from None

    def entry(self, commit: str, file: str) -> Blob | None:
        """Gives what `commit` has under `file`."""
        with self._guard:
            found: pygit2.Object | None = self._tree_object(commit)
            for segment in file.split("/"):
                found = _child(found, segment)
                if found is None:
                    return None
            return Blob(int(found.filemode), str(found.id)) if found is not None else None

    def names(self, commit: str, folder: str) -> Sequence[str]:
        """Gives the names in a folder of `commit`."""
        with self._guard:
            found: pygit2.Object | None = self._tree_object(commit)
            for segment in folder.split("/") if folder else ():
                found = _child(found, segment)
            return (
                [os.fsdecode(each.raw_name or b"") for each in found]
                if isinstance(found, pygit2.Tree)
                else []
            )

    def files(self, commit: str) -> Iterator[tuple[str, Blob]]:
        """Gives all files of `commit`."""
        with self._guard:
            yield from _walk(self._tree_object(commit), "")

    def changed(self, old: str | None, new: str) -> list[Edit]:
        """Gives the files in which two commits differ."""
        with self._guard:
            if old is None:
                return [Edit(file, None, blob) for file, blob in self.files(new)]
            diff = self._tree_object(old).diff_to_tree(self._tree_object(new))
            return [
                Edit(os.fsdecode(delta.new_file.raw_path), _side(delta.old_file), _side(delta.new_file))
                for delta in diff.deltas
            ]

    def tree(self, commit: str) -> str:
        """Gives the id of a commit's tree."""
        with self._guard:
            return str(self._tree_object(commit).id)

    def parents(self, commit: str) -> tuple[str, ...]:
        """Gives a commit's parents."""
        with self._guard:
            return tuple(str(parent) for parent in self._commit_object(commit).parent_ids)

    def message(self, commit: str) -> str:
        """Gives a commit's message."""
        with self._guard:
            return self._commit_object(commit).message

    def change_tree(self, base: str | None, edits: Mapping[str, Blob | None]) -> str:
        """Rewrites the trees along the edited paths, and no others."""
        if not all(map(names.is_utf8, edits)):  # pygit2 takes no other names
            return self._program.change_tree(base, edits)
        with self._guard:
            tree = self._tree_object(base) if base else None
            made = self._rewrite(tree, _grouped(edits))
            return made or str(self._repository.TreeBuilder().write())

    def commit(self, tree: str, parents: Sequence[str], message: str, now: datetime) -> str:
        """Writes a commit under pcpd's own identity."""
        who = pygit2.Signature(NAME, EMAIL, int(now.timestamp()), 0)
        with self._guard:
            return str(self._repository.create_commit(None, who, who, message, tree, list(parents)))

    def head(self) -> Head:
        """Gives where HEAD points now."""
        return refs.head(self._layout)

    def ref(self, name: str) -> str | None:
        """Gives the commit of a ref."""
        return refs.read(self._layout, name)

    def move(self, ref: str, *, old: str | None, new: str, log: str) -> None:
        """Moves a ref by compare-and-swap."""
        refs.move(self._layout, self._locks, ref, old=old, new=new, log=log)

    def resolve(self, rev: str) -> str | None:
        """Gives the commit that `rev` means."""
        with self._guard:
            try:
                return str(self._repository.revparse_single(rev).peel(pygit2.Commit).id)
            except (KeyError, ValueError, pygit2.GitError):
                return None

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Tells whether `commit` is `of` or one of its ancestors."""
        with self._guard:
            return commit == of or self._repository.descendant_of(of, commit)

    def close(self) -> None:
        """Ends git's runs under way and lets go of open files."""
        self._program.close()
        with self._guard:
            self._repository.free()

    def _commit_object(self, commit: str) -> pygit2.Commit:
        found = self._repository.get(commit)
        if not isinstance(found, pygit2.Commit):
            raise absent(commit)
        return found

    def _tree_object(self, commit: str) -> pygit2.Tree:
        found = self._repository.get(self._commit_object(commit).tree_id)
        if not isinstance(found, pygit2.Tree):
            raise absent(commit)
        return found

    def _rewrite(self, tree: pygit2.Tree | None, group: Group) -> str | None:
        """Gives the tree with the edits made, or None when nothing is left in it."""
        builder = self._repository.TreeBuilder(tree) if tree is not None else self._repository.TreeBuilder()
        leaves = [(name, edit) for name, edit in group.items() if not isinstance(edit, dict)]
        for name, edit in leaves:
            if edit is None and _child(tree, name) is not None:
                builder.remove(name)
        for name, inner in group.items():
            if isinstance(inner, dict):
                present = _child(tree, name)
                folder = present if isinstance(present, pygit2.Tree) else None
                made = self._rewrite(folder, inner)
                if made:
                    builder.insert(name, made, FOLDER)
                elif folder is not None:
                    builder.remove(name)
        for name, edit in leaves:
            if edit is not None:
                builder.insert(name, edit.oid, edit.mode)
        return str(builder.write()) if len(builder) else None


def _side(file: pygit2.DiffFile) -> Blob | None:
    return Blob(int(file.mode), str(file.id)) if int(file.mode) else None


def _child(tree: pygit2.Object | None, name: str) -> pygit2.Object | None:
    if not isinstance(tree, pygit2.Tree):
        return None
    try:
        return tree[name] if "/" not in name and name in tree else None
    except UnicodeEncodeError:
        raw = os.fsencode(name)
        return next((each for each in tree if each.raw_name == raw), None)


def _walk(tree: pygit2.Tree, prefix: str) -> Iterator[tuple[str, Blob]]:
    for each in tree:
        name = prefix + os.fsdecode(each.raw_name or b"")
        if isinstance(each, pygit2.Tree):
            yield from _walk(each, f"{name}/")
        else:
            yield name, Blob(int(each.filemode), str(each.id))


def _grouped(edits: Mapping[str, Blob | None]) -> Group:
    """Sorts edits into folders. A file that takes a folder's place outranks the removal of what was in it."""
    group: Group = {}
    for file, edit in edits.items():
        *folders, name = file.split("/")
        place = _place(group, folders)
        if place is not None and (edit is not None or not isinstance(place.get(name), dict)):
            place[name] = edit
    return group


def _place(group: Group, folders: list[str]) -> Group | None:
    """Gives the group of a folder, made if need be, or None where a file takes its place."""
    for folder in folders:
        inner = group.get(folder)
        if isinstance(inner, Blob):
            return None
        if inner is None:
            inner = group[folder] = {}
        group = inner
    return group

"""Lists a vault: every file that belongs to it, with its stat, and what could not be looked at.

A scan reads no page. It walks with open folders, never following a link, so that a folder swapped for a
link under its feet leads nowhere. It refuses to call a vanished vault empty, and names the folders that it
could not list, so that nobody takes their pages for deleted. Source: field-hazards.md, vault/.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pcpd.pages.changes import Stat
from pcpd.vault.ignore import (
    DEEPEST,
    OWN_PREFIX,
    SOURCES,
    Ignore,
    Rules,
    is_passing,
    is_too_deep,
    read_source,
)
from pcpd.vault.inode import READ_FLAGS
from pcpd.vault.refusals import NOT_THERE
from pcpd.vault.root import (
    FOLDER_FLAGS,
    RootIdentity,
    is_unicode,
    open_folder,
    open_root,
    printable,
    vanished,
)

NOT_UTF8 = "its name is not UTF-8"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is neither listed nor ignored. `file` is printable, `reason` is a clause."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a scan found. All names are vault-relative.

    What is in or below `unreadable` is unknown, not gone; `nested` folders hold git repositories of their
    own; `mounts` are folders on another file system than the root; `leftovers` are temporary files of ours;
    `folders` are all that were looked into, the root as an empty text.
    """

    files: dict[str, Stat] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    nested: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def scan(
    root: Path,
    ignore: Ignore,
    *,
    identity: RootIdentity | None = None,
    folder: str = "",
    mounts: frozenset[str] = frozenset(),
) -> Listing:
    """Lists what is in `folder` and below, by default all, and reads the ignore rules anew on its way.

    A `folder` that is gone, ignored or a link gives an empty listing. `mounts` are folders that were mounts
    before: where one is none any more, it counts as unreadable, not as empty. Raises `Unavailable`
    (`vault.vanished`) when the root is gone, cannot be listed, or is not the folder `identity`, before or
    after.
    """
    handle = open_root(root, identity)
    try:
        known = RootIdentity.of_open(handle)
        walk = _Walk(ignore, mounts, known.device)
        if folder:
            _start_in(walk, root, known, folder)
        else:
            ignore.refresh()
            walk.enter(handle, "", None, ())
    finally:
        os.close(handle)
    os.close(open_root(root, known))
    if "" in walk.unreadable:
        raise vanished(root, "cannot be listed")
    return walk.listing()


class _Walk:
    """What one scan has gathered so far."""

    def __init__(self, ignore: Ignore, mounts: frozenset[str], device: int) -> None:
        self.ignore = ignore
        self.device = device
        self.expected_mounts = mounts
        self.files: dict[str, Stat] = {}
        self.unreadable: list[str] = []
        self.skipped: list[Skipped] = []
        self.nested: list[str] = []
        self.mounts: list[str] = []
        self.leftovers: list[str] = []
        self.folders: list[str] = []

    def listing(self) -> Listing:
        return Listing(
            self.files,
            tuple(self.unreadable),
            tuple(self.skipped),
            tuple(self.nested),
            tuple(self.mounts),
            tuple(self.leftovers),
            tuple(self.folders),
        )

    def _sort(self, entries: list[os.DirEntry[str]], prefix: str, rules: Rules, below: list[str]) -> None:
        # This loop runs once a file of the vault; everything here that is not per file stands elsewhere.
        ignored = is_passing if rules.is_plain else rules.ignores_file
        files = self.files
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if not rules.ignores_folder(name):
                    below.append(name)
                elif name == ".git":
                    self._note_repository(prefix)
            elif ignored(name):
                self._note_ignored(prefix, name)
            elif not (name.isascii() or is_unicode(name)):
                self.skipped.append(Skipped(printable(prefix + name), NOT_UTF8))
            elif entry.is_file(follow_symlinks=False):
                try:
                    seen = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError:
                    self.unreadable.append(prefix + name)
                    continue
                if seen.st_mode & 0o170000 == stat.S_IFREG:
                    files[prefix + name] = _new_stat(
                        Stat,
                        (
                            seen.st_size,
                            seen.st_mtime_ns,
                            seen.st_ctime_ns,
                            seen.st_ino,
                            seen.st_mode & 0o7777,
                        ),
                    )
            else:
                self.skipped.append(Skipped(prefix + name, _odd_kind(entry)))

    def _descend(self, parent: int, folder: str, rules: Rules, above: tuple[RootIdentity, ...]) -> None:
        name = folder.rpartition("/")[2]
        if not (name.isascii() or is_unicode(name)):
            self.skipped.append(Skipped(printable(folder), NOT_UTF8))
            return
        if is_too_deep(folder):
            self.skipped.append(Skipped(folder, f"it lies more than {DEEPEST} folders deep"))
            return
        try:
            handle = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except OSError as error:
            # Removed, or replaced by a file or a link, since its parent was listed? Else it is still there.
            if error.errno not in NOT_THERE:
                self.unreadable.append(folder)
            return
        try:
            self.enter(handle, folder, rules, above)
        finally:
            os.close(handle)

    def enter(self, handle: int, folder: str, rules: Rules | None, above: tuple[RootIdentity, ...]) -> None:
        """Looks into the open `folder`, unless it contains itself or its file system has gone."""
        own = RootIdentity.of_open(handle)
        if own in above:
            self.skipped.append(Skipped(folder, "it is mounted inside itself"))
            return
        if own.device != self.device:
            self.mounts.append(folder)
        elif folder in self.expected_mounts:
            self.unreadable.append(folder)
            return
        below: list[str] = []
        try:
            with os.scandir(handle) as listing:
                entries = list(listing)
            inside = self.ignore.enter(rules, folder, _sources(handle, entries))
            self._sort(entries, f"{folder}/" if folder else "", inside, below)
        except OSError:
            self.unreadable.append(folder)
            return
        self.folders.append(folder)
        for name in below:
            self._descend(handle, f"{folder}/{name}" if folder else name, inside, (*above, own))

    def _note_repository(self, prefix: str) -> None:
        if prefix:
            self.nested.append(prefix[:-1])

    def _note_ignored(self, prefix: str, name: str) -> None:
        if name.startswith(OWN_PREFIX):
            self.leftovers.append(prefix + name)
        elif name == ".git":
            self._note_repository(prefix)


_new_stat: Callable[[type[Stat], tuple[int, int, int, int, int]], Stat] = tuple.__new__


def _start_in(walk: _Walk, root: Path, identity: RootIdentity, folder: str) -> None:
    parent, _, name = folder.rpartition("/")
    rules = walk.ignore.rules(parent)
    if rules is None or rules.ignores_folder(name):
        return
    try:
        handle = open_folder(root, identity, folder)
    except OSError as error:
        if error.errno not in NOT_THERE:
            walk.unreadable.append(folder)
        return
    try:
        walk.enter(handle, folder, rules, ())
    finally:
        os.close(handle)


def _sources(handle: int, entries: list[os.DirEntry[str]]) -> list[tuple[str, bytes]]:
    """Reads the rule files among the entries of the open folder, weakest first."""
    names = [entry.name for entry in entries]
    return [(source, _source(handle, source)) for source in SOURCES if source in names]


def _source(handle: int, name: str) -> bytes:
    try:
        return read_source(os.open(name, READ_FLAGS, dir_fd=handle))
    except OSError:
        return b""


def _odd_kind(entry: os.DirEntry[str]) -> str:
    return "it is a link, and links are not followed" if entry.is_symlink() else "it is no regular file"

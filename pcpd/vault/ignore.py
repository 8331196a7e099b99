"""What of a folder belongs to the vault: no dot files, no passing files of editors, nothing that is ignored.

Rules come from `.gitignore` and `.pcpignore` at every level and from the vault's own `.git/info/exclude`,
weakest first: exclude file, then from the root down, `.pcpignore` after `.gitignore`. Dot names other than
`.pcp .gitignore .gitattributes .pcpignore` are ignored whatever the rules say, and these four never are.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from pcpd.pages.paths import VERSIONED_DOT_NAMES
from pcpd.vault import gitignore

SOURCES = (".gitignore", ".pcpignore")
EXCLUDE = ".git/info/exclude"
LARGEST_SOURCE = 1 << 20
OWN_PREFIX = ".pcpd-"
DEEPEST = 100
"""Folders nested deeper are not looked into: one open folder for each level must stay affordable."""

_SOURCE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_PASSING_SUFFIXES = (
    "~", ".swp", ".swo", ".swn", ".swx", ".tmp", ".temp", ".part", ".partial", ".crdownload", ".download",
    ".opdownload", "___jb_tmp___", "___jb_old___", "___jb_bak___",
)  # fmt: skip


def is_passing(name: str) -> bool:
    """Tells whether editors, browsers or this program give such names to swap, lock or temporary files.

    Names that begin with a dot are among them, but for the four that belong to every vault.
    """
    if name[0] == ".":
        return name not in VERSIONED_DOT_NAMES
    return (
        name.endswith(_PASSING_SUFFIXES)
        or (name[0] == "#" and name[-1] == "#" and len(name) > 1)
        or name.startswith("~$")
        or name == "4913"  # vim tries whether it may create files, with this name
    )


@dataclass(frozen=True, eq=False)
class Rules:
    """What holds for the names directly inside one folder of the vault."""

    state: gitignore.State

    @cached_property
    def names(self) -> gitignore.NameRules:
        """The compiled rules; folders in the same state share them."""
        return gitignore.name_rules(self.state)

    @property
    def is_plain(self) -> bool:
        """Tells that no rule can ignore a file here, so that `is_passing` decides alone."""
        return not self.names.files

    def ignores_file(self, name: str) -> bool:
        """Tells whether a file of that name is no part of the vault."""
        return is_passing(name) or (name not in VERSIONED_DOT_NAMES and self.names.ignores_file(name))

    def ignores_folder(self, name: str) -> bool:
        """Tells whether a folder of that name is no part of the vault, with all that is below."""
        return is_passing(name) or (name not in VERSIONED_DOT_NAMES and self.names.ignores_folder(name))

    def inside(self, name: str, sources: Iterable[bytes] = ()) -> "Rules":
        """Gives the rules inside the folder `name`, whose own rule files hold `sources`, weakest first."""
        return _with_sources(gitignore.inside(self.state, name), sources, self)


def _with_sources(state: gitignore.State, sources: Iterable[bytes], before: Rules) -> Rules:
    for data in sources:
        state = gitignore.beginning(state, gitignore.parse(data))
    return before if state is before.state else Rules(state)


class Ignore:
    """The ignore rules of one vault, read when first asked for and kept until `refresh` or the next scan.

    May be shared by threads: what it keeps is only ever replaced, never changed.
    """

    def __init__(self, root: Path) -> None:
        """Reads nothing yet. `root` is the vault's folder."""
        self._root = os.fspath(root)
        self._known: dict[str, Rules | None] = {}
        self._sources: dict[str, tuple[str, ...]] = {}

    @classmethod
    def load(cls, root: Path) -> Self:
        """Gives the rules of the vault at `root`, those of the root itself read already."""
        ignore = cls(root)
        ignore.rules("")
        return ignore

    @property
    def sources(self) -> frozenset[str]:
        """The vault-relative names of the rule files read so far: a change to one means `refresh`."""
        return frozenset(file for files in list(self._sources.values()) for file in files)

    @staticmethod
    def is_source(file: str) -> bool:
        """Tells whether a vault-relative name is that of a rule file, read or not."""
        return file == EXCLUDE or file.rpartition("/")[2] in SOURCES

    def refresh(self) -> None:
        """Forgets every rule, so that each is read again when asked for."""
        self._known, self._sources = {}, {}

    def folder(self, path: str) -> bool:
        """Tells whether the folder `path`, or one that it lies in, is ignored; the root (empty) never is."""
        return self.rules(path) is None

    def file(self, path: str) -> bool:
        """Tells whether the file `path`, or a folder that it lies in, is ignored."""
        folder, _, name = path.rpartition("/")
        rules = self.rules(folder)
        return rules is None or rules.ignores_file(name)

    def rules(self, folder: str) -> Rules | None:
        """Gives the rules inside `folder`, or None where the folder is ignored."""
        try:
            return self._known[folder]
        except KeyError:
            return self._read_rules(folder)

    def enter(self, above: Rules | None, folder: str, sources: Iterable[tuple[str, bytes]]) -> Rules:
        """Notes what a scan read in `folder`, and gives the rules inside; `above` is None for the root."""
        own = tuple(sources)
        name = folder.rpartition("/")[2]
        if above is None:
            data = [self._exclude(), *(content for _, content in own)]
            rules = _with_sources(gitignore.START, data, _NO_RULES)
        else:
            rules = above.inside(name, [content for _, content in own])
        self._known[folder] = rules
        prefix = f"{folder}/" if folder else ""
        self._sources[folder] = tuple(prefix + source for source, _ in own)
        return rules

    def _read_rules(self, folder: str) -> Rules | None:
        """Reads the rules of a folder. Those of one that is not there are not kept: anybody may ask for any name."""
        if is_too_deep(folder):
            return None
        parent, _, name = folder.rpartition("/")
        above = self.rules(parent) if folder else None
        is_there = not folder or (parent in self._known and self._is_folder(folder))
        if folder and (above is None or above.ignores_folder(name)):
            if is_there:
                self._known[folder] = None
            return None
        if not is_there and above is not None:
            return above.inside(name)
        prefix = f"{folder}/" if folder else ""
        own = [(source, data) for source in SOURCES if (data := self._read(prefix + source))]
        return self.enter(above, folder, own)

    def _is_folder(self, folder: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"{self._root}/{folder}").st_mode)
        except (OSError, ValueError):
            return False

    def _exclude(self) -> bytes:
        return self._read(EXCLUDE)

    def _read(self, file: str) -> bytes:
        try:
            handle = os.open(f"{self._root}/{file}", _SOURCE_FLAGS)
        except OSError:
            return b""
        return read_source(handle)


def is_too_deep(folder: str) -> bool:
    """Tells whether a folder, by its vault-relative name, is nested deeper than is looked."""
    return folder.count("/") + 1 >= DEEPEST


def read_source(handle: int) -> bytes:
    """Reads a rule file from an open descriptor, and closes it; what cannot be read holds no rules."""
    try:
        with os.fdopen(handle, "rb") as file:
            return file.read(LARGEST_SOURCE)
    except OSError:
        return b""


_NO_RULES = Rules(gitignore.START)

"""Looks at what shall be committed, file by file: what is new, what is as it was, what git must not hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pcpd.errors import Unavailable
from pcpd.history import names
from pcpd.history.attributes import Attributes, Conversion, Unfilterable
from pcpd.history.index_file import IndexFile
from pcpd.history.layout import Layout
from pcpd.history.objects import Objects
from pcpd.history.versions import (
    EXECUTABLE,
    FOLDER,
    GITLINK,
    REGULAR,
    Blob,
    Change,
    Edit,
    Refused,
)

CHUNK = 500
_RAW = Conversion()


@dataclass(frozen=True, slots=True)
class Step:
    """One edit, with the bytes that are still to be stored, or None when the blob is there already."""

    edit: Edit
    data: bytes | None = field(repr=False)


class Draft:
    """One commit being looked at. `unchanged` and `refused` fill up while `steps` is consumed."""

    def __init__(
        self,
        layout: Layout,
        objects: Objects,
        attributes: Attributes,
        base: str | None,
        *,
        left_out: IndexFile | None,
        utf8_only: bool,
    ) -> None:
        self._utf8_only = utf8_only
        self._layout = layout
        self._objects = objects
        self._attributes = attributes
        self._base = base
        self._left_out = left_out
        self._names: dict[str, Sequence[str]] = {}
        self._nested: dict[str, bool] = {}
        self._respelled: set[str] = set()
        self._absent: frozenset[str] | None = None
        self.unchanged: list[str] = []
        self.refused: list[Refused] = []

    def steps(self, changes: Iterable[Change]) -> Iterator[Step]:
        """Yields what differs from the base, reading `changes` only as far as it is asked to."""
        rest = iter(changes)
        while chunk := list(islice(rest, CHUNK)):
            written = [
                change.file for change in chunk if change.data is not None and not self._unfit(change.file)
            ]
            conversions = self._attributes.conversions(written) if written else {}
            for change in sorted(chunk, key=lambda change: change.is_deletion):
                step = self._look(change, conversions.get(change.file, _RAW))
                if step is not None:
                    yield step

    def _look(self, change: Change, how: Conversion) -> Step | None:
        reason = self._unfit(change.file) or self._inside_another(change.file)
        if reason:
            self.refused.append(Refused(change.file, reason))
            return None
        if change.is_deletion:
            return self._removed(change.file)
        file = self._spelled(change.file)
        old = self._blob(file)
        try:
            oid, data = self._stored(change, how, old)
        except Unfilterable as error:
            self.refused.append(Refused(change.file, str(error)))
            return None
        mode = (
            old.mode
            if old and old.mode in {REGULAR, EXECUTABLE}
            else EXECUTABLE
            if change.executable
            else REGULAR
        )
        new = Blob(mode, oid)
        if new == old:
            self.unchanged.append(change.file)
            return None
        return Step(Edit(file, old, new), data)

    def _unfit(self, file: str) -> str:
        if self._utf8_only and not names.is_utf8(file):
            return "its name is not UTF-8, which needs the git program"
        return names.unfit(file)

    def _removed(self, file: str) -> Step | None:
        old = self._blob(file)
        if old is None or file in self._respelled or not self._is_gone(file):
            self.unchanged.append(file)
            return None
        return Step(Edit(file, old, None), None)

    def _is_gone(self, file: str) -> bool:
        """Tells whether a file is missing because somebody deleted it."""
        if not file.isascii() and names.on_disk(self._layout.root, file) is not None:
            return False
        if self._left_out is None:
            return True
        if self._absent is None:
            self._absent = self._left_out.absent_by_design()
        return file not in self._absent

    def _stored(self, change: Change, how: Conversion, old: Blob | None) -> tuple[str, bytes | None]:
        """Gives the blob's id, and the bytes if they are still to be stored as they are."""
        if change.data is None:
            return change.oid or "", None
        raw = self._objects.blob_id(change.data)
        if old is not None and raw == old.oid:
            return raw, None
        if how.touches(change.data, lambda: self._bytes(old)):
            return self._attributes.clean(change.file, change.data, how, write=True), None
        return raw, change.data

    def _bytes(self, blob: Blob | None) -> bytes | None:
        try:
            return self._objects.read_blob(blob.oid) if blob else None
        except Unavailable:
            return None

    def _blob(self, file: str) -> Blob | None:
        found = self._objects.entry(self._base, file) if self._base else None
        return None if found is None or found.mode == FOLDER else found

    def _spelled(self, file: str) -> str:
        """Gives the name as the base spells it, where the disk has but one file for both spellings."""
        if file.isascii() or self._base is None or self._blob(file) is not None:
            return file
        other = names.other_spelling(file, self._names_in_base)
        if other is None or self._is_another_file(file, other):
            return file
        self._respelled.add(other)
        return other

    def _is_another_file(self, file: str, other: str) -> bool:
        try:
            there = (self._layout.root / other).lstat()
            here = (self._layout.root / file).lstat()
        except OSError:
            return False
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _names_in_base(self, folder: str) -> Sequence[str]:
        if folder not in self._names:
            self._names[folder] = self._objects.names(self._base, folder) if self._base else ()
        return self._names[folder]

    def _inside_another(self, file: str) -> str:
        """Says that a file belongs to a nested repository, or nothing."""
        folder = file.rpartition("/")[0]
        is_link = folder != "" and self._is_link(folder)
        if is_link or names.is_nested(self._layout.root, file, self._nested):
            return "it lies in a repository of its own, which keeps its own history"
        return ""

    def _is_link(self, folder: str) -> bool:
        key = f"\0{folder}"
        if key not in self._nested:
            found = self._objects.entry(self._base, folder) if self._base else None
            parent = folder.rpartition("/")[0]
            is_link = found is not None and found.mode == GITLINK
            self._nested[key] = is_link or (found is None and parent != "" and self._is_link(parent))
        return self._nested[key]

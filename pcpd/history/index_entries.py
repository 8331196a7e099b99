"""Keeps the person's index in step with what we committed, and leaves all else in it alone.

Moving a branch without its index would make the person's next commit put the old version back. So the entry of
each committed file is set to the new blob, only where it still equals what HEAD had before. What is staged,
unmerged or absent by design stays. What could not be done waits in a queue on disk (one JSON object a line),
which is written before the branch moves: a killed owner's successor finishes it.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pcpd.history.index_file import IndexFile, Wanted
from pcpd.history.versions import Blob, Edit, EditedIndex

_NONE: frozenset[Blob | None] = frozenset()


class IndexEntries:
    """What the index still has to follow. Not for several threads at once, but for `note` and `prepare`."""

    def __init__(self, index: IndexFile, queue: Path) -> None:
        self._index = index
        self._queue = queue
        self._waiting: Wanted = {}
        self._load()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files whose entries could not be set yet."""
        return tuple(sorted(self._waiting))

    def note(self, edits: Sequence[Edit]) -> bytes:
        """Gives the lines for the queue, ahead of time."""
        return "".join(_line(edit.file, {edit.old}, edit.new) for edit in edits).encode()

    def prepare(self, edits: Sequence[Edit]) -> EditedIndex:
        """Gives the index as it shall be once `edits` are committed, ahead of time."""
        return self._index.edited({edit.file: (frozenset({edit.old}), edit.new) for edit in edits})

    def discard(self, prepared: EditedIndex | None) -> None:
        """Removes an index made ahead of time that did not take its place."""
        if prepared is not None and prepared.path is not None:
            prepared.path.unlink(missing_ok=True)

    def want(self, edits: Sequence[Edit], note: bytes) -> None:
        """Notes durably that these entries shall follow, before the branch moves."""
        for edit in edits:
            olds, _ = self._waiting.get(edit.file, (_NONE, None))
            self._waiting[edit.file] = (olds | {edit.old}, edit.new)
        self._queue.parent.mkdir(parents=True, exist_ok=True)
        with self._queue.open("ab") as file:
            file.write(note)
            file.flush()
            os.fsync(file.fileno())

    def settle(self, in_head: Callable[[str], Blob | None], prepared: EditedIndex | None = None) -> None:
        """Sets what waits. The caller holds `index.lock`.

        `prepared` is all that waits, done already; it counts while the index is the one it was made from.
        """
        if prepared is None or prepared.stamp != self._index.stamp():
            # What HEAD no longer has so was overtaken: by the person, or by a commit that never came about.
            wanted = {file: want for file, want in self._waiting.items() if in_head(file) == want[1]}
            prepared = self._index.edited(wanted)
        self._index.put(prepared)
        self._waiting = {}
        self._queue.unlink(missing_ok=True)

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
            olds, _ = self._waiting.get(said["file"], (_NONE, None))
            self._waiting[said["file"]] = (olds | {_blob(old) for old in said["olds"]}, _blob(said["new"]))


def _line(file: str, olds: Iterable[Blob | None], new: Blob | None) -> str:
    said: Mapping[str, object] = {
        "file": file,
        "olds": [[old.mode, old.oid] if old else None for old in olds],
        "new": [new.mode, new.oid] if new else None,
    }
    return json.dumps(said) + "\n"


def _blob(said: list[object] | None) -> Blob | None:
    return Blob(int(str(said[0])), str(said[1])) if said else None

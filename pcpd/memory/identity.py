"""Which state belongs to which vault: found by the context's id, and by where the vault's root lay last.

A vault folder can be moved, copied and restored. State remembers the root's path, device and inode: when the
old root is gone, the vault moved and keeps its state; when both are there, this one is a copy and gets state
and configuration of its own, without grants or tokens (architecture.md, *The owner*).
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pcpd import durable
from pcpd.errors import Conflict, NotFound, PcpError
from pcpd.memory.lock import VaultLock
from pcpd.policy.context import Context, parse_context

CONTEXT_FILE = ".pcp/context.yaml"
ROOT_FILE = "root.json"
CONTEXT_LIMIT = 1024 * 1024
MOST_COPIES = 100


@dataclass(frozen=True, slots=True)
class Root:
    """Where a vault's root lies: absolute path, device and inode."""

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, root: Path) -> "Root":
        """Describes a folder that exists."""
        stat = root.stat()
        return cls(str(root), stat.st_dev, stat.st_ino)

    def is_same_folder(self, other: "Root") -> bool:
        """Tells whether both are one folder, whatever its path."""
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(frozen=True, slots=True)
class Found:
    """The name of a vault's state and configuration folders, whether they exist, and whose copy it is, if any."""

    name: str
    exists: bool
    copy_of: str | None = None


def read_context(root: Path) -> Context:
    """Reads the vault's context. Raises `NotFound` (`vault.none`) where there is none, `Invalid` for a bad one."""
    try:
        data = (root / CONTEXT_FILE).read_bytes()[: CONTEXT_LIMIT + 1]
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(
            "vault.none",
            f"{root} is no vault: it has no {CONTEXT_FILE}",
            hint=f"make it one: `pcpd init {shlex.quote(str(root))}`",
        ) from None
    return parse_context(data)


def locate(root: Path, context_id: str, states: Path) -> Found:
    """Finds the state folder that belongs to `root` among those below `states`; changes nothing."""
    here = Root.of(root)
    taken: list[tuple[str, Root]] = []
    for name in _names(context_id):
        before = _recorded(states / name)
        if before is None:
            copy_of = taken[0][1].path if taken else None
            return Found(name, (states / name).is_dir() and not taken, copy_of)
        if _is_ours(before, here, context_id):
            return Found(name, exists=True, copy_of=_origin(states / name))
        taken.append((name, before))
    raise Conflict(
        "vault.copies", f"there are {MOST_COPIES} copies of this vault", hint="`pcpd init --new-id`"
    )


def is_moved(root: Path, context_id: str, lock: VaultLock) -> bool:
    """Tells whether the vault whose root `lock` holds first is at `root` no more: moved away, or another in its place.

    A vault of the same id that stands there is a backup that was put back; one that is nowhere may come back.
    """
    try:
        if lock.is_of(root):
            return False
        return read_context(root).id != context_id
    except (PcpError, OSError):  # nothing that can be read as a vault: perhaps one that is being copied there
        return lock.is_elsewhere(root)


def claim(root: Path, found: Found, states: Path) -> None:
    """Notes that the state folder belongs to this root. The caller holds the vault's lock."""
    folder = states / found.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    record = {**asdict(Root.of(root)), "copy_of": found.copy_of}
    durable.write(folder / ROOT_FILE, json.dumps(record).encode())


def original_of(root: Path, context_id: str, states: Path) -> str:
    """Gives the root of the vault that this one is a copy of. Raises `Conflict` (`vault.not-a-copy`)."""
    original = locate(root, context_id, states).copy_of
    if original is None:
        raise Conflict(
            "vault.not-a-copy", f"{root} is no copy of another vault: it has its own state already"
        )
    return original


def adopt_original(root: Path, context_id: str, states: Path) -> str:
    """Gives this copy the state of the vault that it replaces; tells the state folder's name.

    Raises as `original_of` does. The caller made sure that no owner runs there.
    """
    original_of(root, context_id, states)
    own = states / locate(root, context_id, states).name / ROOT_FILE
    claim(root, Found(context_id, exists=True), states)
    own.unlink(missing_ok=True)
    return context_id


def _names(context_id: str) -> Iterator[str]:
    yield context_id
    for number in range(2, MOST_COPIES + 1):
        yield f"{context_id}-{number}"


def _recorded(folder: Path) -> Root | None:
    record = _record(folder)
    if record is None:
        return None
    try:
        return Root(str(record["path"]), int(str(record["device"])), int(str(record["inode"])))
    except (KeyError, ValueError):
        return None


def _origin(folder: Path) -> str | None:
    record = _record(folder) or {}
    origin = record.get("copy_of")
    return origin if isinstance(origin, str) and Path(origin).exists() else None


def _record(folder: Path) -> dict[str, object] | None:
    try:
        record = json.loads((folder / ROOT_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _is_ours(before: Root, here: Root, context_id: str) -> bool:
    if before.is_same_folder(here) or before.path == here.path:
        return True
    return not _still_there(before, context_id)


def _still_there(before: Root, context_id: str) -> bool:
    """Tells whether the root that the state remembers is still a vault of this id.

    One that cannot be read may be: then this one counts as a copy, which takes nothing from anybody.
    """
    try:
        return read_context(Path(before.path)).id == context_id
    except NotFound:
        return False
    except (PcpError, OSError):
        return True

"""Temporary files that stand beside the page they are to become, and what is done with those left over.

Their names tell what they are, so that after a crash nothing is guessed. `.pcpd-w-…` is still being
written: it goes. `.pcpd-x-<new>-<base>-<name>` was complete when it got that name: it holds what was to be
written, or what came out when both were exchanged. If it is neither the new version nor the base, somebody
saved it meanwhile, and it becomes a conflict copy. Scans and watchers ignore all of them, since they begin
with a dot.
"""

import contextlib
import errno
import os
import re
from dataclasses import dataclass
from datetime import datetime

from pcpd import durable
from pcpd.vault.ignore import OWN_PREFIX
from pcpd.vault.inode import carry_over, opened, version_of_open, write_all

NAME_BYTES = 255
NO_VERSION = "0" * 16

_NEW_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(
    re.escape(OWN_PREFIX) + r"(?P<phase>[wx])-(?P<new>[0-9a-f]{16})-(?P<base>[0-9a-f]{16})-(?P<name>.+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Beside:
    """The names of one act's temporary file: the first 16 digits of two versions, and the page's own name."""

    new: str
    base: str
    name: str

    @property
    def unfinished(self) -> str:
        """What the file is called while it is being written."""
        return self._named("w")

    @property
    def complete(self) -> str:
        """What the file is called once it is on the disk, and what comes out of an exchange."""
        return self._named("x")

    def _named(self, phase: str) -> str:
        return _cut(f"{OWN_PREFIX}{phase}-{self.new[:16]}-{self.base[:16]}-{self.name}", NAME_BYTES)


def write_beside(folder: int, beside: Beside, data: bytes, like: int | None) -> int:
    """Writes the temporary file to the disk, under its unfinished name; gives its descriptor.

    It gets mode, owner and attributes of the open file `like`, or what the umask gives. Raises OSError; then
    nothing is left.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside.unfinished, dir_fd=folder)
    handle = os.open(beside.unfinished, _NEW_FLAGS, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        write_all(handle, data)
        if like is not None:
            carry_over(like, handle)
        os.fsync(handle)
    except BaseException:
        os.close(handle)
        os.unlink(beside.unfinished, dir_fd=folder)
        raise
    return handle


def keep_as_conflict(folder: int, temporary: str, name: str, now: datetime) -> str:
    """Renames a temporary file to a conflict copy of `name` beside it, and gives the copy's name.

    Never over an existing file. Raises OSError; then the temporary file stays, for the next start to find.
    """
    for number in range(1, 1000):
        copy = conflict_name(name, now, number)
        try:
            durable.rename_new(temporary, copy, a_fd=folder, b_fd=folder)
        except FileExistsError:
            continue
        durable.sync_folder(folder)
        return copy
    raise FileExistsError(copy)


def conflict_name(name: str, now: datetime, number: int = 1) -> str:
    """Gives a name such as `plan (conflict 2026-01-05 123045).md` for a copy, at most 255 bytes."""
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    again = f" {number}" if number > 1 else ""
    tail = f" (conflict {now:%Y-%m-%d %H%M%S}{again}){dot}{ending}"
    return _cut(stem, NAME_BYTES - len(os.fsencode(tail))) + tail


def clean_leftover(folder: int, name: str, now: datetime) -> str | None:
    """Removes one temporary file that a crash left; gives the conflict copy's name if somebody saved it.

    Files that only look like ours, and what is no regular file, stay. Raises OSError.
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        return None
    try:
        with opened(folder, name) as handle:
            is_ours = parts["phase"] == "w" or version_of_open(handle)[:16] in {parts["new"], parts["base"]}
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOENT}:
            return None
        raise
    if not is_ours:
        return keep_as_conflict(folder, name, parts["name"], now)
    os.unlink(name, dir_fd=folder)
    return None


def _cut(text: str, most: int) -> str:
    return os.fsencode(text)[: max(most, 0)].decode("utf-8", "ignore")

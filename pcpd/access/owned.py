"""Reads a file that only its owner can have written: other users of the machine must not give rights here."""

import os
import stat
from pathlib import Path

from pcpd.errors import Broken

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

Identity = tuple[int, ...]
"""What changes when a file, its folder, or who may write them changes; empty where there is no file."""


def identity(path: Path) -> Identity:
    """Gives what to compare before reading again. Raises `Broken` (`access.unreadable`)."""
    try:
        file = path.stat(follow_symlinks=False)
        folder = path.parent.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _unreadable(path, error) from error
    return (
        file.st_size,
        file.st_mtime_ns,
        file.st_ctime_ns,
        file.st_ino,
        file.st_mode,
        file.st_uid,
        folder.st_mode,
        folder.st_uid,
        folder.st_ino,
    )


def changed_at_ns(seen: Identity) -> int:
    """Gives the later one of a file's times, in nanoseconds since 1970; 0 where there is no file."""
    return max(seen[1], seen[2]) if seen else 0


def read_owned(path: Path, *, uid: int, limit: int) -> bytes | None:
    """Gives the first `limit` bytes and one more; None where there is no file.

    Raises `Broken`: `access.untrusted` where the file or its folder belongs to another user than `uid` or
    root, can be written by others, or is a link or no file at all; `access.unreadable` where reading fails.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path.parent, error) from error
    try:
        return _read_in(folder, path, uid, limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(folder)


def _read_in(folder: int, path: Path, uid: int, limit: int) -> bytes:
    if stat.S_ISLNK(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise _untrusted(path, "is a link", f"put the file itself at {path}")
    # O_NONBLOCK: a FIFO of that name must not hold up the owner.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path.name, flags, dir_fd=folder)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _untrusted(path, "is no file", "move it away")
        _check(path, found, uid, "600")
        _check(path.parent, os.fstat(folder), uid, "700")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(limit + 1)
    finally:
        os.close(handle)


def _check(path: Path, found: os.stat_result, uid: int, mode: str) -> None:
    if found.st_uid not in {uid, 0}:
        raise _untrusted(path, f"belongs to another user (uid {found.st_uid})", "make it your own")
    if found.st_mode & OTHERS_WRITE:
        why = "can be written by other users"
        raise _untrusted(path, why, f"look at what it says, then chmod {mode} {path}")


def _untrusted(path: Path, why: str, hint: str) -> Broken:
    return Broken("access.untrusted", f"{path} {why}, so it is not used", hint=hint)


def _unreadable(path: Path, error: OSError) -> Broken:
    return Broken(
        "access.unreadable",
        f"{path} cannot be read: {error.strerror}",
        hint="make it readable for the user that runs pcpd",
    )

"""What can be asked of an open file and done to it, whatever its name is by now."""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import signal
import stat
import sys
from collections.abc import Iterator

from pcpd.pages.changes import Stat

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CHUNK = 1 << 20

_NOT_OURS = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EINVAL})


@contextlib.contextmanager
def opened(folder: int, name: str) -> Iterator[int]:
    """Opens a regular file for reading. Raises OSError, ELOOP for anything else than a regular file."""
    handle = os.open(name, READ_FLAGS, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        yield handle
    finally:
        os.close(handle)


def stat_of(seen: os.stat_result) -> Stat:
    """Keeps of a stat what tells versions apart."""
    return Stat(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode & 0o7777)


def version_of(data: bytes) -> str:
    """Gives the version of a file that holds `data`: the SHA-256 in lowercase hex."""
    return hashlib.sha256(data).hexdigest()


def version_of_open(handle: int) -> str:
    """Gives the version of an open file, read from its start in pieces; its place does not move."""
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(handle, CHUNK, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def read_all(handle: int, limit: int, *, expected: int) -> bytes:
    """Reads an open file from its place to its end, at most `limit` bytes; `expected` is what it may hold."""
    pieces = []
    room = min(expected + 1, limit)
    while room > 0 and (piece := os.read(handle, room)):
        pieces.append(piece)
        limit -= len(piece)
        room = min(room - len(piece) or CHUNK, limit)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_all(handle: int, data: bytes) -> None:
    """Writes all of `data` to an open file. Raises OSError, after which some of it may be there."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def carry_over(source: int, target: int) -> None:
    """Gives the open file `target` the mode, owner, and extended attributes (with access lists) of `source`.

    Who is not root keeps no foreign owner, and attributes that only root may set are left out. Raises
    OSError when an attribute of the person's own cannot be set.
    """
    seen, present = os.fstat(source), os.fstat(target)
    for owner, group in ((-1, seen.st_gid), (seen.st_uid, -1)):
        if (owner, group) not in {(-1, present.st_gid), (present.st_uid, -1)}:
            try:
                os.fchown(target, owner, group)
            except PermissionError:
                continue
    os.fchmod(target, seen.st_mode & 0o7777)
    _carry_attributes(source, target)


def has_writer(handle: int) -> bool:
    """Tells whether somebody has this file open for writing, where the system can tell (Linux); else False.

    A read lease is only granted where there is no writer. It is given back at once; should somebody open
    the file in between, the kernel tells by a signal, which is set to one that does nothing.
    """
    if sys.platform != "linux":
        return False
    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        # Anything else than EAGAIN: no leases on this file system, or not our file.
        return error.errno == errno.EAGAIN
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _carry_attributes(source: int, target: int) -> None:
    if sys.platform == "darwin":
        ctypes.CDLL(None).fcopyfile(source, target, None, 1 | 4)  # COPYFILE_ACL | COPYFILE_XATTR
        return
    try:
        names = os.listxattr(source)
    except OSError:
        return  # the file system has none
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if name.startswith("user.") or error.errno not in _NOT_OURS:
                raise

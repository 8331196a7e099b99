"""Writes files so that a crash leaves the old or the new content, never half; and looks at file systems.

What belongs here: temporary file, sync, rename, sync of the folder, in the one order that survives a power
cut; the two renames that Python does not offer (exchange, and never over an existing name); telling network
file systems apart. Nothing here knows a page. Source: architecture.md, *The road in*; engineering-facts.md.
"""

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

AT_FDCWD = -100 if sys.platform.startswith("linux") else -2

_NETWORK_TYPES = frozenset({
    "9p", "acfs", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "fuse", "gfs", "gfs2",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "prl_fs", "smb2", "smb3", "smbfs",
    "vboxsf", "virtiofs", "vmhgfs", "webdav",
})  # fmt: skip

# Linux: flags of renameat2(2). macOS: flags of renameatx_np(2).
_NO_REPLACE, _SWAP = (1, 2) if sys.platform.startswith("linux") else (4, 2)

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Puts `data` at `path`, replacing what is there, and returns when it is on the disk.

    A crash at any point leaves the old file or the new one. The new file has exactly `mode`. Raises OSError;
    then the old file is whole and no temporary file is left.
    """
    _write_beside(path, data, mode, lambda temporary: temporary.replace(path))


def create(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Puts `data` at `path`, where nothing may be yet, and returns when it is on the disk.

    Of two that create the same file at the same time one wins, whole. Raises FileExistsError, or another
    OSError.
    """
    _write_beside(path, data, mode, lambda temporary: rename_new(os.fspath(temporary), os.fspath(path)))


def exchange(a: str, b: str, *, a_fd: int = AT_FDCWD, b_fd: int = AT_FDCWD) -> None:
    """Swaps what stands under two names in one step; both must exist, on one file system.

    Names are relative to the folders open as `a_fd` and `b_fd`. Raises OSError with ENOSYS, EINVAL or ENOTSUP
    where kernel or file system cannot do it (`is_unsupported`).
    """
    _rename_with(_SWAP, (a_fd, a), (b_fd, b))


def rename_new(a: str, b: str, *, a_fd: int = AT_FDCWD, b_fd: int = AT_FDCWD) -> None:
    """Renames `a` to `b`, where nothing may be yet. Raises FileExistsError, or another OSError.

    File systems that cannot do it in one step get a link and an unlink instead; those without links a check
    and a rename.
    """
    try:
        _rename_with(_NO_REPLACE, (a_fd, a), (b_fd, b))
    except OSError as error:
        if not is_unsupported(error):
            raise
        _link_new(a, b, a_fd, b_fd)


def is_unsupported(error: OSError) -> bool:
    """Tells whether kernel or file system do not know the operation, so that another way must be taken."""
    return error.errno in _UNSUPPORTED


def sync_folder(path: Path | int) -> None:
    """Puts a folder's names on the disk: renames and new files in it survive a power cut from now on.

    Takes a path or an open folder's descriptor. File systems that cannot sync folders are left alone.
    """
    if isinstance(path, int):
        _sync_names(path)
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync_names(folder)
    finally:
        os.close(folder)


def network_filesystem(path: Path) -> str | None:
    """Gives the type of the network or FUSE file system that `path` lies on, or None when it is local.

    `path` need not exist: its nearest existing parent counts. On such a file system SQLite's WAL is unsafe
    and events of other machines never arrive (field-hazards.md, index/ and vault/).
    """
    kind = filesystem(path)
    return kind if kind in _NETWORK_TYPES or kind.startswith("fuse.") else None


def filesystem(path: Path) -> str:
    """Gives the type of the file system that `path` lies on, or an empty text where it cannot be told."""
    present = _nearest_existing(path)
    if sys.platform == "darwin":
        return _statfs_type(present)
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    return type_in_mountinfo(lines, os.fspath(present))


def type_in_mountinfo(lines: Iterable[str], path: str) -> str:
    """Gives the type of the mount that covers `path`: the longest mount point, of equal ones the last.

    `path` is absolute; `lines` are those of `/proc/self/mountinfo`, with its octal escapes.
    """
    best, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _unescape(fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), right.split(" ", 1)[0]
    return kind


def _write_beside(path: Path, data: bytes, mode: int, put: Callable[[Path], object]) -> None:
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}-{threading.get_ident():x}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # Not through the umask: the caller's mode is what protects tokens and what keeps a page readable.
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        put(temporary)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _sync_names(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        # Some file systems refuse to sync a folder at all; there is nothing to be done about those.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise


def _link_new(a: str, b: str, a_fd: int, b_fd: int) -> None:
    source = None if a_fd == AT_FDCWD else a_fd
    target = None if b_fd == AT_FDCWD else b_fd
    try:
        os.link(a, b, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _UNSUPPORTED | {errno.EPERM, errno.EMLINK, errno.EXDEV}:
            raise
    else:
        os.unlink(a, dir_fd=source)
        return
    try:
        os.stat(b, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(a, b, src_dir_fd=source, dst_dir_fd=target)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), b)


def _rename_with(flag: int, source: tuple[int, str], target: tuple[int, str]) -> None:
    if _renameat is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source[1])
    if _renameat(source[0], os.fsencode(source[1]), target[0], os.fsencode(target[1]), flag) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source[1], None, target[1])


def _load_renameat() -> Callable[[int, bytes, int, bytes, int], int] | None:
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    typed: Callable[[int, bytes, int, bytes, int], int] = function
    return typed


_renameat = _load_renameat()


def _nearest_existing(path: Path) -> Path:
    real = Path(os.path.realpath(path))
    while not os.path.lexists(real) and real != real.parent:
        real = real.parent
    return real


def _statfs_type(path: Path) -> str:
    # struct statfs of macOS: f_flags (MNT_LOCAL is 0x1000) at byte 64, f_fstypename (16 bytes) at byte 72.
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(4096)
    if call(os.fsencode(path), buffer) != 0:
        return ""
    kind = buffer.raw[72:88].split(b"\0", 1)[0].decode("ascii", "replace")
    is_local = int.from_bytes(buffer.raw[64:68], sys.byteorder) & 0x1000
    return kind if is_local or kind in _NETWORK_TYPES else f"fuse.{kind}"


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text

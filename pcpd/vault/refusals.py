"""What the system's refusals mean for an act on a file: one error each, that names file, act and reason."""

import contextlib
import errno
from collections.abc import Iterator

from pcpd.errors import Broken, Conflict, Invalid, NotFound

NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


@contextlib.contextmanager
def telling(act: str, file: str) -> Iterator[None]:
    """Turns the system's refusals into errors that say what was refused to whom, and why."""
    try:
        yield
    except FileExistsError as error:
        raise Conflict("page.exists", f"cannot {act} {file}: there is a file of that name already") from error
    except FileNotFoundError as error:
        raise NotFound("page.gone", f"cannot {act} {file}: it is not there") from error
    except OSError as error:
        raise refusal(act, file, error) from error


def refusal(act: str, file: str, error: OSError) -> Broken | Invalid:
    """Makes the error that says which act on which file the system refused, and why."""
    reason = f"cannot {act} {file}: {error.strerror}"
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return Invalid("vault.link", f"cannot {act} {file}: a link or no regular file stands in the way")
    if error.errno == errno.ENAMETOOLONG:
        return Invalid("path.too-long", reason, hint="each part of a path takes at most 255 bytes")
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Broken("vault.full", reason, hint="make room on the disk; nothing was changed")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        if act in {"read", "look at"}:
            return Broken("vault.unreadable", reason, hint="give yourself the right to read it")
        return Broken("vault.read-only", reason, hint="give yourself the right to write in its folder")
    return Broken("vault.io", reason)


def stale(file: str, present: str) -> Conflict:
    """Makes the error for an act that is based on another version than `present`."""
    return Conflict(
        "page.stale",
        f"{file} has changed since it was read; nothing was written",
        hint="read it again and repeat the change on what it says now",
        details={"file": file, "version": present},
    )

"""Which folder the vault is, and how to get from it to a file without following any link.

Every way from a vault-relative name to the disk goes segment by segment through open folders, so that
nothing outside the vault is read or written, whatever links appear meanwhile. Source: field-hazards.md,
vault/, gate/.
"""

import os
from pathlib import Path
from typing import NamedTuple, Self

from pcpd.errors import Unavailable

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RootIdentity(NamedTuple):
    """Which folder the vault's root is, whatever its path: another one in its place is another vault."""

    device: int
    inode: int

    @classmethod
    def of(cls, root: Path) -> Self:
        """Looks at the folder `root`. Raises `Unavailable` (`vault.vanished`) where there is none."""
        handle = open_root(root, None)
        try:
            return cls.of_open(handle)
        finally:
            os.close(handle)

    @classmethod
    def of_open(cls, handle: int) -> Self:
        """Looks at an open folder."""
        seen = os.fstat(handle)
        return cls(seen.st_dev, seen.st_ino)


def open_root(root: Path, identity: RootIdentity | None) -> int:
    """Opens the vault's root and gives the descriptor.

    Raises `Unavailable` (`vault.vanished`) when it is gone, or is not the folder `identity`.
    """
    try:
        handle = os.open(root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
    except OSError as error:
        raise vanished(root, f"cannot be opened: {error.strerror}") from error
    if identity is not None and RootIdentity.of_open(handle) != identity:
        os.close(handle)
        raise vanished(root, "is another folder than before")
    return handle


def open_folder(root: Path, identity: RootIdentity | None, folder: str) -> int:
    """Opens a vault-relative folder, one segment after the other and through no link; gives the descriptor.

    Raises `Unavailable` (`vault.vanished`) as `open_root` does, and OSError: NotADirectoryError also where a
    segment is a link.
    """
    handle = open_root(root, identity)
    for segment in folder.split("/") if folder else ():
        try:
            below = os.open(segment, FOLDER_FLAGS, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def is_unicode(name: str) -> bool:
    """Tells whether a name from the disk is UTF-8: others carry half characters that nothing can store."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(name: str) -> str:
    """Gives a name in which bytes that are not UTF-8 stand as escapes, so that it can be shown and stored."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def vanished(root: Path, why: str) -> Unavailable:
    """Makes the error that says that the vault is not there, and why; `why` is a clause about it."""
    return Unavailable(
        "vault.vanished",
        f"the vault {root} {why}; nothing in it is taken for deleted",
        hint="mount it again or put the folder back; pcpd goes on by itself",
        details={"root": str(root)},
    )

"""Renames inside a vault that lose nothing, on file systems that can and that cannot do them in one step."""

import os

from pcpd import durable
from pcpd.pages.paths import lookup_key


def exchange(folder: int, complete: str, name: str, *, spare: str) -> None:
    """Puts the file `complete` at `name`, and what was there at `complete`; all in the open `folder`.

    Where the file system cannot exchange, the name `spare` serves for a moment, and where it knows no hard
    links nothing is at `complete` afterwards. Raises OSError, FileNotFoundError where nothing is at `name`.
    """
    try:
        durable.exchange(complete, name, a_fd=folder, b_fd=folder)
    except OSError as error:
        if not durable.is_unsupported(error):
            raise
        _exchange_by_link(folder, complete, name, spare)


def move_name(source: int, name: str, target: int, new: str) -> None:
    """Renames a file, never over another one, but to a different case or Unicode form of its own name.

    Raises FileExistsError, or another OSError.
    """
    try:
        durable.rename_new(name, new, a_fd=source, b_fd=target)
    except FileExistsError:
        # Names that differ in case or Unicode form only may be one and the same file.
        if not _is_same_file(source, name, target, new) or new in os.listdir(target):
            raise
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _is_same_file(source: int, name: str, target: int, new: str) -> bool:
    if lookup_key(name) != lookup_key(new):
        return False
    a = os.stat(name, dir_fd=source, follow_symlinks=False)
    b = os.stat(new, dir_fd=target, follow_symlinks=False)
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _exchange_by_link(folder: int, complete: str, name: str, spare: str) -> None:
    """Keeps the old file under a second name before it renames over the first.

    Without hard links either, what was there is gone; that it was the base has been checked just before.
    """
    try:
        os.link(name, spare, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        os.rename(complete, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.rename(complete, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.rename(spare, complete, src_dir_fd=folder, dst_dir_fd=folder)

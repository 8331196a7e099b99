"""A client's configuration file: read with all that an edit must keep, and replaced only while it is as it was read.

Links stay links: people keep such files elsewhere and link to them. Mode and group stay, and a new file is for
its owner alone, since an entry holds a token. So is an old one from then on, where the person agreed to that.
"""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pcpd import durable
from pcpd.client.jsonc import MalformedError
from pcpd.errors import Broken, Conflict, Invalid

T = TypeVar("T")

SIZE_LIMIT = 64 * 1024 * 1024
NEW_MODE = 0o600


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file at one moment. `target` is where its links lead; `data` is None where there is no file."""

    path: Path
    target: Path
    data: bytes | None
    mode: int = NEW_MODE
    group: int = -1

    def text(self) -> str:
        """Gives what it says; nothing where there is no file. Raises `Invalid` (`connect.not-json`)."""
        try:
            return (self.data or b"").decode()
        except UnicodeDecodeError as error:
            line = (self.data or b"").count(b"\n", 0, error.start) + 1
            raise _not_json(self.path, f"line {line}: this is not UTF-8") from None

    def edited(self, edit: Callable[[str], T]) -> T:
        """Gives what `edit` makes of its text. Raises `Invalid` (`connect.not-json`) with line and column."""
        text = self.text()
        try:
            return edit(text)
        except MalformedError as error:
            raise _not_json(self.path, str(error)) from None


def read(path: Path) -> ConfigFile:
    """Reads a file, or notes that there is none.

    Raises `Broken` (`connect.unreadable`, `connect.no-file`, `connect.foreign`), `Invalid` (`connect.too-large`).
    """
    try:
        target = Path(os.path.realpath(path))
        # O_NONBLOCK: a FIFO of that name must not hold us up.
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return ConfigFile(path, target, None)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return _read(path, target, handle)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(handle)


def replace(file: ConfigFile, text: str) -> ConfigFile:
    """Puts `text` in the file's place and returns when it is on the disk; gives the file as it is then.

    Raises `Conflict` (`connect.changed`) where it is no longer as it was read, `Broken` (`connect.unwritable`).
    """
    data = text.encode()
    _check_writable(file)
    try:
        file.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _now(file) != file.data:
            raise _changed(file)
        if file.data is None:
            durable.create(file.target, data, NEW_MODE)
        else:
            durable.write(file.target, data, mode=file.mode & 0o700)
            _open_as_before(file)
    except FileExistsError:
        raise _changed(file) from None
    except OSError as error:
        raise _unwritable(file.path, error) from error
    return ConfigFile(file.path, file.target, data, file.mode, file.group)


def missing_folders(file: ConfigFile) -> tuple[str, ...]:
    """Gives the folders that `replace` would make for the file, the innermost first."""
    return tuple(os.fspath(each) for each in file.target.parents if not each.exists())


def remove_folders(folders: Iterable[str]) -> None:
    """Removes those of the folders that are empty."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106 - never through a link


def remove(file: ConfigFile) -> None:
    """Removes the file. Raises as `replace` does."""
    try:
        if _now(file) != file.data:
            raise _changed(file)
        file.target.unlink(missing_ok=True)
        durable.sync_folder(file.target.parent)
    except OSError as error:
        raise _unwritable(file.path, error) from error


def _read(path: Path, target: Path, handle: int) -> ConfigFile:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise Broken("connect.no-file", f"{path} is no file", hint="name another one with --config")
    if found.st_uid != os.geteuid():
        raise Broken(
            "connect.foreign",
            f"{path} belongs to another user (uid {found.st_uid})",
            hint="run pcpd as the user who uses the client",
        )
    with os.fdopen(handle, "rb", closefd=False) as file:
        data = file.read(SIZE_LIMIT + 1)
    if len(data) > SIZE_LIMIT:
        raise Invalid(
            "connect.too-large",
            f"{path} has more than {SIZE_LIMIT} bytes",
            hint="look what fills it; `pcpd mcp config` prints the entry to put in by hand",
        )
    return ConfigFile(path, target, data, stat.S_IMODE(found.st_mode), found.st_gid)


def _now(file: ConfigFile) -> bytes | None:
    if Path(os.path.realpath(file.path)) != file.target:
        raise _changed(file)
    return read(file.target).data


def _check_writable(file: ConfigFile) -> None:
    if file.data is not None and not file.mode & stat.S_IWUSR:
        raise Broken(
            "connect.unwritable",
            f"{file.path} is set to be read only",
            hint="let whatever keeps it put the entry in: `pcpd mcp config` prints it",
        )


def _open_as_before(file: ConfigFile) -> None:
    """Gives group and others what they had, unless the file has another group now."""
    if not file.mode & 0o077:
        return
    with suppress(OSError):  # the file is for its owner alone then
        if file.target.stat().st_gid != file.group:
            os.chown(file.target, -1, file.group)
        file.target.chmod(file.mode)


def _not_json(path: Path, why: str) -> Invalid:
    return Invalid(
        "connect.not-json",
        f"{path} was left as it is: {why}",
        hint="correct it, or put the entry in by hand: `pcpd mcp config` prints it",
    )


def _changed(file: ConfigFile) -> Conflict:
    return Conflict(
        "connect.changed",
        f"{file.path} was just changed by somebody else",
        hint="close the client, then try again",
    )


def _unreadable(path: Path, error: OSError) -> Broken:
    return Broken(
        "connect.unreadable",
        f"{path} cannot be read: {error.strerror}",
        hint="make it readable, or name another file with --config",
    )


def _unwritable(path: Path, error: OSError) -> Broken:
    return Broken(
        "connect.unwritable",
        f"{path} cannot be written: {error.strerror}",
        hint="make it and its folder writable, or put the entry in by hand: `pcpd mcp config` prints it",
    )

"""Names that git cannot hold, and the spelling that it keeps. Pure, but for looks at the folder concerned."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

# Characters that HFS+ leaves out when it compares names (git's utf8.c, next_hfs_char).
_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF], None
)
_DOT_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
LONGEST = 4096


def unfit(file: str) -> str:
    """Says why git refuses to hold `file`, or nothing. Follows git's own rules for every platform."""
    raw = os.fsencode(file)
    segments = file.split("/")
    if any(segment in {"", ".", ".."} for segment in segments) or b"\0" in raw:
        return "its name is not a path inside the vault"
    if len(raw) >= LONGEST:
        return f"its name is longer than {LONGEST} bytes"
    for segment in segments:
        # Backslashes separate folders on Windows, where git looks at each part.
        if any(_DOT_GIT.fullmatch(part.translate(_IGNORED)) for part in segment.split("\\")):
            return f"git takes {segment!r} for its own folder"
    return ""


def is_utf8(file: str) -> bool:
    """Tells whether a name's bytes are UTF-8."""
    try:
        file.encode()
    except UnicodeEncodeError:
        return False
    return True


def composed(name: str) -> str:
    """Gives the NFC form, under which a file system may take two spellings for one."""
    return unicodedata.normalize("NFC", name)


def other_spelling(file: str, siblings: Callable[[str], Iterable[str]]) -> str | None:
    """Gives the path under which `siblings` (folder -> names) hold `file` when spelled otherwise, or None.

    Segment by segment: a segment that is there as it is stays.
    """
    if file.isascii():
        return None
    folder, changed = "", False
    for segment in file.split("/"):
        names = list(siblings(folder))
        found = segment
        if segment not in names:
            same = [name for name in names if composed(name) == composed(segment)]
            if not same:
                return None
            found, changed = same[0], True
        folder = f"{folder}/{found}" if folder else found
    return folder if changed else None


def on_disk(root: Path, file: str) -> str | None:
    """Gives the name under which the disk has `file` when it is spelled otherwise there, or None."""

    def names(folder: str) -> Iterable[str]:
        try:
            return os.listdir(root / folder)  # noqa: PTH208 - only the names are wanted
        except OSError:
            return ()

    return other_spelling(file, names)


def is_nested(root: Path, file: str, seen: dict[str, bool]) -> bool:
    """Tells whether a folder between `root` and `file` is a repository of its own. `seen` remembers folders."""
    folder = file.rpartition("/")[0]
    if not folder:
        return False
    if folder not in seen:
        seen[folder] = os.path.lexists(root / folder / ".git") or is_nested(root, folder, seen)
    return seen[folder]

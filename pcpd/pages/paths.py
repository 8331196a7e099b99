"""Addresses of pages and files: PagePath, which cannot leave the vault, and what a name makes of a file."""

import re
import unicodedata
from typing import Literal, Self

from pcpd.errors import Invalid

Kind = Literal["page", "control", "attachment"]

SEGMENT_BYTES = 255
CONTROL_FILES = frozenset({"_topic.md"})
WINDOWS_NAMES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"}
)
_STRICT_SEGMENT = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
_IGNORABLE = "".join(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF))
)
"""Letters that HFS+ leaves out of names, so that with one in front `.git` is `.git`."""
_SHORT_NAMES = re.compile(r"(?:git|obsidi|pcp)~[0-9]", re.ASCII | re.IGNORECASE)
"""What FAT and NTFS call `.git`, `.obsidian` and `.pcp` too."""
_PROPOSAL_FILE = re.compile(r"\.pcp/proposals/[0-9a-f]{20}\.md", re.ASCII)
VERSIONED_DOT_NAMES = frozenset({".pcp", ".gitignore", ".gitattributes", ".pcpignore"})


class PagePath(str):
    """The path of a page: its file's path without `.md`, `/`-separated, as it is written on disk.

    Cannot be empty, absolute, or hold an empty, `.` or `..` segment or a NUL, so that joining it to a vault's
    root stays inside. Raises `Invalid` (`path.invalid`). Source: pages.md §2, *Path*.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Checks and wraps `text`, which has no `.md` at its end unless the file's name is `x.md.md`."""
        check_segments(text)
        return super().__new__(cls, text)

    @classmethod
    def of_file(cls, file: str) -> Self:
        """Gives the path of the page in `file`, a vault-relative name that ends in `.md`."""
        return cls(file[: -len(".md")])

    @property
    def file(self) -> str:
        """The vault-relative file name."""
        return f"{self}.md"

    @property
    def name(self) -> str:
        """The last segment."""
        return self.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The path of the folder, empty for the vault's root."""
        return self.rpartition("/")[0]

    @property
    def key(self) -> str:
        """The form for looking up: NFC, case folded."""
        return lookup_key(self)


def lookup_key(text: str) -> str:
    """Gives the form under which names are compared: NFC, case folded (pages.md §2)."""
    return unicodedata.normalize("NFC", text).casefold()


def check_segments(text: str) -> None:
    """Raises `Invalid` unless `text` is a relative path whose segments stay inside the vault."""
    segments = text.split("/")
    if "\0" in text or any(segment in {"", ".", ".."} for segment in segments):
        raise Invalid(
            "path.invalid",
            f"{text!r} is not a path inside the vault",
            hint="write it as `folder/name`, without a leading `/` and without `.` or `..`",
        )


def strict(text: str) -> PagePath:
    """Gives the path of a page that an agent or importer makes, without `.md`.

    Each segment is `[a-z0-9][a-z0-9._-]*`, at most 255 bytes with the file's ending, does not end in a dot
    and is no name that Windows reserves (`con`, `nul.x`); the file's name is that of a page, not of a control
    file. Raises `Invalid` (`path.strict`). Source: pages.md §2, *Path*.
    """
    segments = text.split("/")
    for segment in segments:
        if fault := _strict_fault(segment):
            raise Invalid(
                "path.strict",
                f"{text[:300]!r} cannot be the path of a new page: {fault}",
                hint="use small letters, digits, `.`, `_` and `-`, in segments joined by `/`, without `.md`",
            )
    if len(segments[-1]) + len(".md") > SEGMENT_BYTES:
        raise Invalid("path.strict", f"the name of the page would be longer than {SEGMENT_BYTES} bytes")
    return PagePath(text)


def _strict_fault(segment: str) -> str:
    if not _STRICT_SEGMENT.fullmatch(segment):
        return f"the segment {segment[:80]!r} holds something else than a-z, 0-9, `.`, `_`, `-`, or starts so"
    if len(segment) > SEGMENT_BYTES:
        return f"a segment is longer than {SEGMENT_BYTES} bytes"
    if segment.endswith("."):
        return f"the segment {segment[:80]!r} ends in a dot"
    if segment.partition(".")[0] in WINDOWS_NAMES:
        return f"Windows reserves the name {segment[:80]!r}"
    return ""


def kind_of(file: str) -> Kind:
    """Tells what a vault-relative file is by its name alone: a page, a control file or an attachment."""
    name = file.rpartition("/")[2]
    if name in CONTROL_FILES or _PROPOSAL_FILE.fullmatch(file):
        return "control"
    if not name.endswith(".md") or name == ".md" or is_closed(file):
        return "attachment"
    return "page"


def is_closed(file: str) -> bool:
    """Tells whether a file is a dot file or in a dot folder, also by a name that some file system takes for one."""
    if file.startswith(".") or "/." in file:
        return True
    if file.isascii() and "~" not in file:
        return False
    segments = [segment.lstrip(_IGNORABLE) for segment in file.split("/")]
    return any(
        segment.startswith(".") or _SHORT_NAMES.fullmatch(segment.rstrip(". ")) for segment in segments
    )

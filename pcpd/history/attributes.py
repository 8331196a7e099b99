"""Which files git would convert, and their conversion by git's own clean and smudge steps.

Bytes are stored as they are, unless the person's attributes give the path a filter, an end of line, an encoding
or `ident`. Then the git program converts: it alone runs the filters, so that an encrypted file is never stored
in clear. A filter that cannot run is a reason not to store the file at all.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pcpd.errors import PcpError
from pcpd.history.configuration import Configuration, stamp_of
from pcpd.history.layout import ATTRIBUTES, Layout
from pcpd.history.program import LONG_S, SHORT_S, Program

_ASKED = ("filter", "text", "eol", "crlf", "ident", "working-tree-encoding")
_OFF = frozenset({"unspecified", "unset", ""})
Asked = Mapping[str, str]
_NOTHING: Asked = {}


class Unfilterable(Exception):
    """A filter is asked for that cannot run here."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What git would do to one file. `filter` is the driver's name or empty."""

    filter: str = ""
    by_attribute: bool = False
    by_setting: bool = False
    other: bool = False

    def touches(self, data: bytes, head: Callable[[], bytes | None]) -> bool:
        """Tells whether git's clean step can change `data`. `head` gives the version that HEAD has."""
        if self.filter or self.other:
            return True
        if b"\r\n" not in data:
            return False
        if self.by_attribute:
            return True
        # core.autocrlf alone, like git's own rule: a file that HEAD has with CRLF, or not at all, stays as it is.
        before = head() if self.by_setting else None
        return before is not None and b"\r\n" not in before


class Attributes:
    """Answers for one repository; `in_head(folder)` tells whether HEAD has a .gitattributes there."""

    def __init__(
        self,
        layout: Layout,
        program: Program,
        configuration: Configuration,
        in_head: Callable[[str], bool],
    ) -> None:
        self._layout = layout
        self._program = program
        self._configuration = configuration
        self._in_head = in_head

    def conversion(self, file: str) -> Conversion:
        """Gives how one file is converted."""
        return self.conversions([file]).get(file, Conversion())

    def conversions(self, files: Iterable[str]) -> dict[str, Conversion]:
        """Gives the conversion of each vault-relative file that has one."""
        everywhere = self._everywhere()
        folders: dict[str, bool] = {}
        asking = [file for file in files if everywhere or self._is_asked(self._layout.prefix + file, folders)]
        by_setting = (self._configuration.get("core.autocrlf") or "").lower() in {
            "true",
            "input",
            "yes",
            "on",
            "1",
        }
        asked = self._ask(asking) if asking else {}
        found = (
            {file: conversion(asked.get(file, _NOTHING), by_setting) for file in files}
            if by_setting
            else {file: conversion(asked[file], False) for file in asking}
        )
        return {file: each for file, each in found.items() if each != Conversion()}

    def clean(self, file: str, data: bytes, how: Conversion, *, write: bool) -> str:
        """Gives the id of the blob that git's clean step makes of `data`. Raises Unfilterable."""
        self._check(how.filter)
        self._check_reach(how.filter, file)
        flags = ("-w",) if write else ()
        settings = (f"filter.{how.filter}.required=true",) if how.filter else ()
        try:
            output = self._program.run(
                "hash-object", *flags, "--stdin", f"--path={self._layout.prefix}{file}",
                stdin=data, settings=settings, limit_s=SHORT_S,  # all other commits wait meanwhile
            )  # fmt: skip
        except PcpError as error:
            raise Unfilterable(f"its filter failed: {error.message}") from error
        return output.out.decode().strip()

    def smudge(self, file: str, oid: str) -> bytes:
        """Gives a blob's bytes as git would write them to disk under `file`."""
        path = f"--path={self._layout.prefix}{file}"
        return self._program.run("cat-file", "--filters", path, oid, limit_s=LONG_S).out

    def _check(self, name: str) -> None:
        if self._program.problem:
            raise Unfilterable(f"its attributes ask for a conversion, and {self._program.problem}")
        if not name:
            return
        keys = [f"filter.{name}.{step}" for step in ("clean", "process")]
        if not any(self._configuration.get(key) for key in keys):
            raise Unfilterable(
                f"its attributes name the filter {name!r}, which git's configuration does not define here"
            )
        is_ours = self._layout.commondir.stat().st_uid in {os.geteuid(), 0}
        if not is_ours and any(self._configuration.is_set_by_repository(key) for key in keys):
            raise Unfilterable(f"the filter {name!r} is set by a repository that belongs to somebody else")

    def _check_reach(self, name: str, file: str) -> None:
        """Raises Unfilterable where `git hash-object` would leave the filter out.

        It does not see attributes that only the index still has, and would then store the file in clear. A filter
        that always fails tells whether it is run.
        """
        if not name:
            return
        failing = [f"filter.{name}.clean=false", f"filter.{name}.process=", f"filter.{name}.required=true"]
        path = f"--path={self._layout.prefix}{file}"
        tried = self._program.run(
            "hash-object", "--stdin", path, stdin=b"x\n", settings=failing, accept=(0, 128)
        )
        if tried.status == 0:
            raise Unfilterable(
                f"its filter {name!r} is named by a .gitattributes that is not on disk any more"
            )

    def _ask(self, files: list[str]) -> dict[str, Asked]:
        """Asks git for the attributes of many files at once."""
        if self._program.problem:
            # Something is asked for, and nobody can tell what: refused by `_check`.
            return {file: {"ident": "set"} for file in files}
        names = b"".join(os.fsencode(self._layout.prefix + file) + b"\0" for file in files)
        out = self._program.run("check-attr", "-z", "--stdin", *_ASKED, stdin=names).out
        fields = out.split(b"\0")
        answers: dict[str, dict[str, str]] = {file: {} for file in files}
        skipped = len(os.fsencode(self._layout.prefix))
        for place in range(0, len(fields) - 2, 3):
            file = os.fsdecode(fields[place][skipped:])
            value = fields[place + 2].decode(errors="replace")
            answers[file][fields[place + 1].decode()] = value
        return dict(answers)

    def _everywhere(self) -> bool:
        """Tells whether a file outside the tree may ask something of every path."""
        places: list[Path | None] = [self._configuration.attributes, Path("/etc/gitattributes")]
        named = self._configuration.get("core.attributesfile")
        places.append(Path(named).expanduser() if named else None)
        places.append(self._program.prefix / "etc" / "gitattributes" if self._program.prefix else None)
        info = self._layout.commondir / "info" / "attributes"
        asks_more = stamp_of(info) is not None and info.read_bytes() != ATTRIBUTES
        return asks_more or any(place is not None and stamp_of(place) is not None for place in places)

    def _is_asked(self, path: str, folders: dict[str, bool]) -> bool:
        """Tells whether a .gitattributes lies on the way from the repository's root to `path`."""
        folder = path.rpartition("/")[0]
        if folder not in folders:
            here = self._layout.workdir / folder / ".gitattributes"
            found = os.path.lexists(here) or self._in_head(folder)
            folders[folder] = found or (folder != "" and self._is_asked(folder, folders))
        return folders[folder]


def conversion(asked: Asked, by_setting: bool) -> Conversion:
    """Reads git's answer about one path as git does (convert.c)."""
    value = {name: asked.get(name, "unspecified") for name in _ASKED}
    text = value["text"] if value["text"] != "unspecified" else value["crlf"]
    is_binary = text == "unset"
    has_eol = value["eol"] in {"lf", "crlf"}
    by_attribute = not is_binary and (has_eol or text not in _OFF)
    return Conversion(
        filter="" if value["filter"] in {*_OFF, "set"} else value["filter"],
        by_attribute=by_attribute,
        by_setting=by_setting and not is_binary and not by_attribute,
        other=value["ident"] == "set" or value["working-tree-encoding"] not in {*_OFF, "set"},
    )

"""The rules of gitignore files, compiled so that a folder, not a file, is asked which rules can matter.

Libraries for gitignore match every path against every pattern, which with 20 patterns takes many times as
long as listing the vault. Here a pattern is a row of segments, and the state of a folder says how far each
pattern has come on the way down to it; what is left to ask of a file is its name. `git check-ignore` is the
judge in the tests. Deviations from git: `?` and `[…]` stand for one character, not one byte; a `/` inside
`[…]` splits; `a**/b` is `a*/b`, as git's manual says and git does not do.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

ANY_DEPTH = "**"

_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e",
    "punct": "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e", "space": "\\x09-\\x0d ",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_NEVER = "(?!)"
_ONE = "[^/]"


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One line of a gitignore file. `segments` are globs, `**` stands for any number of folders."""

    segments: tuple[str, ...]
    negated: bool
    folders_only: bool


State = tuple[tuple[Pattern, int], ...]
"""How far each pattern has come on the way down to a folder, weakest first: which segment comes next."""

START: State = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Rules of one sign that stand together, so that their order does not matter."""

    ignored: bool
    names: frozenset[str]
    suffixes: tuple[str, ...]
    others: re.Pattern[str] | None

    def matches(self, name: str) -> bool:
        return (
            name in self.names
            or name.endswith(self.suffixes)
            or (self.others is not None and self.others.fullmatch(name) is not None)
        )


@dataclass(frozen=True, slots=True, eq=False)
class NameRules:
    """What a folder's state says of the names in it. Strongest group first; no group speaks: not ignored."""

    files: tuple[_Group, ...]
    folders: tuple[_Group, ...]

    def ignores_file(self, name: str) -> bool:
        """Tells whether a file of that name in the folder is ignored."""
        return _decided(self.files, name)

    def ignores_folder(self, name: str) -> bool:
        """Tells whether a folder of that name in the folder is ignored, with all that is below."""
        return _decided(self.folders, name)


@lru_cache(maxsize=256)
def parse(data: bytes) -> tuple[Pattern, ...]:
    """Gives the patterns of one gitignore file, weakest first. Senseless lines match nothing."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return tuple(pattern for line in text.split("\n") if (pattern := _pattern(line.removesuffix("\r"))))


def inside(state: State, name: str) -> State:
    """Gives the state in the folder `name`, from the state of the folder that it lies in."""
    following: list[tuple[Pattern, int]] = []
    for pattern, at in state:
        segment = pattern.segments[at]
        if segment == ANY_DEPTH:
            following.extend(_reached(pattern, at))
        elif at + 1 < len(pattern.segments) and _matcher(segment).fullmatch(name):
            following.extend(_reached(pattern, at + 1))
    # Files with the same rules share their patterns: of two that came equally far, the stronger, later one counts.
    unique = tuple(dict.fromkeys(reversed(following)))[::-1]
    # Most patterns hold at any depth. The same tuple again means the same compiled rules again.
    return state if unique == state else unique


def beginning(state: State, patterns: Iterable[Pattern]) -> State:
    """Gives the state of a folder whose own gitignore file holds `patterns`."""
    return state + tuple(step for pattern in patterns for step in _reached(pattern, 0))


@lru_cache(maxsize=2048)
def name_rules(state: State) -> NameRules:
    """Compiles what a state says of the names in its folder."""
    last = [pattern for pattern, at in state if at + 1 == len(pattern.segments)]
    return NameRules(
        files=_groups([pattern for pattern in last if not pattern.folders_only]), folders=_groups(last)
    )


def _pattern(line: str) -> Pattern | None:
    if line.startswith("#"):
        return None
    text = _without_trailing_spaces(line)
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text[: len(text) - folders_only]
    if not text:
        return None
    if "/" not in text:
        # Without a slash, stars do not look at folders: `**` is just a star.
        return Pattern((ANY_DEPTH, re.sub(r"\*{2,}", "*", text)), negated, folders_only)
    return Pattern(tuple(text.removeprefix("/").split("/")), negated, folders_only)


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and bare != line else bare


def _reached(pattern: Pattern, at: int) -> Iterable[tuple[Pattern, int]]:
    """`**` also stands for no folder at all: what follows it may match here. At the end it needs one."""
    yield pattern, at
    while pattern.segments[at] == ANY_DEPTH and at + 1 < len(pattern.segments):
        at += 1
        yield pattern, at


def _decided(groups: tuple[_Group, ...], name: str) -> bool:
    for group in groups:
        if group.matches(name):
            return group.ignored
    return False


def _groups(patterns: list[Pattern]) -> tuple[_Group, ...]:
    groups: list[_Group] = []
    run: list[Pattern] = []
    for pattern in reversed(patterns):
        if run and run[-1].negated != pattern.negated:
            groups.append(_group(run))
            run = []
        run.append(pattern)
    if run:
        groups.append(_group(run))
    while groups and not groups[-1].ignored:
        groups.pop()  # the weakest rules take back what nobody had ignored
    return tuple(groups)


def _group(patterns: list[Pattern]) -> _Group:
    globs = dict.fromkeys(pattern.segments[-1] for pattern in patterns)
    names = frozenset(glob for glob in globs if not _has_magic(glob))
    endings = [glob for glob in globs if glob[0] == "*" and glob != "*" and not _has_magic(glob[1:])]
    suffixes = tuple(glob[1:] for glob in endings)
    others = [glob for glob in globs if glob not in names and glob not in endings]
    combined = re.compile("|".join(f"(?:{_regex(glob)})" for glob in others), re.DOTALL) if others else None
    return _Group(not patterns[0].negated, names, suffixes, combined)


def _has_magic(glob: str) -> bool:
    return any(character in "*?[\\" for character in glob)


@lru_cache(maxsize=4096)
def _matcher(glob: str) -> re.Pattern[str]:
    return re.compile(_regex(glob), re.DOTALL)


def _regex(glob: str) -> str:
    """Translates one segment. Each run up to a piece between stars is atomic: no glob makes it backtrack."""
    if glob == ANY_DEPTH:
        return ".*"
    pieces: list[str] = [""]
    at = 0
    while at < len(glob):
        character = glob[at]
        if character == "*":
            at += 1
            pieces.append("")
            continue
        expression, at = _token(glob, at)
        if expression == _NEVER:
            return _NEVER
        pieces[-1] += expression
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}.*{pieces[-1]}"


def _token(glob: str, at: int) -> tuple[str, int]:
    """Translates what begins at `at` and is no star; gives the place behind it."""
    character = glob[at]
    if character == "?":
        return _ONE, at + 1
    if character == "[":
        return _bracket(glob, at + 1)
    if character == "\\":
        return (re.escape(glob[at + 1]), at + 2) if at + 1 < len(glob) else (_NEVER, at + 1)
    return re.escape(character), at + 1


def _bracket(glob: str, at: int) -> tuple[str, int]:
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    parts: list[str] = []
    first = True
    while at < len(glob) and (first or glob[at] != "]"):
        first = False
        if glob.startswith("[:", at) and (end := glob.find(":]", at)) > 0:
            if glob[at + 2 : end] not in _CLASSES:
                return _NEVER, len(glob)
            parts.append(_CLASSES[glob[at + 2 : end]])
            at = end + 2
            continue
        low, at = _bracket_character(glob, at)
        high = low
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in {"]", ""}:
            high, at = _bracket_character(glob, at + 1)
        if low <= high:
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
    if at >= len(glob):
        return _NEVER, at
    inner = "".join(parts)
    if not inner:
        return (_ONE if negated else _NEVER), at + 1
    return f"[{'^' if negated else ''}{inner}]", at + 1


def _bracket_character(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    return glob[at], at + 1

"""Where code stands in a Markdown text, where its headings are, and whether a merge left its markers.

Everything here reads forward once, so that no text, however hostile, takes more than linear time, and gives
its findings one by one, so that memory stays flat.
"""

import heapq
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE_LONGEST = 255
# Runs of backticks, three tildes or more, and comments. Written so that `re` can skip to the first letter of
# each, which is four times as fast as the plain alternatives.
_MARKS = re.compile(r"[`~<](?:(?<=`)`*|(?<=~)~~+|(?<=<)!--)")
_RUN = re.compile(r"`+")
_FENCE_PREFIX = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+[ \t>]*+")
_FENCE_CLOSE = re.compile(r"[ \t>]*+((`|~)\2*+)[ \t]*+\r?\n?")
_BLOCK_END = re.compile(r"\n[ \t>]*+(?:\r?\n|[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|`{3}|~{3})")
_LIST_ITEM = re.compile(r"[ \t]*+(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\r?\n|$)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]++([^\r\n]*+))?\r?\n?")
_SETEXT = re.compile(r" {0,3}(=++|-++)[ \t]*+\r?\n?")
_NO_PARAGRAPH = re.compile(
    r"[ \t]*+(?:\r?\n|$|#{1,6}[ \t]|>|(?:[-*+]|\d{1,9}[.)])[ \t]|`{3}|~{3}|<!--|\|)|    |\t"
)
_PREFIX_LONGEST = 200


class Heading(NamedTuple):
    """A heading: `start` is the offset of its first character, `end` that of the text under it.

    `bytes`: how many the section has, heading and sub-sections included; 0 where nobody counted.
    """

    level: int
    text: str
    start: int
    end: int
    line: int
    bytes: int = 0


def code(text: str) -> Iterator[tuple[int, int]]:
    """Gives the ranges of `text` that are fenced, indented or inline code, or an HTML comment, in order."""
    has_marks = "`" in text or "~~~" in text or "<!--" in text
    marked = _Scanner(text).ranges() if has_marks else iter(())
    if "\n    " in text or "\n\t" in text or text.startswith(("    ", "\t")):
        fenced = _Scanner(text).ranges() if has_marks else iter(())
        return heapq.merge(marked, _indented(text, fenced))
    return marked


def headings(text: str) -> Iterator[Heading]:
    """Gives the ATX and setext headings of `text` that stand outside code, in order; lines count from 1."""
    before, before_at = "", 0
    for number, start, line in _lines(text):
        end = start + len(line)
        mark = line.lstrip(" ")[:1]
        if mark == "#" and (found := _ATX.fullmatch(line)):
            yield Heading(len(found[1]), _without_hashes(found[2] or ""), start, end, number)
            before = ""
        elif mark and mark in "=-" and before and (found := _SETEXT.fullmatch(line)):
            yield Heading(1 if found[1][0] == "=" else 2, before.strip(), before_at, end, number - 1)
            before = ""
        else:
            before, before_at = ("" if _NO_PARAGRAPH.match(line) else line), start


def first_title(text: str) -> str:
    """Gives the text of the first H1 outside code, or the empty text."""
    if "#" not in text and "\n=" not in text and "\n " not in text:
        return ""
    return next((found.text for found in headings(text) if found.level == 1 and found.text), "")


def conflict_line(text: str) -> int | None:
    """Gives the 0-based line of the first merge conflict left in `text` outside code, or None."""
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return None
    opened, is_divided = None, False
    for number, _, line in _lines(text):
        if line.startswith("<<<<<<< "):
            opened, is_divided = number - 1, False
        elif line.startswith("=======") and not line[7:].strip():
            is_divided = True
        elif line.startswith(">>>>>>> ") and opened is not None and is_divided:
            return opened
    return None


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Gives number (from 1), offset and text of each line; a line of code is given as an empty one."""
    ranges = code(text)
    covered = next(ranges, None)
    at = 0
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        start, at = at, at + len(line)
        while covered and covered[1] <= start:
            covered = next(ranges, None)
        is_code = covered and covered[0] <= start and (covered[0] < start or covered[1] >= at - 1)
        yield number, start, "" if is_code else line


def _without_hashes(text: str) -> str:
    """Gives a heading's text without the closing `##`, which count only after a blank."""
    text = text.strip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else text


class _Scanner:
    """One pass over the marks that open code: knows the line it is on and which closers do not exist."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_start = 0
        self._seen = 0
        self._block_end = -1
        self._last_runs: dict[int, int] = {}
        self._unclosed: dict[str, int] = {}
        self._has_comment_ends = True

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Gives the ranges of fences, inline code and comments, in order and apart from each other."""
        at = 0
        while found := _MARKS.search(self._text, at):
            start, at = found.span()
            end = self._end_of(found[0], start)
            if end is not None:
                yield start, end
                at = end

    def _end_of(self, mark: str, start: int) -> int | None:
        """Gives where the code or comment that `mark` opens ends, None if it opens nothing."""
        if mark[0] == "<":
            return self._comment_end(start)
        length = len(mark)
        if 3 <= length <= FENCE_LONGEST:
            end = self._fence_end(mark[0], length, start)
            if end is not None:
                return end
        return self._inline_end(length, start) if mark[0] == "`" else None

    def _comment_end(self, start: int) -> int | None:
        end = self._text.find("-->", start + 4) if self._has_comment_ends else -1
        self._has_comment_ends = end >= 0
        return end + 3 if end >= 0 else None

    def _fence_end(self, letter: str, length: int, start: int) -> int | None:
        """Gives the end of the fenced block that may open at `start`, with its closing line."""
        text = self._text
        newline = text.rfind("\n", self._seen, start)
        self._line_start = newline + 1 if newline >= 0 else self._line_start
        self._seen = start
        prefix = text[self._line_start : start] if start - self._line_start <= _PREFIX_LONGEST else "x"
        if prefix and not _FENCE_PREFIX.fullmatch(prefix):
            return None
        line_end = text.find("\n", start)
        if line_end < 0:
            line_end = len(text)
        if letter == "`" and text.find("`", start + length, line_end) >= 0:
            return None
        if ">" in prefix:
            return self._quoted_end(letter, length, line_end + 1)
        end = self._closing_line(letter, length, line_end)
        # Inside a list or deeper than three blanks, a fence ends with what holds it; we cannot tell where, so
        # only one that is closed counts, else the rest of the page would turn into code.
        return len(text) if end is None and (len(prefix) <= 3 and prefix.strip(" ") == "") else end

    def _closing_line(self, letter: str, length: int, at: int) -> int | None:
        if length >= self._unclosed.get(letter, FENCE_LONGEST + 1):
            return None
        text, fence = self._text, letter * length
        while (found := text.find(fence, at)) >= 0:
            start = text.rfind("\n", at, found) + 1
            at = text.find("\n", found)
            at = len(text) if at < 0 else at
            if start and found - start <= _PREFIX_LONGEST and _FENCE_CLOSE.fullmatch(text, start, at):
                return at
        self._unclosed[letter] = length
        return None

    def _quoted_end(self, letter: str, length: int, at: int) -> int:
        """Gives the end of a fence in a block quote: its closing line, else the end of the quote."""
        text = self._text
        while at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if not text[at : at + _PREFIX_LONGEST].lstrip(" \t").startswith(">"):
                return at - 1
            closing = _FENCE_CLOSE.fullmatch(text, at, end)
            at = end + 1
            if closing and closing[2] == letter and len(closing[1]) >= length:
                break
        return min(at - 1, len(text))

    def _inline_end(self, length: int, start: int) -> int | None:
        """Gives the end of the inline code that a run of `length` backticks opens: the next equal run.

        It must stand in the same block. The last run of each length is noted once a block, so that openers
        without a partner cost nothing.
        """
        text = self._text
        if start >= self._block_end:
            found = _BLOCK_END.search(text, start)
            self._block_end = found.start() if found else len(text)
            runs = _RUN.finditer(text, start, self._block_end)
            self._last_runs = {len(run[0]): run.start() for run in runs}
        if self._last_runs.get(length, -1) <= start:
            return None
        for run in _RUN.finditer(text, start + length, self._block_end):
            if len(run[0]) == length:
                return run.end()
        return None


def _indented(text: str, fenced: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Gives the lines of indented code: four blanks or a tab after a blank line, outside lists and fences."""
    at, after_blank, in_list = 0, True, False
    covered = next(fenced, None)
    for line in io.StringIO(text, newline="\n"):
        start, at = at, at + len(line)
        while covered and covered[1] <= start:
            covered = next(fenced, None)
        if covered and covered[0] <= start and covered[1] >= at - 1:
            in_list = in_list and (not after_blank or line[0] in " \t")
            after_blank = False
            continue
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not bare.strip():
            after_blank = True
        elif indent >= 4 or (bare[0] == "\t"):
            if after_blank and not in_list:
                yield start, at
        else:
            if _LIST_ITEM.match(line):
                in_list = True
            elif not indent and after_blank:
                in_list = False
            after_blank = False

"""Where the front matter of a page starts and ends, and how its bytes become text and bytes again.

Only a block at the first byte (after a BOM) counts, opened by a line `---` and closed by the next line `---`
(blanks after the dashes are allowed). `...` closes nothing, as in Obsidian. Source: pages.md §2.
"""

from typing import NamedTuple

from pcpd.errors import Invalid
from pcpd.pages.model import SIZE_LIMIT

BOM = b"\xef\xbb\xbf"
FENCE = "---"
_BLANKS = " \t\r"


class Span(NamedTuple):
    """Offsets in a page's text: the YAML is `text[start:end]`, the body `text[body:]`.

    All zero: no front matter. `end` is -1 for a block that never closes.
    """

    start: int
    end: int
    body: int

    @property
    def is_absent(self) -> bool:
        """Tells that the page has no front matter at all."""
        return self.body == 0

    @property
    def is_unclosed(self) -> bool:
        """Tells that a first line `---` has no partner."""
        return self.end < 0


class Text(NamedTuple):
    """A page's text as it is edited: without BOM, with its own line ends."""

    text: str
    has_bom: bool
    span: Span

    @property
    def newline(self) -> str:
        """The line end that most lines of the page have, `\\n` for a page of one line."""
        return newline_of(self.text)

    def encode(self, text: str) -> bytes:
        """Gives the bytes of the page with `text` in place of its own."""
        return (BOM if self.has_bom else b"") + text.encode()


def find_block(text: str) -> Span:
    """Finds the front matter of `text`, which has no BOM."""
    if not text.startswith(FENCE):
        return Span(0, 0, 0)
    first = text.find("\n")
    if text[3 : first if first >= 0 else len(text)].strip(_BLANKS):
        return Span(0, 0, 0)
    if first < 0:
        return Span(len(text), -1, len(text))
    at = text.find("\n---", first)
    while at >= 0:
        after = text.find("\n", at + 4)
        if after < 0:
            after = len(text)
        if after == at + 4 or not text[at + 4 : after].strip(_BLANKS):
            return Span(first + 1, at + 1, min(after + 1, len(text)))
        at = text.find("\n---", after)
    return Span(first + 1, -1, len(text))


def decode(data: bytes) -> Text:
    """Gives the text of a page that may be edited.

    Raises `Invalid` (`page.too-large`, `page.encoding`, `page.nul`) for bytes that no edit may touch.
    """
    if len(data) > SIZE_LIMIT:
        raise Invalid("page.too-large", f"the page has more than {SIZE_LIMIT} bytes and is not edited")
    has_bom = data.startswith(BOM)
    try:
        text = str(data[len(BOM) :] if has_bom else data, "utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(
            "page.encoding",
            f"the page is not UTF-8 (byte {error.start}) and is not edited",
            hint="save it as UTF-8 in an editor",
        ) from None
    if "\0" in text:
        raise Invalid("page.nul", "the page holds NUL bytes and is not edited")
    return Text(text, has_bom, find_block(text))


def newline_of(text: str) -> str:
    """Gives the line end that most lines of `text` have, `\\n` where there is none."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"

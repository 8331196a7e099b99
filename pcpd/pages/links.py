"""Links of a page's text, as written; which page each means, `index.resolve` says. Source: pages.md §3.

Wiki links and embeds, Markdown links to `.md` files, and Basic Memory's `- rel [[Target]]` lines count,
outside code and HTML comments; links in `%% %%` count, as Obsidian's own cache has them. Relations in the
front matter are read by `keys`.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from pcpd.pages.markdown import code
from pcpd.pages.model import Link

LINK_LIMIT = 10_000

_OPENING = re.compile(r"\[\[([^\[\]\n]++)\]\]|\]\(")
_DESTINATION = re.compile(
    r"""\]\([ \t]*+(?:<([^<>\n]*+)>|([^\s()<>]*+(?:\([^\s()]*+\)[^\s()]*+)*+))
        (?:[ \t]++(?:"[^"\n]*+"|'[^'\n]*+'|\([^()\n]*+\)))?+[ \t]*+\)""",
    re.VERBOSE,
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:|//")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LABEL = re.compile(
    r"""[ \t>]*+(?:[-*+]|\d{1,9}[.)])[ \t]++(?:"([^"\[\]]+)"|'([^'\[\]]+)'|([^\s\[\]"']\S*+))[ \t]++"""
)
_CONTEXT = re.compile(r"[ \t]*+(\([^\n]*\))?[ \t]*+\r?(?:\n|\Z)")
_ITEM_END = re.compile(r"[ \t>]*+(?:\r?\n|\Z|[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|`{3}|~{3})")
_TEXT_LONGEST = 1000
_LABEL_LONGEST = 300


def extract(body: str, line: int = 1) -> tuple[Link, ...]:
    """Gives the links of `body`, which starts at `line` of its file, in order, at most `LINK_LIMIT`."""
    if "[[" not in body and "](" not in body:
        return ()
    found: list[Link] = []
    counted, line_start = 0, 0
    for match in _outside_code(body):
        start = match.start()
        if newlines := body.count("\n", counted, start):
            line += newlines
            line_start = body.rindex("\n", counted, start) + 1
        counted = start
        if match[1] is None:
            link = _markdown(body, start, line)
        else:
            link = _wiki(body, match, _label(body, line_start, match), line)
        if link is not None:
            found.append(link)
            if len(found) == LINK_LIMIT:
                break
    return tuple(found)


def split_target(inner: str) -> tuple[str, str, str]:
    """Gives target, heading and alias of what stands between `[[` and `]]`."""
    target, _, alias = inner.replace("\\|", "|").partition("|")
    target, _, heading = target.partition("#")
    return target.strip(), heading.strip(), alias.strip()


def _outside_code(body: str) -> Iterator[re.Match[str]]:
    ranges = code(body)
    covered = next(ranges, None)
    for match in _OPENING.finditer(body):
        start, end = match.span()
        while covered and covered[1] <= start:
            covered = next(ranges, None)
        if covered and covered[0] < end:
            continue
        if start and body[start - 1] == "\\" and _is_escaped(body, start):
            continue
        yield match


def _is_escaped(body: str, at: int) -> bool:
    first = at
    while first and body[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _wiki(body: str, match: re.Match[str], label: str, line: int) -> Link | None:
    target, heading, alias = split_target(match[1])
    if not target:
        return None
    start = match.start()
    if start and body[start - 1] == "!" and not (start > 1 and _is_escaped(body, start - 1)):
        return Link("embed", target, "", heading, alias, line)
    return Link("relation-line" if label else "wiki", target, label, heading, alias, line)


def _label(body: str, line_start: int, match: re.Match[str]) -> str:
    """Gives the relation that a list item `- rel [[Target]] (context)` names, else the empty text."""
    start, end = match.span()
    if not 3 <= start - line_start <= _LABEL_LONGEST:
        return ""
    label = _LABEL.fullmatch(body, line_start, start)
    after = _CONTEXT.match(body, end) if label else None
    if not label or not after or not _is_balanced(after[1] or "") or not _ITEM_END.match(body, after.end()):
        return ""
    return str(label[1] or label[2] or label[3]).strip()


def _is_balanced(context: str) -> bool:
    """Tells whether `context` is one group in parentheses, or nothing."""
    depth = 0
    for at, letter in enumerate(context):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(context) - 1:
            return False
    return depth == 0


def _markdown(body: str, start: int, line: int) -> Link | None:
    found = _DESTINATION.match(body, start)
    written = (found[1] or found[2] or "") if found else ""
    if ".md" not in written and ".MD" not in written:
        return None
    if _SCHEME.match(written):
        return None
    path, _, heading = written.partition("#")
    path = _ESCAPE.sub(r"\1", path) if "\\" in path else path
    path = unquote(path)
    opening = body.rfind("[", max(0, start - _TEXT_LONGEST), start)
    if opening < 0 or "\0" in path or not path.lower().endswith(".md"):
        return None
    return Link("markdown", path, "", unquote(heading), body[opening + 1 : start], line)

"""What a request is based on: entity tags, and the headers that name them (RFC 9110, 8.8.3 and 13.1).

The tag of a page's text is its version; its JSON view is another representation and has a tag of its own, which names
the same version. A part has the mark of a part, with which the whole cannot be replaced (`memory.bases`).
"""

import re
from collections.abc import Sequence

from pcpd.errors import Usage

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e]{1,200})"', re.ASCII)
_ANY = "*"
_JSON = "-json"


def tag(version: str, *, as_json: bool = False) -> str:
    """Gives the strong entity tag of a version, or of its JSON view."""
    return f'"{version}{_JSON if as_json else ""}"'


def base_in(header: str | None) -> str | None:
    """Gives the version that `If-Match` names, or None where there is no such header.

    A weak tag names no version, so that nothing is at it (RFC 9110, 13.1.1). Raises `Usage` (`http.malformed`)
    for what is no tag, for several, and for `*`: a change is based on the one version that was read.
    """
    if header is None:
        return None
    tags = _tags(header)
    if len(tags) != 1:
        raise Usage(
            "http.malformed",
            "If-Match takes the entity tag of one version",
            hint='send the `ETag` of the answer in which you read the page, such as "3b0c8f…"',
        )
    return tags[0].removesuffix(_JSON)


def makes_only(header: str | None) -> bool:
    """Tells whether `If-None-Match: *` says that nothing may be replaced. Raises `Usage` for any other."""
    if header is not None and header.strip() != _ANY:
        raise Usage(
            "http.malformed",
            "If-None-Match takes `*` alone where something is written",
            hint="send `If-None-Match: *` to make a page, or `If-Match` to replace one",
        )
    return header is not None


def is_known(header: str | None, current: str) -> bool:
    """Tells whether who reads has the current representation already: whether `If-None-Match` lists its tag."""
    if header is None:
        return False
    # Weak comparison (RFC 9110, 13.1.2). What is no list of tags says nothing, and the answer is given.
    return header.strip() == _ANY or current.strip('"') in {each.removeprefix("W/") for each in _tags(header)}


def _tags(header: str) -> Sequence[str]:
    """Gives the tags of a list, weak ones with their mark; none where it is no list of tags."""
    found, at = [], 0
    text = header.strip()
    while match := _TAG.match(text, at):
        found.append(f"{match[1] or ''}{match[2]}")
        rest = text[match.end() :].lstrip()
        if not rest:
            return found
        if not rest.startswith(","):
            break
        at = len(text) - len(rest[1:].lstrip())
    return []

"""How a page is shown: its bytes, its JSON view, its outline or one section of it.

Each says where the page comes from: JSON beside the text, Markdown in the headers `Pcp-Origin` and `Pcp-Review`.
"""

import re
from base64 import b64encode
from dataclasses import dataclass

from fastapi import Response

from pcpd.api import conditions
from pcpd.api.answers import Json
from pcpd.api.paths import address_of
from pcpd.errors import Usage
from pcpd.memory.bases import part_mark
from pcpd.memory.named import PageRead
from pcpd.pages import body

MARKDOWN = "text/markdown"
UTF8 = f"{MARKDOWN}; charset=utf-8"
_QUALITY = re.compile(r"q *= *(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a page is asked for, as what, and what the client has already (`If-None-Match`)."""

    section: str | None = None
    outline: bool = False
    as_json: bool = False
    known: str | None = None


def prefers_json(accept: str | None) -> bool:
    """Tells whether an `Accept` header wants JSON more than text. Where it does not say, text is given."""
    wanted: dict[str, float] = {}
    for part in (accept or "").split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        said = [match[1] for each in parameters if (match := _QUALITY.fullmatch(each))]
        wanted[kind] = max(wanted.get(kind, 0.0), float(said[0]) if said else 1.0)
    json = wanted.get("application/json", 0.0)
    return json > max(wanted.get(MARKDOWN, 0.0), wanted.get("text/*", 0.0), wanted.get("text/plain", 0.0))


def shown(read: PageRead, wanted: Wanted) -> Response:
    """Gives the answer for a page that was read. Raises `NotFound` and `Invalid` for a section that is not there."""
    is_part = wanted.outline or wanted.section is not None
    as_json = wanted.as_json or wanted.outline
    tag = conditions.tag(part_mark(read.version) if is_part else read.version, as_json=as_json)
    headers = {
        "etag": tag,
        "vary": "Accept",
        "content-location": address_of(read.path),
        "pcp-origin": read.origin,
    }
    if read.review is not None:
        headers["pcp-review"] = read.review
    data = _part(read, wanted)
    if conditions.is_known(wanted.known, tag):
        return Response(status_code=304, headers=headers)
    if as_json:
        return Json(_described(read, data, wanted), headers=headers)
    headers["content-type"] = UTF8 if _is_utf8(data) else MARKDOWN
    return Response(data, headers=headers)


def _part(read: PageRead, wanted: Wanted) -> bytes:
    """Gives the bytes of the page, or the text below one heading without the heading itself."""
    if wanted.outline and wanted.section is not None:
        raise Usage(
            "http.malformed", "`outline` and `section` cannot be asked for together", hint="send one of them"
        )
    return read.data if wanted.section is None else body.section(read.data, wanted.section).encode()


def _described(read: PageRead, data: bytes, wanted: Wanted) -> dict[str, object]:
    """Gives the JSON view: what the page says of itself, where it comes from, and its text or headings."""
    page = read.page
    said: dict[str, object] = {
        "path": page.path,
        "title": page.title,
        "type": page.type,
        "category": read.category,
        "tags": page.tags,
        "id": page.id,
        "partition": page.partition,
        "sensitivity": page.sensitivity,
        "lifecycle": page.lifecycle,
        "updated": read.updated,
        "origin": read.origin,
        "author": page.author,
        "review": read.review,
        "problems": page.problems,
    }
    if wanted.outline:
        found = body.outline(read.data)
        headings = [{"level": each.level, "text": each.text, "line": each.line} for each in found]
        return {**said, "version": None, "edit_version": part_mark(read.version), "headings": headings}
    if wanted.section is not None:
        mark = part_mark(read.version)
        return {
            **said,
            "version": None,
            "edit_version": mark,
            "section": wanted.section,
            "text": data.decode(),
        }
    if _is_utf8(data):
        return {**said, "version": read.version, "text": data.decode()}
    return {**said, "version": read.version, "base64": b64encode(data).decode()}


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True

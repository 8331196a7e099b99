"""Routes of single pages: read, write, edit, remove, move, restore."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel

from pcpd.api.answers import answer
from pcpd.api.caller import CallerOf, OwnerOf, Served, in_thread
from pcpd.api.paths import PAGE
from pcpd.errors import Invalid, Usage
from pcpd.memory import read, write
from pcpd.memory.carry_out import Written
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.pages.frontmatter import parse_assignment

router = APIRouter()

_VERSION = re.compile(r"[0-9A-Za-z]{1,128}", re.ASCII)


class EditBody(BaseModel):
    """One edit, as `pages.edits.Edit`, or with `assignment`: KEY=VALUE as people type it.

    An assignment is read by the owner, since JSON cannot tell a date or 1.10 from a text or a number.
    """

    op: Literal[
        "set", "remove", "append_item", "replace_section", "replace_text", "append", "prepend", "replace_body"
    ]
    where: str = ""
    value: Any = None
    assignment: str | None = None

    def as_edit(self) -> Edit:
        """Gives the edit. Raises `Usage` (`edit.assignment`)."""
        if self.assignment is None:
            return Edit(self.op, self.where, self.value)
        key, value = parse_assignment(self.assignment)
        return Edit(self.op, key, value)


class EditsBody(BaseModel):
    """Edits that are applied in order, all or none."""

    edits: list[EditBody]


class MoveBody(BaseModel):
    """A page and the path that it gets."""

    path: str
    to: str


class RestoreBody(BaseModel):
    """A page and the version that comes back."""

    path: str
    rev: str


IfMatch = Annotated[str | None, Header()]


@router.get(f"/pages/{PAGE}")
async def read_page(owner: OwnerOf, caller: CallerOf, path: str) -> Response:
    """Gives a page's bytes; its version is the entity tag."""
    page = await in_thread(owner, lambda: read.read_page(owner.memory, caller, path))
    return Response(page.data, media_type="text/markdown", headers={"ETag": f'"{page.version}"'})


@router.put(f"/pages/{PAGE}")
async def write_page(
    request: Request,
    owner: OwnerOf,
    caller: CallerOf,
    path: str,
    *,
    if_match: IfMatch = None,
    if_none_match: IfMatch = None,
    overwrite: bool = False,
) -> Response:
    """Makes a page or replaces its bytes. `If-None-Match: *` makes one, and replaces nothing."""
    if if_none_match not in {None, "*"}:
        raise Usage("http.malformed", "If-None-Match takes `*` alone")
    version, body = _version_in(if_match), await request.body()

    def act() -> Written:
        proposed = Proposed(_text(body))
        may_replace = overwrite and if_none_match is None
        return write.write_page(
            owner.memory, caller, path, proposed, if_version=version, overwrite=may_replace
        )

    return await _written(owner, act)


@router.patch(f"/pages/{PAGE}")
async def edit_page(
    owner: OwnerOf, caller: CallerOf, path: str, body: EditsBody, if_match: IfMatch = None
) -> Response:
    """Edits keys or text; every other byte stays."""
    edits = [edit.as_edit() for edit in body.edits]
    version = _version_in(if_match)
    return await _written(
        owner, lambda: write.edit_page(owner.memory, caller, path, edits, if_version=version)
    )


@router.delete(f"/pages/{PAGE}")
async def remove_page(owner: OwnerOf, caller: CallerOf, path: str, if_match: IfMatch = None) -> Response:
    """Takes a page away; history keeps it."""
    version = _version_in(if_match)
    return await _written(owner, lambda: write.remove_page(owner.memory, caller, path, if_version=version))


@router.post("/move")
async def move_page(owner: OwnerOf, caller: CallerOf, body: MoveBody, if_match: IfMatch = None) -> Response:
    """Gives a page another path."""
    version = _version_in(if_match)
    return await _written(
        owner, lambda: write.move_page(owner.memory, caller, body.path, body.to, if_version=version)
    )


@router.post("/restore")
async def restore(owner: OwnerOf, caller: CallerOf, body: RestoreBody) -> Response:
    """Brings an earlier version back as a new one."""
    return await _written(owner, lambda: write.restore(owner.memory, caller, body.path, body.rev))


async def _written(owner: Served, act: Callable[[], Written]) -> Response:
    """Runs an act that writes; the version that it came to is the entity tag."""
    written = await in_thread(owner, act)
    return answer(written, {"ETag": f'"{written.version}"'})


def _version_in(tag: str | None) -> str | None:
    """Gives the version in an entity tag."""
    version = tag.strip().removeprefix("W/").strip('"') if tag else None
    if version is not None and not _VERSION.fullmatch(version):
        raise Usage("http.malformed", "If-Match takes the entity tag of one version")
    return version


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Invalid("page.content", f"the text is not UTF-8 at byte {error.start}") from None

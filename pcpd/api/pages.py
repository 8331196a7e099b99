"""Routes of single pages: read, write, edit, remove, move, restore."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel

from pcpd.api.answers import Json
from pcpd.api.caller import CallerOf, OwnerOf, Served, in_thread, owner_and_caller
from pcpd.api.conditions import base_in, makes_only, tag
from pcpd.api.paths import PAGE, address_of
from pcpd.api.views import Wanted, prefers_json, shown
from pcpd.errors import Invalid, Usage
from pcpd.memory import read, write
from pcpd.memory.bases import is_part, part_mark
from pcpd.memory.carry_out import Written
from pcpd.memory.memory import Caller
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.pages.frontmatter import parse_assignment

router = APIRouter()

PROPOSED = "proposed"


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


Tag = Annotated[str | None, Header()]


_READ_WITH = {
    "parameters": [
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": "Entity tags that the client has: where one is the page's, the answer is 304.",
        }
    ]
}


@router.get(f"/pages/{PAGE}", openapi_extra=_READ_WITH)
async def read_page(
    request: Request, path: str, *, section: str | None = None, outline: str | None = None
) -> Response:
    """Gives a page: its bytes, or with `Accept: application/json` what it says of itself with its text.

    `section` gives what stands under that heading, `outline` the headings. Whole, its entity tag is the version
    that a change names in `If-Match`; a part's tag is good for edits alone.
    """
    is_outline = outline is not None and outline.lower() not in {"0", "false"}
    owner, caller = owner_and_caller(request)
    sent = request.headers
    wanted = Wanted(section, is_outline, prefers_json(sent.get("accept")), sent.get("if-none-match"))
    return await in_thread(owner, lambda: shown(read.read_page(owner.memory, caller, path), wanted))


@router.put(f"/pages/{PAGE}")
async def write_page(
    request: Request,
    owner: OwnerOf,
    caller: CallerOf,
    path: str,
    *,
    if_match: Tag = None,
    if_none_match: Tag = None,
    overwrite: bool = False,
) -> Response:
    """Makes a page or replaces its text. `If-Match` names the version that is replaced; without it nothing is.

    `If-None-Match: *` makes one, and replaces nothing whatever else is said. `overwrite` is for the person alone.
    """
    version, is_new = base_in(if_match), makes_only(if_none_match)
    if version is not None and is_new:
        raise Usage(
            "http.malformed",
            "If-Match and If-None-Match: * contradict each other",
            hint="send If-Match to replace a page, If-None-Match: * to make one",
        )
    body = await request.body()

    def act() -> Written:
        proposed = Proposed(_text(body))
        return write.write_page(
            owner.memory, caller, path, proposed, if_version=version, overwrite=overwrite and not is_new
        )

    return await _written(owner, act, knows_all=True)


@router.patch(f"/pages/{PAGE}")
async def edit_page(
    owner: OwnerOf, caller: CallerOf, path: str, body: EditsBody, if_match: Tag = None
) -> Response:
    """Edits keys or text; every other byte stays."""
    edits = [edit.as_edit() for edit in body.edits]
    version = base_in(if_match)
    return await _written(
        owner,
        lambda: write.edit_page(owner.memory, caller, path, edits, if_version=version),
        knows_all=_knows_all(caller, version),
    )


@router.delete(f"/pages/{PAGE}")
async def remove_page(owner: OwnerOf, caller: CallerOf, path: str, if_match: Tag = None) -> Response:
    """Takes a page away; history keeps it. An agent names the version that it has read."""
    version = base_in(if_match)
    return await _written(
        owner,
        lambda: write.remove_page(owner.memory, caller, path, if_version=version),
        knows_all=_knows_all(caller, version),
    )


@router.post("/move")
async def move_page(owner: OwnerOf, caller: CallerOf, body: MoveBody, if_match: Tag = None) -> Response:
    """Gives a page another path."""
    version = base_in(if_match)
    return await _written(
        owner,
        lambda: write.move_page(owner.memory, caller, body.path, body.to, if_version=version),
        knows_all=_knows_all(caller, version),
    )


@router.post("/restore")
async def restore(owner: OwnerOf, caller: CallerOf, body: RestoreBody) -> Response:
    """Brings an earlier version back as a new one."""
    return await _written(
        owner, lambda: write.restore(owner.memory, caller, body.path, body.rev), knows_all=True
    )


async def _written(owner: Served, act: Callable[[], Written], *, knows_all: bool) -> Response:
    """Runs an act that writes. The version that it came to is the entity tag, for who knows all of the page."""
    written = await in_thread(owner, act)
    if written.outcome == PROPOSED:  # the page is as it was, and who asked has learned nothing new of it
        return Json({**asdict(written), "version": None, "edit_version": None}, 202)
    made = written.outcome == "created"
    mark = None if knows_all else part_mark(written.version)
    headers = {"etag": tag(mark or written.version)}
    if made:
        headers["location"] = address_of(written.path)
    said = {**asdict(written), "version": None if mark else written.version, "edit_version": mark}
    return Json(said, 201 if made else 200, headers=headers)


def _knows_all(caller: Caller, version: str | None) -> bool:
    """Tells whether who changes a page has seen the whole of it. Nobody asks that of the person."""
    return caller.principal.is_controller or (version is not None and not is_part(version))


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            "page.content", f"the text is not UTF-8 at byte {error.start}", hint="send it in UTF-8"
        ) from None

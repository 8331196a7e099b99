"""Routes of single pages: read, write, edit, remove, move, restore."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel

from pcpd.api.caller import CallerOf, OwnerOf, in_thread
from pcpd.errors import Invalid
from pcpd.memory import read, write
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit

router = APIRouter()


class EditBody(BaseModel):
    """One edit, as `pages.edits.Edit`."""

    op: Literal[
        "set", "remove", "append_item", "replace_section", "replace_text", "append", "prepend", "replace_body"
    ]
    where: str = ""
    value: Any = None


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


def _tag(value: str | None) -> str | None:
    """Gives the version in an entity tag."""
    return value.removeprefix("W/").strip().strip('"') if value else None


IfMatch = Annotated[str | None, Header()]


@router.get("/pages/{path:path}")
async def read_page(owner: OwnerOf, caller: CallerOf, path: str) -> Response:
    """Gives a page's bytes; its version is the entity tag."""
    page = await in_thread(owner, lambda: read.read_page(owner.memory, caller, path))
    return Response(page.data, media_type="text/markdown", headers={"ETag": f'"{page.version}"'})


@router.put("/pages/{path:path}")
async def write_page(
    request: Request,
    owner: OwnerOf,
    caller: CallerOf,
    path: str,
    if_match: IfMatch = None,
    overwrite: int = 0,
) -> dict[str, Any]:
    """Makes a page or replaces its bytes."""
    try:
        content = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Invalid("page.content", f"the text is not UTF-8 at byte {error.start}") from None
    written = await in_thread(
        owner,
        lambda: write.write_page(
            owner.memory,
            caller,
            path,
            Proposed(content),
            if_version=_tag(if_match),
            overwrite=bool(overwrite),
        ),
    )
    return asdict(written)


@router.patch("/pages/{path:path}")
async def edit_page(
    owner: OwnerOf, caller: CallerOf, path: str, body: EditsBody, if_match: IfMatch = None
) -> dict[str, Any]:
    """Edits keys or text; every other byte stays."""
    edits = [Edit(edit.op, edit.where, edit.value) for edit in body.edits]
    written = await in_thread(
        owner, lambda: write.edit_page(owner.memory, caller, path, edits, if_version=_tag(if_match))
    )
    return asdict(written)


@router.delete("/pages/{path:path}")
async def remove_page(
    owner: OwnerOf, caller: CallerOf, path: str, if_match: IfMatch = None
) -> dict[str, Any]:
    """Takes a page away; history keeps it."""
    written = await in_thread(
        owner, lambda: write.remove_page(owner.memory, caller, path, if_version=_tag(if_match))
    )
    return asdict(written)


@router.post("/move")
async def move_page(owner: OwnerOf, caller: CallerOf, body: MoveBody) -> dict[str, Any]:
    """Gives a page another path."""
    written = await in_thread(owner, lambda: write.move_page(owner.memory, caller, body.path, body.to))
    return asdict(written)


@router.post("/restore")
async def restore(owner: OwnerOf, caller: CallerOf, body: RestoreBody) -> dict[str, Any]:
    """Brings an earlier version back as a new one."""
    written = await in_thread(owner, lambda: write.restore(owner.memory, caller, body.path, body.rev))
    return asdict(written)

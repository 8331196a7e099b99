"""Routes of versions: a page's history, one version of it, what changed between two.

The person gets all that git knows, also of attachments and of the vault as a whole. An agent gets what it may read,
then and today, and of one page at a time.
"""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from pcpd.api.caller import CallerOf, OwnerOf, answered, in_thread, person_of
from pcpd.api.paths import PAGE
from pcpd.errors import Usage
from pcpd.memory import undo, versions

router = APIRouter()


class UndoBody(BaseModel):
    """Which act is taken back: a version or the id of an audit row, else the last one, of a principal where named."""

    act: str | None = Field(default=None, max_length=1000)
    principal: str | None = Field(default=None, max_length=1000)
    dry_run: bool = False


Limit = Annotated[int, Query(ge=1, le=10_000)]
Rev = Annotated[str | None, Query(max_length=1000)]


@router.get("/history", dependencies=[Depends(person_of)])
async def log_of_vault(owner: OwnerOf, caller: CallerOf, limit: Limit = 50, before: Rev = None) -> Response:
    """Lists versions of the vault, the newest first."""

    def act() -> dict[str, object]:
        found = versions.log(owner.memory, caller, None, limit=limit, before=before)
        return {"versions": [asdict(version) for version in found]}

    return await answered(owner, act)


@router.get(f"/history/{PAGE}")
async def history(
    *,
    owner: OwnerOf,
    caller: CallerOf,
    path: str,
    limit: Limit = 50,
    before: Rev = None,
    cursor: str | None = None,
) -> Response:
    """Lists versions of a page, the newest first, across its renames.

    An agent goes on with `cursor`; the person, who gets more of each version, with `before`.
    """

    def act() -> object:
        if not caller.principal.is_controller:
            return versions.history(owner.memory, caller, path, limit=limit, cursor=cursor)
        found = versions.log(owner.memory, caller, path, limit=limit, before=before)
        return {"versions": [asdict(version) for version in found]}

    return await answered(owner, act)


@router.post("/undo", dependencies=[Depends(person_of)])
async def take_back_act(owner: OwnerOf, caller: CallerOf, body: UndoBody) -> Response:
    """Takes back an act of an agent as a new version, merged with what changed since; what clashes is shown instead."""

    def act() -> object:
        return undo.undo(owner.memory, caller, body.act, principal=body.principal, dry_run=body.dry_run)

    return await answered(owner, act)


@router.get(f"/show/{PAGE}")
async def show(
    owner: OwnerOf, caller: CallerOf, path: str, rev: Annotated[str, Query(max_length=1000)]
) -> Response:
    """Gives a page's bytes as they were at a version."""

    def act() -> bytes:
        if caller.principal.is_controller:
            return versions.show(owner.memory, caller, path, rev)
        return versions.version(owner.memory, caller, path, rev).data

    return Response(await in_thread(owner, act), media_type="application/octet-stream")


@router.get("/diff")
async def diff(
    owner: OwnerOf, caller: CallerOf, path: str | None = None, old: Rev = None, new: Rev = None
) -> Response:
    """Gives changes between versions as unified text. An agent names a page and the version to begin with."""

    def act() -> bytes:
        if caller.principal.is_controller:
            text = versions.diff(owner.memory, caller, path, old, new)
        elif path is None or old is None:
            raise Usage(
                "http.malformed", "`path` and `old` are missing", hint="the page's history lists its versions"
            )
        else:
            text = versions.changes(owner.memory, caller, path, old, new)
        return text.encode("utf-8", "surrogateescape")

    return Response(await in_thread(owner, act), media_type="text/x-diff")

"""Routes of versions: log, show, diff."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Response

from pcpd.api.caller import CallerOf, OwnerOf, answered, in_thread
from pcpd.api.paths import PAGE
from pcpd.memory import versions

router = APIRouter()

Limit = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/history")
@router.get(f"/history/{PAGE}")
async def log(
    owner: OwnerOf, caller: CallerOf, path: str | None = None, limit: Limit = 50, before: str | None = None
) -> Response:
    """Lists versions, of one page or of the vault, the newest first."""

    def act() -> dict[str, object]:
        found = versions.log(owner.memory, caller, path, limit=limit, before=before)
        return {"versions": [asdict(version) for version in found]}

    return await answered(owner, act)


@router.get(f"/show/{PAGE}")
async def show(owner: OwnerOf, caller: CallerOf, path: str, rev: str) -> Response:
    """Gives a page's bytes as they were."""
    data = await in_thread(owner, lambda: versions.show(owner.memory, caller, path, rev))
    return Response(data, media_type="application/octet-stream")


@router.get("/diff")
async def diff(
    owner: OwnerOf, caller: CallerOf, path: str | None = None, old: str | None = None, new: str | None = None
) -> Response:
    """Gives changes between versions as unified text."""
    text = await in_thread(owner, lambda: versions.diff(owner.memory, caller, path, old, new))
    return Response(text.encode("utf-8", "surrogateescape"), media_type="text/x-diff")

"""Routes that find pages: search, lists, recent, links."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from pcpd.api.caller import CallerOf, OwnerOf, in_thread
from pcpd.memory import read

router = APIRouter()

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/search")
async def search(
    owner: OwnerOf, caller: CallerOf, q: str = "", limit: Limit = 20, cursor: str | None = None
) -> dict[str, Any]:
    """Finds pages by words and filters."""
    results = await in_thread(owner, lambda: read.search(owner.memory, caller, q, limit=limit, cursor=cursor))
    return asdict(results)


@router.get("/pages")
async def list_pages(
    owner: OwnerOf, caller: CallerOf, folder: str = "", limit: Limit = 100, cursor: str | None = None
) -> dict[str, Any]:
    """Lists the pages below a folder by path."""
    listing = await in_thread(
        owner, lambda: read.list_pages(owner.memory, caller, folder=folder, limit=limit, cursor=cursor)
    )
    return asdict(listing)


@router.get("/recent")
async def recent(
    owner: OwnerOf, caller: CallerOf, limit: Limit = 20, cursor: str | None = None
) -> dict[str, Any]:
    """Lists pages, the newest first."""
    listing = await in_thread(owner, lambda: read.recent(owner.memory, caller, limit=limit, cursor=cursor))
    return asdict(listing)


@router.get("/links/{path:path}")
async def links(
    owner: OwnerOf, caller: CallerOf, path: str, depth: Annotated[int, Query(ge=1, le=5)] = 1
) -> dict[str, Any]:
    """Gives what a page links to, what links to it, and its neighbours."""
    answer = await in_thread(owner, lambda: read.links(owner.memory, caller, path, depth=depth))
    return asdict(answer)

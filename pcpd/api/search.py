"""Routes that find pages: search, lists, recent, links."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from pcpd.api.caller import CallerOf, OwnerOf, answered, owner_and_caller
from pcpd.api.paths import PAGE
from pcpd.memory import read

router = APIRouter()

Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/search")
async def search(request: Request, q: str = "", limit: Limit = 20, cursor: str | None = None) -> Response:
    """Finds pages by words and filters."""
    owner, caller = owner_and_caller(request)
    return await answered(owner, lambda: read.search(owner.memory, caller, q, limit=limit, cursor=cursor))


@router.get("/pages")
async def list_pages(
    owner: OwnerOf, caller: CallerOf, folder: str = "", limit: Limit = 100, cursor: str | None = None
) -> Response:
    """Lists the pages below a folder by path."""
    return await answered(
        owner, lambda: read.list_pages(owner.memory, caller, folder=folder, limit=limit, cursor=cursor)
    )


@router.get("/recent")
async def recent(
    owner: OwnerOf,
    caller: CallerOf,
    limit: Limit = 20,
    cursor: str | None = None,
    since: str | None = None,
) -> Response:
    """Lists pages, the newest first; with `since`, a time, none that is older."""
    return await answered(
        owner, lambda: read.recent(owner.memory, caller, since=since, limit=limit, cursor=cursor)
    )


@router.get("/links")
async def loose_ends(
    owner: OwnerOf,
    caller: CallerOf,
    of: Literal["unresolved", "orphans"] = "unresolved",
    limit: Limit = 100,
    cursor: str | None = None,
) -> Response:
    """Lists links that lead to no page, or pages to which no link leads."""
    act = read.unresolved if of == "unresolved" else read.orphans
    return await answered(owner, lambda: act(owner.memory, caller, limit=limit, cursor=cursor))


@router.get(f"/links/{PAGE}")
async def links(
    owner: OwnerOf, caller: CallerOf, path: str, depth: Annotated[int, Query(ge=1, le=5)] = 1
) -> Response:
    """Gives what a page links to, what links to it, and its neighbours."""
    return await answered(owner, lambda: read.links(owner.memory, caller, path, depth=depth))

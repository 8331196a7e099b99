"""Routes of the audit trail: rows, what each principal did in sum, and whether the trail is whole."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from pcpd.api.answers import Json, answer
from pcpd.api.caller import CallerOf, OwnerOf, PersonOf, Served, answered, in_thread, person_of
from pcpd.memory import trail
from pcpd.memory.trail import AuditList, AuditQuery

router = APIRouter()

Text = Annotated[str | None, Query(max_length=4096)]
Limit = Annotated[int, Query(ge=1, le=1000)]
WAIT_S = 25
BREATH_S = 0.1
"""Seconds to wait after the first new row: rows that come meanwhile are answered together with it."""


class PruneBody(BaseModel):
    """The time that the rows to remove are older than, at least a day ago."""

    before: str = Field(max_length=100)


async def query_of(
    *,
    principal: Text = None,
    action: Text = None,
    channel: Literal["mcp", "http", "cli", "management", "disk"] | None = None,
    outcome: Text = None,
    category: Literal["semantic", "episodic", "procedural", "profile", "conversation"] | None = None,
    page: Text = None,
    since: Text = None,
    until: Text = None,
) -> AuditQuery:
    """Reads which rows are wanted from the query of a request."""
    return AuditQuery(
        principal=principal,
        action=action,
        channel=channel,
        outcome=outcome,
        category=category,
        page=page,
        since=since,
        until=until,
    )


QueryOf = Annotated[AuditQuery, Depends(query_of)]


@router.get("/audit")
async def audit(
    *,
    owner: OwnerOf,
    caller: CallerOf,
    query: QueryOf,
    limit: Limit = 100,
    cursor: Text = None,
    after: Text = None,
    wait: Annotated[int, Query(ge=0, le=WAIT_S)] = 0,
) -> Response:
    """Lists rows of the audit trail, newest first; with `after`, those that came after a `position`, oldest first.

    The person sees all, an agent its own. With `after`, the person may also `wait` for so many seconds until there
    are some. `outcome=refused` is every outcome but ok.
    """

    def act() -> AuditList:
        return trail.rows(owner.memory, caller, query, cursor=cursor, after=after, limit=limit)

    is_person = caller.principal.is_controller
    # An agent never waits: its own look leaves a row, which would end the wait at once.
    if is_person and after is not None and wait:
        return await _when_there_are_some(owner, act, wait)
    return await answered(owner, act, before_ready=is_person)


@router.get("/audit/summary")
async def summary(owner: OwnerOf, caller: PersonOf, query: QueryOf) -> Response:
    """Tells what each principal did: reads, writes, refusals, different pages, and when."""
    return await answered(owner, lambda: trail.summary(owner.memory, caller, query), before_ready=True)


@router.get("/audit/proof", dependencies=[Depends(person_of)])
async def proof(owner: OwnerOf) -> Response:
    """Checks the trail, and names each row that was edited, put in or cut."""

    def act() -> dict[str, object]:
        found = trail.verify(owner.memory)
        faults = [{"number": fault.number, "what": fault.what} for fault in found.faults]
        pruned = {"pruned": found.pruned, "pruned_before": found.pruned_before}
        return {"ok": found.ok, "rows": found.rows, "faults": faults, **pruned}

    return await answered(owner, act, before_ready=True)


@router.post("/audit/prune", dependencies=[Depends(person_of)])
async def prune(owner: OwnerOf, body: PruneBody) -> Response:
    """Removes the rows that are older than a time, for good; what is left stays provable."""
    return await answered(owner, lambda: {"removed": trail.prune(owner.memory, body.before)})


async def _when_there_are_some(owner: Served, act: Callable[[], AuditList], wait_s: float) -> Json:
    """Answers once there are rows, when the time is over, or when the owner ends."""
    loop = asyncio.get_running_loop()
    news, ends_at = asyncio.Event(), loop.time() + wait_s

    def wake() -> None:
        loop.call_soon_threadsafe(news.set)

    unlisten, ending = trail.listen(owner.memory, wake), asyncio.ensure_future(owner.until())
    try:
        while True:
            news.clear()
            found = await in_thread(owner, act, before_ready=True)
            left_s = ends_at - loop.time()
            if found.rows or left_s <= 0 or ending.done():
                return answer(found)
            woken = asyncio.create_task(news.wait())
            await asyncio.wait({woken, ending}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            if news.is_set():
                await asyncio.sleep(BREATH_S)
    finally:
        unlisten()
        ending.cancel()

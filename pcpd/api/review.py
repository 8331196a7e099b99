"""Routes of review: what waits, one proposal with what it would change, and what is decided."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from pcpd.api.caller import CallerOf, OwnerOf, answered
from pcpd.memory import review
from pcpd.memory.verdicts import Asked

router = APIRouter()

PROPOSAL = "{id:page}"
"""A proposal's id at the end of a route; that of a new page is its path."""
AT_ONCE = 1000
"""Proposals that one request may decide."""
ID_LONGEST = 4096

Limit = Annotated[int, Query(ge=1, le=1000)]
Id = Annotated[str, Path(alias="id")]
Decision = Literal["approve", "reject", "expire"]


class DecisionBody(BaseModel):
    """What is decided about one proposal. With `page`, that text is approved in the place of the proposed one.

    `if_digest` is the `digest` of what was shown: what says something else by then is not decided.
    """

    decision: Decision
    reason: str = Field(default="", max_length=ID_LONGEST)
    page: str | None = None
    if_digest: str | None = Field(default=None, max_length=200)


class DecisionsBody(BaseModel):
    """What is decided about several proposals, each for itself."""

    ids: list[Annotated[str, Field(max_length=ID_LONGEST)]] = Field(min_length=1, max_length=AT_ONCE)
    decision: Decision
    reason: str = Field(default="", max_length=ID_LONGEST)


@router.get("/proposals")
async def proposals(
    owner: OwnerOf,
    caller: CallerOf,
    limit: Limit = 50,
    cursor: str | None = None,
    state: Literal["open", "rejected", "all"] = "open",
) -> Response:
    """Lists what waits for review, the oldest first; for the person, and for agents with `review`.

    What a caller may not review does not exist for it.
    """
    return await answered(
        owner, lambda: review.queue(owner.memory, caller, limit=limit, cursor=cursor, state=state)
    )


@router.get(f"/proposals/{PROPOSAL}")
async def proposal(owner: OwnerOf, caller: CallerOf, id_: Id) -> Response:
    """Gives one proposal: the page before and after, what differs word by word, and where both sides clash."""
    return await answered(owner, lambda: review.show(owner.memory, caller, id_))


@router.post("/proposals")
async def decide_many(owner: OwnerOf, caller: CallerOf, body: DecisionsBody) -> Response:
    """Decides proposals, each for itself; the answer tells of each what came of it.

    `refused` are those that could not be decided, with the reason: they still wait. `expire` takes away those that
    have waited for 90 days.
    """

    def act() -> dict[str, object]:
        decided = review.decide_all(owner.memory, caller, body.ids, body.decision, reason=body.reason)
        return {"decided": decided}

    return await answered(owner, act)


@router.post(f"/proposals/{PROPOSAL}")
async def decide(owner: OwnerOf, caller: CallerOf, id_: Id, body: DecisionBody) -> Response:
    """Approves a proposal, with its own text or another, or rejects it. What conflicts is refused, and waits."""
    page = body.page.encode() if body.page is not None else None
    asked = Asked(body.decision, body.reason, page, body.if_digest)
    return await answered(owner, lambda: review.decide_one(owner.memory, caller, id_, asked))

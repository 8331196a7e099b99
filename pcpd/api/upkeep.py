"""Routes of the owner itself: health, status, context, long work, doctor, rebuild, accept, handover."""

import os
from dataclasses import asdict

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from pcpd import __version__
from pcpd.api.answers import answer
from pcpd.api.caller import CallerOf, OwnerOf, answered, person_of
from pcpd.memory import doctor as checks
from pcpd.memory import upkeep
from pcpd.memory.describe import describe

router = APIRouter()
PERSON = [Depends(person_of)]


class AcceptBody(BaseModel):
    """What is accepted: the mass loss that is kept back or (`copy`) that this copy replaces the original."""

    is_copy: bool = Field(default=False, alias="copy", strict=True)


class DoctorBody(BaseModel):
    """How thorough the check is."""

    deep: bool = Field(default=False, strict=True)


class HandoverBody(BaseModel):
    """The version of the pcpd that asks the owner to end, so that a newer one can take its place."""

    version: str = ""


@router.get("/health")
async def health(owner: OwnerOf) -> Response:
    """Tells that an owner answers (`ok`), and whether it has read the vault and its index follows it.

    Open to everybody on this machine.
    """
    return answer(
        {
            "ok": True,
            "version": __version__,
            "ready": owner.is_ready(),
            "in_step": owner.memory.health.in_step,
            "pid": os.getpid(),
        }
    )


@router.get("/status", dependencies=PERSON)
async def status(owner: OwnerOf) -> Response:
    """Tells how the vault, its index, its history and its owner are."""
    return await answered(
        owner, lambda: {**checks.status(owner.memory), "owner": owner.describe()}, before_ready=True
    )


@router.get("/context")
async def context(owner: OwnerOf, caller: CallerOf) -> Response:
    """Tells a caller where it is, who it is, what it may do, and how to ask for more."""
    return await answered(owner, lambda: describe(owner.memory, caller))


@router.get("/work", dependencies=PERSON)
async def work(owner: OwnerOf) -> Response:
    """Tells how far long work is."""
    now = owner.memory.health.work
    return answer({"work": None if now is None else asdict(now)})


@router.post("/doctor", dependencies=PERSON)
async def doctor(owner: OwnerOf, body: DoctorBody) -> Response:
    """Checks pages and, when deep, compares the index with one made anew aside."""
    return await answered(owner, lambda: checks.doctor(owner.memory, deep=body.deep))


@router.post("/rebuild", dependencies=PERSON)
async def rebuild(owner: OwnerOf) -> Response:
    """Makes the index anew beside the old one and swaps it."""
    return await answered(owner, lambda: upkeep.rebuild(owner.memory))


@router.post("/accept", dependencies=PERSON)
async def accept(owner: OwnerOf, body: AcceptBody) -> Response:
    """Accepts a mass loss, or a copy as the vault that it replaces."""
    if body.is_copy:
        accepted = await answered(owner, lambda: upkeep.accept_copy(owner.memory))
        owner.end()
        return accepted
    return await answered(owner, lambda: upkeep.accept(owner.memory))


@router.post("/handover", dependencies=PERSON)
async def handover(owner: OwnerOf, body: HandoverBody) -> Response:
    """Ends this owner in favour of another one, where it may: one that a client started, or an older one."""
    return answer({"ends": owner.hand_over(body.version)})

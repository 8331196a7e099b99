"""Routes of what agents may do: tokens and grants. For the person alone."""

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from pcpd.api.caller import OwnerOf, answered, person_of
from pcpd.memory import consent

router = APIRouter(dependencies=[Depends(person_of)])


class TokenBody(BaseModel):
    """The principal that a token is for."""

    principal: str


class GrantBody(BaseModel):
    """One line of access.yaml."""

    principal: str
    partitions: list[str] | None = None
    categories: list[str] | None = None
    rights: list[str]
    sensitivity: str = "normal"
    until: str | None = None


class RevokeBody(BaseModel):
    """Whose grants and tokens, or which single token, are taken back."""

    principal: str | None = None
    token: str | None = None


@router.post("/tokens")
async def create_token(owner: OwnerOf, body: TokenBody) -> Response:
    """Makes a token; it is shown this once."""
    return await answered(owner, lambda: consent.create_token(owner.memory, body.principal))


@router.get("/tokens")
async def tokens(owner: OwnerOf) -> Response:
    """Lists tokens without their secrets."""
    return await answered(owner, lambda: consent.tokens(owner.memory))


@router.post("/grants")
async def grant(owner: OwnerOf, body: GrantBody) -> Response:
    """Writes a grant to access.yaml."""
    return await answered(owner, lambda: consent.grant(owner.memory, consent.Wish(**body.model_dump())))


@router.get("/grants")
async def grants(owner: OwnerOf) -> Response:
    """Lists the grants in force."""
    return await answered(owner, lambda: consent.grants(owner.memory))


@router.post("/revoke")
async def revoke(owner: OwnerOf, body: RevokeBody) -> Response:
    """Takes grants and tokens back at once."""
    return await answered(
        owner, lambda: consent.revoke(owner.memory, principal=body.principal, token=body.token)
    )

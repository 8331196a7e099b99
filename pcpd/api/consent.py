"""Routes of what agents may do: tokens and grants. For the person alone."""

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from pcpd.api.caller import OwnerOf, answered, person_of
from pcpd.memory import consent, pausing, standing

router = APIRouter(dependencies=[Depends(person_of)])


class TokenBody(BaseModel):
    """The principal that a token is for, and what to call it in lists."""

    principal: str
    label: str = Field(default="", max_length=200)


class GrantBody(BaseModel):
    """One line of access.yaml."""

    principal: str
    partitions: list[str] | None = None
    categories: list[str] | None = None
    rights: list[str]
    sensitivity: str = "normal"
    until: str | None = None

    def wish(self) -> consent.Wish:
        """Gives it as acts take it."""
        return consent.Wish(**self.model_dump(exclude={"without"}))


class PreviewBody(GrantBody):
    """A grant that is thought of, and those that would go for it."""

    without: list[GrantBody] = Field(default=[], max_length=1_000)


class RevokeBody(BaseModel):
    """Whose grants and tokens, or which single token, are taken back."""

    principal: str | None = None
    token: str | None = None


class PauseBody(BaseModel):
    """Who is paused or let back; everybody with a token where nobody is named."""

    principal: str | None = None


@router.get("/access")
async def access(owner: OwnerOf) -> Response:
    """Tells who can do what, since when and until when, and who is paused."""
    return await answered(owner, lambda: standing.access(owner.memory))


@router.post("/pause")
async def pause(owner: OwnerOf, body: PauseBody) -> Response:
    """Cuts agents off at once, until they are let back; open connections end."""
    return await answered(owner, lambda: pausing.pause(owner.memory, body.principal), before_ready=True)


@router.post("/resume")
async def resume(owner: OwnerOf, body: PauseBody) -> Response:
    """Lets paused agents back."""
    return await answered(owner, lambda: pausing.resume(owner.memory, body.principal), before_ready=True)


@router.post("/tokens")
async def create_token(owner: OwnerOf, body: TokenBody) -> Response:
    """Makes a token; it is shown this once."""
    return await answered(owner, lambda: consent.create_token(owner.memory, body.principal, label=body.label))


@router.get("/tokens")
async def tokens(owner: OwnerOf) -> Response:
    """Lists tokens without their secrets."""
    return await answered(owner, lambda: consent.tokens(owner.memory))


@router.post("/grants")
async def grant(owner: OwnerOf, body: GrantBody) -> Response:
    """Writes a grant to access.yaml."""
    return await answered(owner, lambda: consent.grant(owner.memory, body.wish()))


@router.get("/grants")
async def grants(owner: OwnerOf) -> Response:
    """Lists the grants in force."""
    return await answered(owner, lambda: consent.grants(owner.memory))


@router.post("/grants/preview")
async def preview(owner: OwnerOf, body: PreviewBody) -> Response:
    """Tells what a grant would give, with examples; changes nothing."""
    without = [each.wish() for each in body.without]
    return await answered(owner, lambda: consent.preview(owner.memory, body.wish(), without=without))


@router.post("/grants/take-back")
async def take_back(owner: OwnerOf, body: GrantBody) -> Response:
    """Takes away the one grant that is equal to this."""
    return await answered(owner, lambda: consent.take_back(owner.memory, body.wish()))


@router.get("/principals")
async def principals(owner: OwnerOf) -> Response:
    """Tells of each principal which tokens and grants it has, and when it was last seen."""
    return await answered(owner, lambda: consent.principal_access(owner.memory))


@router.post("/revoke")
async def revoke(owner: OwnerOf, body: RevokeBody) -> Response:
    """Takes grants and tokens back at once."""
    return await answered(
        owner, lambda: consent.revoke(owner.memory, principal=body.principal, token=body.token)
    )

"""What every route needs: the owner that serves it, who calls it, and a thread for its act.

The dependencies are `async` though they wait for nothing: FastAPI would run any other one on a thread.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Header, Request

from pcpd.api.answers import Json, answer
from pcpd.errors import Denied, Unavailable, Usage
from pcpd.gate.knock import CALLER
from pcpd.gate.threads import Shares
from pcpd.memory.account import one_call
from pcpd.memory.memory import Caller, Memory

T = TypeVar("T")

KEY_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Served:
    """What the doors see of the owner: its memory, how `status` describes it, how to make it hand over.

    `until` returns when the owner ends. `agent` is who asks this request, empty where that is the person.
    """

    memory: Memory
    describe: Callable[[], dict[str, object]]
    hand_over: Callable[[str], bool]
    end: Callable[[], None]
    until: Callable[[], Awaitable[object]]
    threads: Shares
    agent: str = ""

    def is_ready(self) -> bool:
        """Tells whether the first scan is done."""
        return self.memory.health.ready


def owner_and_caller(request: Request) -> tuple[Served, Caller]:
    """Gives the owner that serves a request, and who calls.

    For the routes that are asked most: FastAPI takes a noticeable time to resolve each dependency.
    """
    return _served_to(request), _knocked(request)


async def owner_of(request: Request) -> Served:
    """Gives the owner that serves a request."""
    return _served_to(request)


async def caller_of(request: Request, idempotency_key: Annotated[str, Header()] = "") -> Caller:
    """Gives who calls, as the gate found."""
    if len(idempotency_key) > KEY_LIMIT:
        raise Usage(
            "http.malformed",
            f"the idempotency key is longer than {KEY_LIMIT} characters",
            hint="use a shorter one, such as a UUID",
        )
    return replace(_knocked(request), key=idempotency_key)


async def person_of(request: Request) -> Caller:
    """Gives the caller where a route is for the person alone, on the owner's socket: no token opens it.

    Raises `Denied` (`http.person-only`).
    """
    caller = _knocked(request)
    if not caller.principal.is_controller:
        raise Denied(
            "http.person-only",
            f"{caller.principal.name} may not do this",
            hint="the person can, with the `pcpd` command",
        )
    return caller


def _served_to(request: Request) -> Served:
    """Gives the owner as it serves who calls: an agent has its own share of the threads."""
    owner = cast("Served", request.app.state.owner)
    caller: Caller | None = request.scope["state"].get(CALLER)
    if caller is None or caller.principal.is_controller:
        return owner
    return replace(owner, agent=caller.principal.name)


def _knocked(request: Request) -> Caller:
    return cast("Caller", request.scope["state"][CALLER])


async def in_thread(owner: Served, act: Callable[[], T], *, before_ready: bool = False) -> T:
    """Runs an act off the event loop, on threads of the doors' own, so that readers never wait for others'."""
    if not before_ready and not owner.is_ready():
        raise Unavailable(
            "owner.starting", "the owner is still reading the vault", hint="try again in a moment"
        )

    def call() -> T:
        with one_call():
            return act()

    return await owner.threads.run(call, owner.agent)


async def answered(owner: Served, act: Callable[[], object], *, before_ready: bool = False) -> Json:
    """Runs an act and gives its result as JSON, made on the act's thread."""
    return await in_thread(owner, lambda: answer(act()), before_ready=before_ready)


OwnerOf = Annotated[Served, Depends(owner_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]
PersonOf = Annotated[Caller, Depends(person_of)]

"""The acts by which the person cuts agents off for a while and lets them back."""

from pcpd.errors import Conflict, NotFound, Usage
from pcpd.ledger import tokens as token_rows
from pcpd.ledger.pauses import EVERYBODY
from pcpd.memory.account import managed
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy import principals


def pause(memory: Memory, principal: str | None) -> dict[str, object]:
    """Cuts one principal off at once, or with None everybody with a token, until `resume`.

    Raises `NotFound` (`consent.absent`) for one that nobody let in: a slip of the pen must not look like a pause.
    """
    with managed(memory, "pause", principal or EVERYBODY):
        if principal is not None:
            _check(memory, principal)
        try:
            memory.brakes.pause(principal or EVERYBODY, to_z(memory.clock.now()))
        finally:
            memory.listeners.tell()
    return {"paused": memory.brakes.paused}


def resume(memory: Memory, principal: str | None) -> dict[str, object]:
    """Lets one principal back, or with None all of them; gives how many pauses that ended, and which are left.

    Raises `Conflict` (`access.all-paused`) for one of them while everybody is paused, `NotFound` (`consent.absent`).
    """
    with managed(memory, "resume", principal or EVERYBODY):
        if principal is not None and principal not in memory.brakes.paused:
            if EVERYBODY in memory.brakes.paused:
                raise Conflict(
                    "access.all-paused",
                    f"everybody is paused, so that {principal} alone cannot be let back",
                    hint="`pcpd resume` lets all back; `pcpd pause NAME` then holds single ones",
                )
            _check(memory, principal)
        ended = memory.brakes.resume(principal)
        memory.listeners.tell()
    return {"resumed": ended, "paused": memory.brakes.paused}


def notice(memory: Memory) -> str | None:
    """Says who is paused, for `status`."""
    paused = memory.brakes.paused
    if not paused:
        return None
    names = "every agent" if EVERYBODY in paused else ", ".join(sorted(paused))
    return f"{names} paused since {min(paused.values())}; `pcpd resume` ends it"


def _check(memory: Memory, principal: str) -> None:
    problem = principals.problem_of(principal)
    if problem:
        raise Usage("consent.principal", problem, hint="such as agent:claude")
    known = {member.id for member in memory.context.principals}
    known |= {each.principal for each in memory.grants().grants}
    known |= {each.principal for each in token_rows.listing(memory.ledger)}
    if not any(principals.covers(principal, each) for each in known):
        raise NotFound(
            "consent.absent",
            f"nobody is known as {principal!r}",
            hint="`pcpd access` shows who can do what",
        )

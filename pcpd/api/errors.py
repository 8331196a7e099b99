"""Maps the PcpError tree to problem details (RFC 9457), once for all routes."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import cast

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pcpd.api.answers import Json
from pcpd.api.caller import Served
from pcpd.api.paths import methods_at
from pcpd.errors import (
    Broken,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    PcpError,
    Unavailable,
    Usage,
    as_told,
    as_told_to_agents,
)
from pcpd.gate.knock import CALLER
from pcpd.memory.account import is_accounted, note_refusal
from pcpd.memory.memory import Caller

log = logging.getLogger("pcpd")

STATUS: dict[type[PcpError], int] = {
    Usage: 400,
    Denied: 403,
    NotFound: 404,
    Conflict: 409,
    Invalid: 422,
    Broken: 500,
    Unavailable: 503,
}
TEXT_LIMIT = 1_000
"""Characters of a message: what was asked for may be quoted in it, and may be large."""
PLACES_NAMED = 5
RETRY_S = 1
"""Seconds after which what is unavailable may be asked again."""
CLOSING = frozenset({408, 413, 414, 431})
"""After these, what is left of the request is not read."""
PRECONDITION = 412


class Problem(Json):
    """A problem document."""

    media_type = "application/problem+json"


def status_of(error: PcpError) -> int:
    """Gives the HTTP status of an error's class."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def problem(error: PcpError, status: int | None = None) -> Problem:
    """Gives the answer for an error: `application/problem+json` with our code, hint and details."""
    status = status or status_of(error)
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": shortened(error.message),
        "code": error.code,
        "hint": shortened(error.hint),
        "details": error.details,
    }
    return Problem(content, status, headers=_headers(error, status))


def _headers(error: PcpError, status: int) -> dict[str, str]:
    headers = {}
    if status == 401:
        is_shown = error.code != "http.no-token"
        headers["www-authenticate"] = 'Bearer error="invalid_token"' if is_shown else "Bearer"
    if status == 503:
        headers["retry-after"] = str(RETRY_S)
    if status in CLOSING:
        headers["connection"] = "close"
    version = error.details.get("version")
    if isinstance(version, str) and isinstance(error, Conflict):  # the one to base the next try on
        headers["etag"] = f'"{version}"'
    return headers


def shortened(text: str) -> str:
    """Gives a message that fits beside others."""
    return text if len(text) <= TEXT_LIMIT else f"{text[:TEXT_LIMIT]}…"


async def on_error(request: Request, error: Exception) -> Problem:
    """FastAPI's handler for the tree, and for what the system refused."""
    if isinstance(error, OSError | Broken):
        log.error("a request failed: %s", error)  # an agent is not told where
    told = as_told(error)
    status = PRECONDITION if _is_precondition(request, told) else None
    if not is_accounted(error):
        return await refused(request, told, status)
    return problem(told if _agent_of(request) is None else as_told_to_agents(error), status)


async def refused(request: Request, error: PcpError, status: int | None = None) -> Problem:
    """Gives the answer for an error of a call that reached no act: an agent's has its audit row written here."""
    caller = _agent_of(request)
    if caller is not None:
        owner = cast("Served", request.app.state.owner)
        route = request.scope.get("route")
        action = str(getattr(route, "name", "")) or "request"
        await owner.threads.run(
            lambda: note_refusal(owner.memory, caller, action, error), caller.principal.name
        )
        error = as_told_to_agents(error)
    return problem(error, status)


def _agent_of(request: Request) -> Caller | None:
    """Gives who calls, where that is not the person."""
    caller = request.scope.get("state", {}).get(CALLER)
    return caller if isinstance(caller, Caller) and not caller.principal.is_controller else None


def _is_precondition(request: Request, error: PcpError) -> bool:
    """Tells whether what the request said it is based on is why it was refused (RFC 9110, 13.1)."""
    named = {"page.stale": "if-match", "page.exists": "if-none-match"}.get(error.code)
    return named is not None and named in request.headers


async def on_gone(_request: Request, _gone: Exception) -> Response:
    """Answers a client that went away, which hears nothing any more. It is no fault of ours."""
    return Response(status_code=400)


async def on_fault(request: Request, error: Exception) -> Problem:
    """Logs a fault of ours whole, and tells the client as little of it as helps."""
    log.error("a request met a fault", exc_info=error)
    return problem(as_told(error) if _agent_of(request) is None else as_told_to_agents(error))


async def on_malformed(request: Request, error: Exception) -> Problem:
    """Names what is malformed without repeating what was sent."""
    faults: Sequence[dict[str, object]] = error.errors() if isinstance(error, RequestValidationError) else ()
    places = [f"{_place(fault)}: {fault['msg']}" for fault in faults[:PLACES_NAMED]]
    more = [f"and {len(faults) - PLACES_NAMED} more"] if len(faults) > PLACES_NAMED else []
    why = "; ".join([*places, *more])
    return await refused(request, Usage("http.malformed", f"the request is malformed: {why}"))


async def on_half_a_letter(request: Request, _error: Exception) -> Problem:
    """JSON can name half a letter (a lone surrogate), which no file and no database can hold."""
    why = "the request names half a letter: a surrogate without its other half"
    return await refused(request, Usage("http.malformed", why))


async def on_no_route(request: Request, error: Exception) -> Problem:
    """Tells of routes and methods that do not exist, and of bodies that the framework could not read."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    if status == 404:
        return await refused(request, NotFound("http.no-route", "there is no such route"))
    if status == 405:
        answer = await refused(
            request, Usage("http.wrong-method", "this route does not serve that method"), status
        )
        answer.headers["allow"] = ", ".join(methods_at(request.app.state.methods, request.scope["path"]))
        return answer
    return await refused(request, Usage("http.malformed", "the request's body cannot be read"), status)


def _place(fault: dict[str, object]) -> str:
    where = fault.get("loc")
    return ".".join(str(part)[:80] for part in where) if isinstance(where, tuple) else "request"

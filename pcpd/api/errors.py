"""Maps the PcpError tree to problem details (RFC 9457), once for all routes."""

import logging
from collections.abc import Sequence

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pcpd.api.answers import Json
from pcpd.errors import Broken, Conflict, Denied, Invalid, NotFound, PcpError, Unavailable, Usage, as_told

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
ALWAYS_CLOSING = 413


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
        "title": type(error).__name__,
        "status": status,
        "detail": shortened(error.message),
        "code": error.code,
        "hint": shortened(error.hint),
        "details": error.details,
    }
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if status == ALWAYS_CLOSING:  # what is left of the body is not read
        headers["connection"] = "close"
    return Problem(content, status, headers=headers)


def shortened(text: str) -> str:
    """Gives a message that fits beside others."""
    return text if len(text) <= TEXT_LIMIT else f"{text[:TEXT_LIMIT]}…"


async def on_error(_request: Request, error: Exception) -> Problem:
    """FastAPI's handler for the tree, and for what the system refused."""
    return problem(as_told(error))


async def on_gone(_request: Request, _gone: Exception) -> Response:
    """Answers a client that went away, which hears nothing any more. It is no fault of ours."""
    return Response(status_code=400)


async def on_fault(_request: Request, error: Exception) -> Problem:
    """Logs a fault of ours whole, and tells the client as little of it as helps."""
    log.error("a request met a fault", exc_info=error)
    return problem(as_told(error))


async def on_malformed(_request: Request, error: Exception) -> Problem:
    """Names what is malformed without repeating what was sent."""
    faults: Sequence[dict[str, object]] = error.errors() if isinstance(error, RequestValidationError) else ()
    places = [f"{_place(fault)}: {fault['msg']}" for fault in faults[:PLACES_NAMED]]
    more = [f"and {len(faults) - PLACES_NAMED} more"] if len(faults) > PLACES_NAMED else []
    return problem(Usage("http.malformed", f"the request is malformed: {'; '.join([*places, *more])}"))


async def on_half_a_letter(_request: Request, _error: Exception) -> Problem:
    """JSON can name half a letter (a lone surrogate), which no file and no database can hold."""
    return problem(
        Usage("http.malformed", "the request names half a letter: a surrogate without its other half")
    )


async def on_no_route(_request: Request, error: Exception) -> Problem:
    """Tells of routes and methods that do not exist, and of bodies that the framework could not read."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    if status == 404:
        return problem(NotFound("http.no-route", "there is no such route"))
    if status == 405:
        return problem(Usage("http.wrong-method", "this route does not serve that method"), 405)
    return problem(Usage("http.malformed", "the request's body cannot be read"), status)


def _place(fault: dict[str, object]) -> str:
    where = fault.get("loc")
    return ".".join(str(part)[:80] for part in where) if isinstance(where, tuple) else "request"

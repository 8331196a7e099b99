"""Maps the PcpError tree to problem details (RFC 9457), once for all routes."""

from fastapi import Request
from fastapi.responses import JSONResponse

from pcpd.errors import Broken, Conflict, Denied, Invalid, NotFound, PcpError, Unavailable, Usage, as_told

STATUS: dict[type[PcpError], int] = {
    Usage: 400,
    Denied: 403,
    NotFound: 404,
    Conflict: 409,
    Invalid: 422,
    Broken: 500,
    Unavailable: 503,
}


def status_of(error: PcpError) -> int:
    """Gives the HTTP status of an error's class."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def problem(error: PcpError, status: int | None = None) -> JSONResponse:
    """Gives the answer for an error: `application/problem+json` with our code, hint and details."""
    status = status or status_of(error)
    content = {
        "type": "about:blank",
        "title": type(error).__name__,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "hint": error.hint,
        "details": error.details,
    }
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(content, status, media_type="application/problem+json", headers=headers)


async def on_error(_request: Request, error: Exception) -> JSONResponse:
    """FastAPI's handler for the tree."""
    return problem(as_told(error))

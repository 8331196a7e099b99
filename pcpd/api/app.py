"""Puts the routes together: one FastAPI app behind the gate, served on the Unix socket and on loopback."""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from pcpd import __version__
from pcpd.api import consent, history, pages, search, upkeep
from pcpd.api.caller import Served
from pcpd.api.errors import on_error, problem
from pcpd.errors import PcpError, Usage
from pcpd.gate.knock import App, Gate


def build(served: Served) -> App:
    """Gives the ASGI app of one owner."""
    app = FastAPI(title="pcpd", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.owner = served
    for kind in (PcpError, OSError):
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(RequestValidationError, _on_malformed)
    app.middleware("http")(_say_version)
    for door in (upkeep, search, pages, history, consent):
        app.include_router(door.router, prefix="/vault/v1")
    return Gate(app, problem)


async def _on_malformed(_request: Request, error: Exception) -> JSONResponse:
    """Names what is malformed without repeating what was sent."""
    places = [
        ".".join(str(part) for part in each["loc"]) + ": " + str(each["msg"])
        for each in (error.errors() if isinstance(error, RequestValidationError) else ())
    ]
    return problem(Usage("http.malformed", f"the request is malformed: {'; '.join(places)}"))


async def _say_version(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["Pcpd-Version"] = __version__
    return response

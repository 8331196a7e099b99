"""Puts the routes together: one FastAPI app behind the gate, served on the Unix socket and on loopback."""

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from pcpd import __version__
from pcpd.api import audit, consent, events, history, metrics, openapi, pages, review, search, upkeep
from pcpd.api.caller import Served
from pcpd.api.edge import Edge, Heads
from pcpd.api.errors import on_error, on_fault, on_gone, on_half_a_letter, on_malformed, on_no_route, problem
from pcpd.api.meter import Meter
from pcpd.api.metrics import Watched
from pcpd.api.paths import PREFIX, methods_of, templates_of
from pcpd.api.streams import Streams
from pcpd.errors import PcpError
from pcpd.gate.credentials import Credentials
from pcpd.gate.guard import Gate
from pcpd.gate.knock import MCP_ROUTE, App, Receive, Scope, Send


def build(served: Served, mcp: App) -> App:
    """Gives the ASGI app of one owner; `mcp` serves the MCP endpoint."""
    app = routes(served)
    api = Heads(app)
    watched: Watched = app.state.watched

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        await (mcp if scope["path"] == MCP_ROUTE else api)(scope, receive, send)

    return watched.meter.wrap(Edge(Gate(either, problem, Credentials(served.memory))))


def routes(served: Served) -> FastAPI:
    """Gives the app with all routes and their owner, without the gate in front of it."""
    app = ownerless()
    app.state.owner = served
    app.state.methods = methods_of(app.routes)
    app.state.streams = streams = Streams(served.memory)
    started_at = served.memory.clock.now().timestamp()
    app.state.watched = Watched(Meter(templates_of(app.routes)), streams, started_at)
    return app


def ownerless() -> FastAPI:
    """Gives the app with all routes and no owner behind them, which is enough to describe the API."""
    app = FastAPI(
        title="pcpd",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    for kind in (PcpError, OSError):
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(ClientDisconnect, on_gone)
    app.add_exception_handler(Exception, on_fault)
    app.add_exception_handler(RequestValidationError, on_malformed)
    app.add_exception_handler(UnicodeEncodeError, on_half_a_letter)
    app.add_exception_handler(HTTPException, on_no_route)
    # Routes are tried in this order: the ones that are asked most come first.
    for door in (pages, search, upkeep, history, events, review, consent, audit):
        app.include_router(door.router, prefix=PREFIX)
    for own in (metrics, openapi):
        app.include_router(own.router)
    return app

"""The route of the API's own description (OpenAPI 3.1), made when first asked for."""

import json

from fastapi import APIRouter, FastAPI, Request, Response

from pcpd.api.caller import CallerOf, OwnerOf

ROUTE = "/openapi.json"

router = APIRouter()


@router.get(ROUTE)
async def description(request: Request, owner: OwnerOf, _caller: CallerOf) -> Response:
    """Describes every route, what it takes and what it answers."""
    app: FastAPI = request.app
    if app.openapi_schema is None:
        app.openapi_schema = await owner.threads.run(lambda: _made(app))
    data = json.dumps(app.openapi_schema, separators=(",", ":")).encode()
    return Response(data, media_type="application/json")


def _made(app: FastAPI) -> dict[str, object]:
    from pcpd.api.description import describe  # shapes of all answers, which nothing else needs

    return describe(app.routes)

"""With which statuses a route may refuse, for the API's description."""

from collections.abc import Iterable, Mapping
from typing import Any

from pcpd.gate.knock import BODY_LIMIT, HEADERS_LIMIT, URL_LIMIT

ALWAYS = (403, 414, 421, 431, 500)
"""What every route may answer, whoever asks."""
WITH_TOKEN = (400, 401, 503)
"""What every route may answer that is not open to all."""
WITH_BODY = (408, 413, 415)

ABOUT: Mapping[int, str] = {
    400: "The request is malformed.",
    401: "There is no token, or none that is good.",
    403: "The caller may not do this, or a web page asks.",
    404: "There is no such thing, as far as the caller may know.",
    408: "The body did not come in time.",
    409: "What the request is based on has changed, or stands in its way. Nothing was written.",
    412: "A version that the request names is not the present one, which `ETag` has. Nothing was written.",
    413: f"The body is over {BODY_LIMIT} bytes.",
    414: f"The URL is over {URL_LIMIT} bytes.",
    415: "The body is of a kind that the route does not read.",
    421: "The host is not this machine: use `127.0.0.1`, `localhost` or `[::1]`.",
    422: "The content cannot be taken as it is. Nothing was written.",
    431: f"The headers are over {HEADERS_LIMIT} bytes.",
    500: "A store is damaged, the system refused, or pcpd met a fault of its own.",
    503: "Not now: the owner is starting, ending or busy. Ask again after `Retry-After` seconds.",
}

_HEADERS: Mapping[int, tuple[str, str, bool]] = {
    401: ("WWW-Authenticate", "`Bearer`.", True),
    409: ("ETag", "The present version, where the caller may know it.", False),
    412: ("ETag", "The present version, where the caller may know it.", False),
    503: ("Retry-After", "Seconds.", True),
}


def named(statuses: Iterable[int]) -> dict[str, Any]:
    """Gives what stands for these refusals among an operation's responses."""
    return {str(status): {"$ref": f"#/components/responses/Refused{status}"} for status in sorted(statuses)}


def components() -> dict[str, Any]:
    """Gives the responses that `named` refers to."""
    return {f"Refused{status}": _response(status) for status in ABOUT}


def _response(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    said: dict[str, Any] = {
        "description": ABOUT[status],
        "content": {"application/problem+json": {"schema": schema}},
    }
    if status in _HEADERS:
        name, about, required = _HEADERS[status]
        said["headers"] = {name: {"description": about, "required": required, "schema": {"type": "string"}}}
    return said

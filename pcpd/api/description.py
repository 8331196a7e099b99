"""Describes the API as OpenAPI 3.1: what the framework knows of the routes, and what only we know of their answers."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic import TypeAdapter
from starlette.routing import BaseRoute

from pcpd import __version__
from pcpd.api import refusals
from pcpd.api.caller import person_of
from pcpd.api.examples import BODIES, PARAMETERS, SCHEMAS, SHAPES, TEXT_BODIES
from pcpd.api.outcomes import JSON, OUTCOMES, Answer
from pcpd.api.shapes import ProblemDetails
from pcpd.gate.knock import OPEN_ROUTES
from pcpd.memory.subscribe import Event

Json = dict[str, Any]

ABOUT = """\
A vault's pages, for agents and for the person on the same machine. `docs/api.md` is the same as text.

Every answer names the version of pcpd in `Pcp-Version`. Keys may be added to answers, and are not taken away. Every
GET also serves HEAD. MCP over streamable HTTP is at `/mcp`.
"""

TAGS = {
    "pages": "Single pages: read, write, edit, move, remove.",
    "search": "Finding pages.",
    "history": "Versions of pages.",
    "events": "Changes as they happen.",
    "review": "What agents proposed, and what is decided about it.",
    "audit": "What agents did.",
    "consent": "Tokens and grants.",
    "upkeep": "The owner itself.",
    "metrics": "Numbers for Prometheus.",
    "openapi": "This description.",
}
"""The doors, which are the modules that hold their routes."""

_HEADERS: Mapping[str, Json] = {
    "ETag": {"description": "The version, in quotes: for `If-Match` and `If-None-Match`."},
    "Location": {"description": "Where the page is."},
    "Content-Location": {"description": "The page's address, whichever name it was asked by."},
    "Vary": {"description": "`Accept`."},
    "Pcp-Origin": {"description": "Who wrote the page: user, agent, import or consolidation."},
    "Pcp-Review": {"description": "The state of review, where there was one."},
}
_OPTIONAL = {"Pcp-Review"}
KEY = "idempotency-key"
_SPELLED = {
    KEY: "Idempotency-Key",
    "if-match": "If-Match",
    "if-none-match": "If-None-Match",
    "last-event-id": "Last-Event-ID",
}
_NONE = re.compile(r"(?<!-)\bNone\b(?!-)")
_TEXT_KINDS = ("text/markdown", "text/plain")
_BEARER = """\
`pcpd connect` or `pcpd token create` makes one. On the owner's Unix socket a request without one is the person's.
"""


def describe(routes: Sequence[BaseRoute]) -> Json:
    """Gives the document."""
    document = get_openapi(
        title="pcpd", version=__version__, openapi_version="3.1.0", description=ABOUT, routes=routes
    )
    shapes, schemas = _shapes()
    known = document.setdefault("components", {}).get("schemas", {})
    bodies = {name: each for name, each in known.items() if not name.endswith("ValidationError")}
    operations = document["paths"]
    for route in _served(routes):
        said = operations[route.path]
        said[route.method] = _operation(route, said[route.method], shapes)
    return {
        "openapi": document["openapi"],
        "info": document["info"],
        "servers": [{"url": "/", "description": "Where this was read: `pcpd status` tells the port."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "security": [{"token": []}],
        "paths": operations,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": _BEARER.strip()}
            },
            "schemas": _told(_plain({**bodies, **schemas})),
            "responses": refusals.components(),
        },
    }


@dataclass(frozen=True, slots=True)
class _Route:
    """One route: its path and method, the function that serves it, and whether it is for the person alone."""

    path: str
    method: str
    endpoint: Callable[..., Any]
    is_persons: bool

    @property
    def name(self) -> str:
        return self.endpoint.__name__


def _served(routes: Sequence[BaseRoute]) -> Iterator[_Route]:
    for context in iter_route_contexts(routes):
        is_persons = any(each.call is person_of for each in context.dependant.dependencies)
        for method in sorted(context.methods or ()):
            if context.endpoint is not None:
                yield _Route(context.path_format or "", method.lower(), context.endpoint, is_persons)


def _operation(route: _Route, said: Json, shapes: Mapping[type, Json]) -> Json:
    paragraph, *rest = _paragraphs(route.endpoint.__doc__ or "")
    first, _, more = paragraph.partition(". ")
    rest = [more, *rest] if more else rest
    operation: Json = {
        "operationId": route.name,
        "tags": [route.endpoint.__module__.rpartition(".")[2]],
        "summary": first.removesuffix("."),
    }
    if route.is_persons:
        rest.append("For the person alone, on the owner's Unix socket.")
    if rest:
        operation["description"] = "\n\n".join(rest)
    parameters = [
        _parameter(route.name, each) for each in said.get("parameters", ()) if _means(route.method, each)
    ]
    if parameters:
        operation["parameters"] = parameters
    body = _body(route.name, said.get("requestBody"))
    if body:
        operation["requestBody"] = body
    if route.path in OPEN_ROUTES:
        operation["security"] = []
    operation["responses"] = _responses(route, shapes, has_body=body is not None)
    if route.is_persons:
        operation["x-person-only"] = True
    return operation


def _means(method: str, said: Json) -> bool:
    """Tells whether a parameter means anything: a key that says what was done once does where something is done."""
    return method != "get" or said["name"].lower() != KEY


def _parameter(operation: str, said: Json) -> Json:
    """Gives a parameter with what it means and an example."""
    key = said["name"].lower()
    about, example = PARAMETERS.get(f"{operation}.{key}") or PARAMETERS[key]
    schema = _without_null(_plain(said["schema"])) | SCHEMAS.get(f"{operation}.{key}", SCHEMAS.get(key, {}))
    name = _SPELLED.get(key, said["name"]) if said["in"] == "header" else said["name"]
    parameter: Json = {"name": name, "in": said["in"], "required": said["required"]}
    parameter |= {"description": about, "schema": schema}
    if example is not None:
        parameter["example"] = example
    return parameter


def _body(name: str, said: Json | None) -> Json | None:
    if name in TEXT_BODIES:
        content = {kind: {"schema": {"type": "string"}, "example": TEXT_BODIES[name]} for kind in _TEXT_KINDS}
        return {"required": False, "content": content}
    if said is None:
        return None
    content = _plain(said["content"])
    content[JSON]["example"] = BODIES[name]
    return {"required": True, "content": content}


def _responses(route: _Route, shapes: Mapping[type, Json], *, has_body: bool) -> Json:
    outcome = OUTCOMES[route.name]
    statuses = {*refusals.ALWAYS, *outcome.refusals}
    if route.path not in OPEN_ROUTES:
        statuses |= set(refusals.WITH_TOKEN)
    if has_body:
        statuses |= set(refusals.WITH_BODY)
    return {str(each.status): _answer(each, shapes) for each in outcome.answers} | refusals.named(statuses)


def _answer(answer: Answer, shapes: Mapping[type, Json]) -> Json:
    said: Json = {"description": answer.about}
    if answer.bodies:
        said["content"] = {kind: {"schema": _schema(kind, of, shapes)} for kind, of in answer.bodies.items()}
    if answer.headers:
        said["headers"] = {
            name: {**_HEADERS[name], "required": name not in _OPTIONAL, "schema": {"type": "string"}}
            for name in answer.headers
        }
    return said


def _schema(kind: str, of: tuple[type, ...] | None, shapes: Mapping[type, Json]) -> Json:
    if of is None:
        return {"type": "object" if kind == JSON else "string"}
    return shapes[of[0]] if len(of) == 1 else {"anyOf": [shapes[each] for each in of]}


def _shapes() -> tuple[dict[type, Json], Json]:
    """Gives the references to the shapes of all answers, and their schemas."""
    found = [
        each for outcome in OUTCOMES.values() for answer in outcome.answers for each in answer.bodies.values()
    ]
    kinds = dict.fromkeys([ProblemDetails, Event, *(kind for each in found for kind in each or ())])
    made, definitions = TypeAdapter.json_schemas(
        [(kind, "serialization", TypeAdapter(kind)) for kind in kinds],
        ref_template="#/components/schemas/{model}",
    )
    return {kind: made[kind, "serialization"] for kind in kinds}, definitions.get("$defs", {})


def _told(schemas: Json) -> Json:
    """Gives the shapes with words for who uses the API."""
    return {
        name: {**said, "description": SHAPES.get(name, said["description"])} for name, said in schemas.items()
    }


def _plain(schema: Any) -> Any:
    """Gives a schema without the titles that pydantic makes of names, and with paragraphs in one line each."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _plain(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)
    }
    if isinstance(plain.get("description"), str):
        plain["description"] = "\n\n".join(_paragraphs(plain["description"]))
    return plain


def _without_null(schema: Json) -> Json:
    """Gives the schema of a parameter that may be left out: sent, it is never null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else schema


def _paragraphs(text: str) -> list[str]:
    parts = [" ".join(each.split()) for each in inspect.cleandoc(text).split("\n\n")]
    return [_NONE.sub("null", each) for each in parts if each]

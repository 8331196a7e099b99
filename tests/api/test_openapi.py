"""The API's description is exact: every route stands there, and what is really answered fits it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from fastapi.routing import iter_route_contexts

from pcpd.api import examples, outcomes
from pcpd.api.app import ownerless, routes
from pcpd.api.description import TAGS, describe
from pcpd.gate.knock import OPEN_ROUTES
from tests.doors import Answer, Doors
from tests.waiting import until

DOCUMENT = describe(ownerless().routes)
OPERATIONS = [
    (path, method, said) for path, methods in DOCUMENT["paths"].items() for method, said in methods.items()
]
PROBLEMS = "application/problem+json"


def whole(said: Any) -> Any:
    """What a reference leads to."""
    while isinstance(said, dict) and "$ref" in said:
        place: Any = DOCUMENT
        for part in said["$ref"].removeprefix("#/").split("/"):
            place = place[part]
        said = place
    return said


def closed(schema: Any) -> Any:
    """The schema with its references followed, in which no key may stand that it does not name."""
    schema = whole(schema)
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


def said_of(method: str, target: str) -> Any:
    """What the description says of the route that serves a target."""
    path = target.partition("?")[0]
    wild = re.compile(r"\\\{(path|id)\\\}")
    for template, each, said in OPERATIONS:
        pattern = wild.sub(".+", re.escape(template))
        if each == method.lower() and re.fullmatch(pattern, path):
            return said
    raise AssertionError(target)


def fits(said: Any, answer: Answer) -> None:
    """Holds an answer to the description: status, media type, body and headers."""
    response = whole(said["responses"][str(answer.status)])
    for name, header in response.get("headers", {}).items():
        assert name.lower() in answer.headers or not header["required"], name
    if not answer.data:
        assert "content" not in response or answer.status == 200
        return
    kind = answer.headers["content-type"].partition(";")[0]
    schema = response["content"][kind]["schema"]
    if kind.endswith("json"):
        faults = list(jsonschema_rs.validator_for(closed(schema)).iter_errors(answer.json()))
        assert not faults, f"{said['operationId']}: {faults[0]}"


@pytest.fixture
def scene(make_doors: Callable[..., Doors]) -> Doors:
    """A vault with pages that link, one with a problem, one proposed, one that is no UTF-8, and an agent."""
    doors = make_doors(
        {
            "house/boiler.md": "---\ntitle: Boiler\ntags: [a]\nimportance: 9\n---\n# Quotes\n[[roof]] [[Cellar]]\n",
            "house/roof.md": "---\nreview: {state: proposed}\n---\nLeaks\n",
            "odd.md": b"caf\xe9\n",
        }
    )
    doors.opened.agent("agent:claude", "read", "write", "review")
    return doors


def asked(doors: Doors) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests that reach every operation, most of them in several ways: method, target, options."""
    page, version = "/vault/v1/pages/house/boiler", {"If-None-Match": "*"}
    for target in (
        page,
        f"{page}?outline=1",
        f"{page}?section=Quotes",
        "/vault/v1/pages/odd",
        "/vault/v1/pages/no",
    ):
        yield "GET", target, {}
        yield "GET", target, {"headers": {"Accept": "application/json"}}
    yield "GET", page, {"headers": {"If-None-Match": "*"}}
    yield "PUT", "/vault/v1/pages/new", {"body": b"text\n", "headers": version}
    yield "PUT", "/vault/v1/pages/new", {"body": b"text\n", "headers": version}
    yield "PUT", "/vault/v1/pages/new", {"body": b"text\n"}
    yield "PUT", "/vault/v1/pages/new", {"body": b"text\n", "headers": {"If-Match": '"abc"'}}
    yield "PUT", "/vault/v1/pages/new", {"body": b"\xff", "headers": {"Content-Type": "image/png"}}
    until(lambda: doors.vault("GET", "show/new?rev=HEAD").status == 200)
    yield "GET", "/vault/v1/show/new?rev=HEAD", {}
    yield "POST", "/vault/v1/restore", {"body": {"path": "new", "rev": "HEAD"}}
    yield "PATCH", "/vault/v1/pages/new", {"body": {"edits": [{"op": "append", "value": "more"}]}}
    yield "PATCH", "/vault/v1/pages/new", {"body": {"edits": [{"op": "frob"}]}}
    yield "POST", "/vault/v1/undo", {"body": examples.BODIES["take_back_act"]}
    yield "POST", "/vault/v1/undo", {"body": {"act": "0" * 40}}
    yield "POST", "/vault/v1/move", {"body": {"path": "new", "to": "newer"}}
    yield "POST", "/vault/v1/restore", {"body": {"path": "house/boiler", "rev": "nope"}}
    yield "DELETE", "/vault/v1/pages/newer", {}
    for id_ in ("house/roof", "no"):
        yield "GET", f"/vault/v1/proposals/{id_}", {}
        yield "POST", f"/vault/v1/proposals/{id_}", {"body": examples.BODIES["decide"]}
        yield "POST", f"/vault/v1/proposals/{id_}", {"body": {"decision": "approve", "if_digest": "x"}}
    yield "POST", "/vault/v1/proposals", {"body": examples.BODIES["decide_many"]}
    for target in (
        "search?q=Quotes", 'search?q="', "search?cursor=x", "pages", "pages?limit=1", "pages?limit=0", "recent",
        "links", "links?of=orphans", "links/house/boiler?depth=2", "links/no", "history", "history/house/boiler",
        "history/no", "show/house/boiler?rev=HEAD", "show/house/boiler?rev=no", "diff", "diff?path=house/boiler",
        "audit", "audit?cursor=x", "audit/summary", "audit/proof", "access", "tokens", "grants", "principals", "health",
        "context", "status", "work", "proposals", "proposals?state=all", "proposals?cursor=x",
    ):  # fmt: skip
        yield "GET", f"/vault/v1/{quote(target, safe='/?=&')}", {}
    grant = examples.BODIES["grant"]
    for target, body in (
        ("tokens", examples.BODIES["create_token"]), ("tokens", {"principal": "x"}), ("grants", grant),
        ("grants", {**grant, "rights": ["fly"]}), ("grants/preview", grant), ("grants/take-back", grant),
        ("revoke", {"token": "tok_00000000"}), ("grants", {**grant, "principal": "agent:other"}),
        ("audit/prune", examples.BODIES["prune"]), ("audit/prune", {"before": "x"}),
        ("pause", {"principal": "agent:other"}), ("pause", {"principal": "x"}),
        ("resume", {"principal": "agent:other"}),
        ("revoke", {"principal": "agent:other"}), ("doctor", {"deep": False}), ("doctor", {"deep": True}),
        ("rebuild", {}), ("accept", {}), ("accept", {"copy": True}), ("handover", examples.BODIES["handover"]),
    ):  # fmt: skip
        yield "POST", f"/vault/v1/{target}", {"body": body}
    yield "GET", "/metrics", {}
    yield "GET", "/openapi.json", {}
    yield "HEAD", "/vault/v1/events", {}


def test_what_is_answered_fits_the_description_to_the_last_key(scene: Doors) -> None:
    """To the person, who reaches every operation, and to an agent; no answer has a key that is not described."""
    token = {"Authorization": f"Bearer {scene.token()}"}
    reached = set()
    for method, target, options in asked(scene):
        said = said_of("GET" if method == "HEAD" else method, target)
        person = scene.ask(method, target, **options)
        headers = {**options.get("headers", {}), **token}
        agent = scene.ask(method, target, tcp=True, **{**options, "headers": headers})
        for answer in (person, agent):
            fits(said, answer)
            if answer.status < 400:
                reached.add(said["operationId"])
        if "x-person-only" in said:
            assert agent.code == "http.person-only", target
        else:
            assert b"http.person-only" not in agent.data, target
    assert {said["operationId"] for _, _, said in OPERATIONS} - reached == set()


def test_every_route_is_described_and_nothing_else(doors: Doors) -> None:
    """With a name of its own, a door, and what it answers."""
    names = [said["operationId"] for _, _, said in OPERATIONS]
    assert sorted(names) == sorted(outcomes.OUTCOMES)
    assert {said["tags"][0] for _, _, said in OPERATIONS} == set(TAGS)
    served = {
        (route.path_format, method.lower())
        for route in iter_route_contexts(routes(doors.served).routes)
        for method in route.methods or ()
    }
    assert {(path, method) for path, method, _ in OPERATIONS} == served


def test_every_example_is_used_and_fits() -> None:
    """Nothing is explained that no route takes."""
    used: set[str] = set()
    for _, _, said in OPERATIONS:
        for each in said.get("parameters", ()):
            names = f"{said['operationId']}.{each['name'].lower()}", each["name"].lower()
            used.add(next(name for name in names if name in examples.PARAMETERS))
            if "example" in each:
                jsonschema_rs.validator_for(each["schema"]).validate(each["example"])
        for body in said.get("requestBody", {}).get("content", {}).values():
            jsonschema_rs.validator_for(closed(body["schema"])).validate(body["example"])
    assert used == set(examples.PARAMETERS)
    bodies = {said["operationId"] for _, _, said in OPERATIONS if "requestBody" in said}
    assert bodies == set(examples.BODIES) | set(examples.TEXT_BODIES)


def test_every_schema_is_one_and_every_reference_leads_somewhere() -> None:
    """By the dialect that OpenAPI 3.1 takes for granted."""
    assert DOCUMENT["openapi"] == "3.1.0"
    found = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(DOCUMENT)))
    assert all(whole({"$ref": each}) for each in found)
    schemas = DOCUMENT["components"]["schemas"]
    unused = {name for name in schemas if f"#/components/schemas/{name}" not in found}
    assert unused == {"Event"}  # the data of events, which no schema of a stream can say
    for name in schemas:
        jsonschema_rs.validator_for(closed(schemas[name]))


def test_a_token_is_asked_for_everywhere_but_on_the_open_routes() -> None:
    """As the gate does."""
    assert DOCUMENT["security"] == [{"token": []}]
    assert {path for path, _, said in OPERATIONS if said.get("security") == []} == OPEN_ROUTES


def test_the_description_is_for_whoever_has_a_token(doors: Doors) -> None:
    """Without grants too; to nobody else on this machine."""
    token = {"Authorization": f"Bearer {doors.token()}"}
    answer = doors.ask("GET", "/openapi.json", tcp=True, headers=token)
    assert answer.json() == json.loads(json.dumps(DOCUMENT))
    assert doors.ask("GET", "/openapi.json").data == answer.data
    assert doors.ask("GET", "/openapi.json", tcp=True).code == "http.no-token"


@pytest.mark.parametrize(("route", "body"), [("accept", {"copy": 0}), ("doctor", {"deep": "yes"})])
def test_what_is_no_boolean_accepts_nothing(doors: Doors, route: str, body: dict[str, object]) -> None:
    """Where much hangs on a word, it is not guessed (found by schemathesis)."""
    assert doors.vault("POST", route, body=body).code == "http.malformed"

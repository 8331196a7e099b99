"""Every route that an owner serves, found in its own table: who may call it, and that looking changes nothing.

Whoever adds a route sees these tests fail until the route is on the list of its kind.
"""

import http.client
import socket
import subprocess
from collections.abc import Callable, Iterator

import pytest
from fastapi.routing import iter_route_contexts

from pcpd.api.app import routes
from pcpd.api.caller import Served
from pcpd.api.paths import methods_of
from pcpd.gate.knock import MCP_ROUTE, OPEN_ROUTES
from pcpd.index.dump import dump
from pcpd.ledger import audit
from tests.doors import Doors
from tests.waiting import LONGEST_S, until

V1 = "/vault/v1"
FOR_AGENTS = {
    f"{V1}/context", f"{V1}/search", f"{V1}/pages", f"{V1}/pages/{{path}}", f"{V1}/recent", f"{V1}/links",
    f"{V1}/links/{{path}}", f"{V1}/history/{{path}}", f"{V1}/show/{{path}}", f"{V1}/diff", f"{V1}/move",
    f"{V1}/restore", f"{V1}/audit", f"{V1}/events", f"{V1}/proposals", f"{V1}/proposals/{{id}}",
    "/metrics", "/openapi.json",
}  # fmt: skip
"""What a token opens; what it then gives is decided by grants. All else is for the person."""
QUERY = {f"{V1}/search": "?q=heat", f"{V1}/show/{{path}}": "?rev=HEAD", f"{V1}/diff": "?path=boiler&old=HEAD"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def templates(served: Served) -> list[tuple[str, str]]:
    """Each method of each route, as its path is written in the program."""
    found = [
        (method, route.path_format or "")
        for route in iter_route_contexts(routes(served).routes)
        for method in route.methods or ()
    ]
    heads = [("HEAD", path) for method, path in found if method == "GET"]
    return sorted({*found, *heads, ("GET", MCP_ROUTE), ("POST", MCP_ROUTE), ("DELETE", MCP_ROUTE)})


def filled(template: str) -> str:
    """A target that reaches the route."""
    return template.replace("{path}", "boiler").replace("{id}", "boiler") + QUERY.get(template, "")


def test_the_table_is_the_program_s(doors: Doors) -> None:
    """It has every route that the app knows, so that none escapes the tests below."""
    table = templates(doors.served)
    assert len(table) >= 40
    known = methods_of(routes(doors.served).routes)
    for pattern, methods in known:
        reached = {method for method, path in table if pattern.fullmatch(filled(path).partition("?")[0])}
        assert reached >= methods, pattern.pattern


def test_every_route_wants_a_token_on_tcp_but_for_a_closed_list(doors: Doors) -> None:
    """With every method, whether the route has it or not, and whether the page is there or not."""
    assert {f"{V1}/health"} == OPEN_ROUTES
    paths = {path for _, path in templates(doors.served)}
    assert paths >= OPEN_ROUTES
    absent = {
        f"{V1}/pages/absent",
        "/",
        "/nowhere",
        f"{V1}/health/",
        "/docs",
        "/api/v1/topics",
        "/r/x",
        "/s/x",
    }
    for path in sorted((paths | absent) - OPEN_ROUTES):
        for method in METHODS:
            answer = doors.ask(method, filled(path), tcp=True)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
            assert method == "HEAD" or answer.code == "http.no-token"
    for method in METHODS:
        assert doors.ask(method, f"{V1}/health", tcp=True).status == (
            200 if method in {"GET", "HEAD"} else 405
        )


def test_the_mcp_endpoint_wants_a_token_of_the_person_too(doors: Doors) -> None:
    """On their own socket as well: a tool acts for a principal, and the person is none that calls tools."""
    for method in METHODS:
        assert doors.ask(method, MCP_ROUTE).status == 401
    assert doors.vault("GET", "context").status == 200


FOREIGN: list[tuple[dict[str, str], int, str]] = [
    ({"Host": "evil.example"}, 421, "http.foreign-host"),
    ({"Host": "localhost.evil.example:7717"}, 421, "http.foreign-host"),
    ({"Origin": "null"}, 403, "http.foreign-origin"),
    ({"Origin": "http://localhost:3000"}, 403, "http.foreign-origin"),
    ({"Sec-Fetch-Site": "cross-site"}, 403, "http.foreign-origin"),
    ({"Sec-Fetch-Site": "same-site"}, 403, "http.foreign-origin"),
    ({"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}, 403, "http.foreign-origin"),
    ({"Access-Control-Request-Method": "PUT"}, 403, "http.foreign-origin"),
]


@pytest.mark.parametrize("tcp", [True, False])
def test_every_route_refuses_foreign_hosts_and_web_pages(doors: Doors, *, tcp: bool) -> None:
    """With and without a token, before anything is read or changed, and with no word that lets a page go on."""
    before = (doors.opened.root / "boiler.md").read_bytes()
    token = {"Authorization": f"Bearer {doors.token()}"}
    doors.opened.agent("agent:claude", "read", "write")
    for number, (method, path) in enumerate(templates(doors.served)):
        for headers, status, code in FOREIGN:
            sent = {**headers, **(token if number % 2 else {})}
            answer = doors.ask(method, filled(path), headers=sent, tcp=tcp)
            assert answer.status == status, (method, path, headers)
            assert method == "HEAD" or answer.code == code
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (doors.opened.root / "boiler.md").read_bytes() == before


def test_simple_posts_of_a_web_page_do_nothing(doors: Doors) -> None:
    """What a form or a beacon can send, should a browser name neither page nor site; not even with a token."""
    token = {"Authorization": f"Bearer {doors.token()}"}
    for path in sorted({path for method, path in templates(doors.served) if method == "POST"}):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            for headers, tcp in (({}, False), (token, False), (token, True)):
                if path == MCP_ROUTE and not headers:
                    continue
                sent = {"Content-Type": kind, **headers}
                answer = doors.ask("POST", path, body=b'{"path": "boiler", "to": "x"}', headers=sent, tcp=tcp)
                assert (answer.status, answer.code) == (415, "http.media-type"), (path, kind)
    assert (doors.opened.root / "boiler.md").exists()


@pytest.mark.parametrize("tcp", [True, False])
@pytest.mark.parametrize(
    "shown",
    ["Bearer pcp_00000000_" + "x" * 43, "Bearer", "Bearer ", "Basic {0}", "bearer", "{0}", "Bearer {0} {0}",
     "Bearer {0}, Bearer {0}", "Bearer {0}x", "Token {0}", "x" * 5000],
)  # fmt: skip
def test_what_is_no_valid_token_opens_nothing(doors: Doors, shown: str, *, tcp: bool) -> None:
    """Nor does it make anybody the person, where no token would: whoever shows one is judged by it."""
    headers = {"Authorization": shown.format(doors.token())}
    for path in (f"{V1}/status", f"{V1}/pages/boiler", f"{V1}/context", MCP_ROUTE):
        answer = doors.ask("GET", path, headers=headers, tcp=tcp)
        assert (answer.status, answer.code) == (401, "token.refused")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


def test_two_tokens_are_none(doors: Doors) -> None:
    """Not the first, not the last, not twice the same: a request has one caller."""
    with socket.create_connection(("127.0.0.1", doors.port), LONGEST_S) as link:
        for second in (doors.token(), "x"):
            head = (
                f"GET {V1}/context HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {doors.token()}\r\n"
            )
            link.sendall(f"{head}authorization: Bearer {second}\r\n\r\n".encode())
            assert link.recv(65536).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("principal", ["agent:claude", "human:sam", "service:backup"])
def test_a_token_opens_the_routes_for_agents_alone(doors: Doors, principal: str) -> None:
    """Also one for the controller's own name, on both ways. Every refusal is an audit row under its name."""
    principal = doors.opened.memory.context.controller if principal.startswith("human") else principal
    headers = {"Authorization": f"Bearer {doors.token(principal)}"}
    doors.opened.agent(principal, "read", "propose", "write")
    before = (doors.opened.root / "boiler.md").read_bytes()
    table = [
        (method, path) for method, path in templates(doors.served) if path not in {*OPEN_ROUTES, MCP_ROUTE}
    ]
    closed = [(method, path) for method, path in table if path not in FOR_AGENTS]
    assert {path for _, path in table} >= FOR_AGENTS
    for number, (method, path) in enumerate(closed):
        body: dict[str, str] | None = {} if method in {"POST", "PATCH"} else None
        answer = doors.ask(method, filled(path), headers=headers, body=body, tcp=bool(number % 2))
        assert answer.status == 403, (method, path)
        assert method == "HEAD" or answer.code == "http.person-only", (method, path)
    rows = audit.rows(
        doors.opened.memory.ledger, audit.Filter(principal=principal, channel="http"), limit=1000
    )
    assert [row.outcome for row in rows] == ["denied"] * len(closed)
    assert len({row.action for row in rows}) >= len(closed) // 2 - 1
    for method, path in table:
        if path in FOR_AGENTS and method in {"GET", "HEAD"}:
            assert looked_at(doors, method, filled(path), headers) not in {401, 403}, (method, path)
    assert (doors.opened.root / "boiler.md").read_bytes() == before


def looked_at(doors: Doors, method: str, target: str, headers: dict[str, str] | None = None) -> int:
    """Asks over TCP, or as the person; reads what is answered, but no stream of events, and gives the status."""
    if headers is None:
        if target.startswith(f"{V1}/events"):
            return 200
        return doors.ask(method, target).status
    connection = http.client.HTTPConnection("127.0.0.1", doors.port, timeout=LONGEST_S)
    try:
        connection.request(method, target, headers=headers)
        response = connection.getresponse()
        if response.getheader("content-type", "").startswith("text/event-stream"):
            assert response.status == 200
        else:
            response.read()
        return response.status
    finally:
        connection.close()


def state(doors: Doors) -> Iterator[object]:
    """All that a vault, its index, its history and its credentials are."""
    root, memory = doors.opened.root, doors.opened.memory
    for file in sorted(root.rglob("*")):
        if ".git" not in file.relative_to(root).parts:
            yield str(file), file.is_file() and file.read_bytes(), file.stat().st_mtime_ns
    for ask in (["rev-parse", "HEAD"], ["for-each-ref"], ["status", "--porcelain"], ["count-objects", "-v"]):
        yield subprocess.run(["git", "-C", root, *ask], check=True, capture_output=True, text=True).stdout
    yield (root / ".git/index").read_bytes()
    with memory.index.reader() as conn:
        yield list(dump(conn))
    yield doors.vault("GET", "tokens").json()
    yield doors.vault("GET", "grants").json()
    yield (memory.place.config / "access.yaml").read_bytes()


def is_at_rest(doors: Doors) -> bool:
    """Whether history has all that is on disk."""
    git = ["git", "-C", str(doors.opened.root)]
    head = subprocess.run([*git, "rev-parse", "-q", "--verify", "HEAD"], check=False, capture_output=True)
    changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True)
    return head.returncode == 0 and not changed.stdout


@pytest.mark.parametrize("by", ["the person", "an agent", "an agent without a grant"])
def test_looking_changes_nothing(make_doors: Callable[..., Doors], by: str) -> None:
    """No file, no time of one, no row of the index, nothing in git, no token: whatever is asked with GET or HEAD."""
    doors = make_doors(
        {"boiler.md": "---\ntitle: Boiler\n---\nHeat. See [[pump]].\n", "pump.md": "A heat pump.\n"}
    )
    until(lambda: is_at_rest(doors))
    headers = None
    if by != "the person":
        doors.opened.agent("agent:claude", *(["read"] if by == "an agent" else []))
        headers = {"Authorization": f"Bearer {doors.token()}"}
    doors.opened.agent("agent:other", "read")
    before = list(state(doors))
    for method, path in templates(doors.served):
        if method in {"GET", "HEAD"}:
            assert looked_at(doors, method, filled(path), headers) < 500, path
    for odd in (
        f"{V1}/pages/absent",
        f"{V1}/pages/.git/config",
        f"{V1}/search?q=%00",
        f"{V1}/pages/boiler?outline",
    ):
        assert looked_at(doors, "GET", odd, headers) < 500, odd
    assert list(state(doors)) == before


def test_head_is_get_without_its_body(make_doors: Callable[..., Doors]) -> None:
    """Status and headers are the same, and the connection goes on."""
    doors = make_doors({"boiler.md": "Heat.\n"})
    for method, path in templates(doors.served):
        if (
            method != "GET"
            or path in {MCP_ROUTE, f"{V1}/events", f"{V1}/status"}
            or path.endswith("/metrics")
        ):
            continue
        got, head = doors.ask("GET", filled(path)), doors.ask("HEAD", filled(path))
        assert head.data == b""
        assert (head.status, head.headers) == (got.status, got.headers), path
    stream = doors.ask("HEAD", f"{V1}/events")
    assert (stream.status, stream.data) == (200, b"")
    assert stream.headers["content-type"].startswith("text/event-stream")


def test_every_answer_is_kept_by_nobody_and_runs_nowhere(doors: Doors) -> None:
    """A page of the vault may hold anything, also what a browser would run; refusals and MCP are no exception."""
    doors.opened.save("page.md", "<script>alert(1)</script>\n")
    token = {"Authorization": f"Bearer {doors.token()}"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {**token, "Accept": "application/json, text/event-stream"}
    for answer in (
        doors.vault("GET", "pages/page"), doors.vault("GET", "pages/absent"), doors.vault("GET", "health", tcp=True),
        doors.vault("GET", "status", tcp=True), doors.vault("GET", "status", headers={"Host": "evil.example"}),
        doors.vault("POST", "health"), doors.ask("GET", "/nowhere"), doors.ask("GET", MCP_ROUTE, headers=token),
        doors.ask("POST", MCP_ROUTE, body=hello, headers=accept, tcp=True),
        doors.vault("GET", "status", headers=token),
    ):  # fmt: skip
        told = answer.headers
        assert told["cache-control"] == "no-store"
        assert told["x-content-type-options"] == "nosniff"
        assert told["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
        assert not [name for name in told if name.startswith("access-control") or name == "set-cookie"]
        assert not told.get("content-type", "").startswith("text/html")

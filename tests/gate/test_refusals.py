"""What is refused at a door leaves its trace in the audit trail, and tells nothing of what there is."""

from collections.abc import Callable
from typing import Any

import pytest

from pcpd.ledger import audit, tokens
from pcpd.ledger.audit import AuditRow
from pcpd.policy.grants import CATEGORIES, Grant
from tests.doors import Answer, Doors

V1 = "/vault/v1"


def rows(doors: Doors, **wanted: Any) -> list[AuditRow]:
    """The audit trail, oldest first."""
    return audit.rows(doors.opened.memory.ledger, audit.Filter(**wanted), limit=1000)[::-1]


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("path", "channel"),
    [(f"{V1}/pages/boiler", "http"), ("/mcp", "mcp"), (f"{V1}/status", "http"), ("/", "http")],
)
def test_each_refused_knock_is_a_row(doors: Doors, path: str, channel: str) -> None:
    """With the reason, and no word of what the stranger said; whose token was taken back is named."""
    known = doors.token("agent:claude")
    revoked = doors.token("agent:gone")
    tokens.revoke(doors.opened.memory.ledger, "agent:gone")
    refused: list[tuple[dict[str, str], str, str]] = [
        ({}, "http.no-token", "unknown"), (bearer("pcp_00000000_" + "x" * 43), "token.refused", "unknown"),
        (bearer(revoked), "token.refused", "agent:gone"), ({"Host": "zyx.example"}, "http.foreign-host", "unknown"),
        ({"Origin": "http://zyx.example"}, "http.foreign-origin", "unknown"),
        ({**bearer(known), "Content-Type": "text/plain"}, "http.media-type", "agent:claude"),
    ]  # fmt: skip
    for headers, code, _ in refused:
        assert doors.ask("POST", path, headers=headers, body=b"zyx", tcp=True).status >= 400, code
    noted = [(row.action, row.channel, row.outcome, row.principal) for row in rows(doors, action="knock")]
    assert noted == [("knock", channel, code, principal) for _, code, principal in refused]
    assert "zyx" not in str(rows(doors))


def test_a_flood_of_knocks_is_few_rows(doors: Doors) -> None:
    """Strangers cannot fill the ledger."""
    for _ in range(50):
        doors.vault("GET", "status", tcp=True)
    assert len(rows(doors)) == 1


@pytest.mark.parametrize(
    ("call", "options", "code", "action"),
    [
        ("GET status", {}, "http.person-only", "status"),
        ("POST tokens", {"body": {"principal": "agent:claude"}}, "http.person-only", "create_token"),
        ("POST grants", {"body": {}}, "http.person-only", "grant"),
        ("GET search?limit=0", {}, "http.malformed", "search"),
        ("PATCH pages/boiler", {"body": {"edits": 1}}, "http.malformed", "edit_page"),
        ("PUT pages/boiler", {"body": b"x", "headers": {"If-Match": "*"}}, "http.malformed", "write_page"),
        ("DELETE pages/boiler", {"headers": {"Idempotency-Key": "k" * 201}}, "http.malformed", "remove_page"),
        ("GET nowhere", {}, "http.no-route", "request"), ("POST search", {}, "http.wrong-method", "search"),
        ("GET pages/absent", {}, "page.not-found", "read_page"),
        ("POST restore", {"body": {"path": "boiler", "rev": "HEAD"}}, "access.denied", "restore"),
        ("GET diff", {}, "http.malformed", "diff"),
    ],
)  # fmt: skip
def test_each_refused_call_of_an_agent_is_one_row(
    doors: Doors, call: str, options: dict[str, Any], code: str, action: str
) -> None:
    """Whether an act refused it or no act was reached; the person's slips are no rows."""
    method, route = call.split(" ")
    headers = {**bearer(doors.token()), **options.get("headers", {})}
    answer = doors.vault(method, route, **{**options, "headers": headers}, tcp=True)
    assert answer.code == code
    (row,) = rows(doors, channel="http")
    outcome = "denied" if answer.status == 403 else code
    assert (row.principal, row.channel, row.action, row.outcome) == ("agent:claude", "http", action, outcome)
    doors.vault(method, route, **options)
    assert len(rows(doors, channel="http")) == 1


PRIVATE = "---\npartition: private\n---\n# Secret\n\nSee [[other]].\n"
PLACES = ["secret", "Über Uns", "UPPER", "a.b", "deep/er/secret", "end.", "con"]


def told(answer: Answer, *names: str) -> tuple[int, dict[str, str], str]:
    """All that an answer says, but for the name that was asked for."""
    text = answer.data.decode()
    for name in names:
        text = text.replace(name, "NAME")
    quiet = {"content-length"}
    return answer.status, {key: value for key, value in answer.headers.items() if key not in quiet}, text


@pytest.mark.parametrize("rights", [(), ("read",), ("read", "write"), ("write",)])
@pytest.mark.parametrize("name", PLACES)
def test_a_page_outside_the_grants_is_answered_like_one_that_is_not_there(
    make_doors: Callable[..., Doors], name: str, rights: tuple[str, ...]
) -> None:
    """By every route and method, whatever the page is called: same status, same headers, same words."""
    doors = make_doors({f"{name}.md": PRIVATE, "boiler.md": "Gas.\n"})
    twin = f"{name[:-1]}{'w' if name[-1] != '.' else 'q.'}" if name != "con" else "prn"
    if rights:
        doors.opened.memory.access.grant(Grant("agent:claude", ("personal",), CATEGORIES, rights))
    headers = bearer(doors.token())
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "pages/{}", {}), ("HEAD", "pages/{}", {}), ("GET", "pages/{}.md", {}), ("GET", "pages/{}?outline", {}),
        ("GET", "pages/{}?section=Secret", {}), ("GET", "links/{}", {}), ("GET", "history/{}", {}),
        ("GET", "show/{}?rev=HEAD", {}), ("GET", "diff?path={}&old=HEAD", {}),
        ("DELETE", "pages/{}", {}), ("DELETE", "pages/{}", {"headers": {"If-Match": '"0"'}}),
        ("PATCH", "pages/{}", {"body": {"edits": [{"op": "append", "value": "x"}]}}),
        ("PUT", "pages/{}", {"body": b"---\npartition: private\n---\nx"}),
        ("PUT", "pages/{}", {"body": b"---\npartition: private\n---\nx", "headers": {"If-Match": '"0"'}}),
        ("POST", "move", {"body": {"path": "{}", "to": "elsewhere"}}),
        ("POST", "restore", {"body": {"path": "{}", "rev": "HEAD"}}),
        ("GET", "search?q=%22{}%22", {}), ("GET", "pages?folder={}", {}),
    ]  # fmt: skip
    for method, route, options in calls:
        said = []
        for each in (name, twin):
            asked = dict(options)
            if isinstance(options.get("body"), dict):
                asked["body"] = {key: value.replace("{}", each) if isinstance(value, str) else value
                                 for key, value in options["body"].items()}  # fmt: skip
            asked["headers"] = {**headers, **options.get("headers", {})}
            raw = each.replace(" ", "%20").replace("Ü", "%C3%9C")
            said.append(told(doors.vault(method, route.replace("{}", raw), **asked, tcp=True), each, raw))
        assert said[0] == said[1], (method, route)
    assert (doors.opened.root / f"{name}.md").read_text() == PRIVATE


def test_closed_folders_are_answered_alike_whether_something_is_there_or_not(doors: Doors) -> None:
    """Of git, of Obsidian and of PCP itself, for agents and for the person."""
    headers = bearer(doors.token())
    doors.opened.agent("agent:claude", "read", "write")
    for present in (".git/config", ".pcp/context.yaml", ".git/HEAD"):
        absent = present[:-1] + "_"
        for caller in (headers, {}):
            for method, body in (("GET", None), ("PUT", b"x"), ("DELETE", None), ("PATCH", {"edits": []})):
                said = [
                    told(doors.vault(method, f"pages/{each}", headers=caller, body=body), each)
                    for each in (present, absent)
                ]
                assert said[0] == said[1], (present, method)
                assert said[0][0] in {404, 422}

"""A token that others have: it is good for its grants on this machine, until it is revoked; then it betrays itself."""

from pcpd.ledger import audit
from tests.doors import Doors


def test_a_stolen_token_ends_at_once_on_every_way_and_its_use_is_told(doors: Doors) -> None:
    """Over HTTP, over MCP and through the relay; the trail names whose it was, and shows what it was used for."""
    doors.opened.agent("agent:claude", "read")
    token, other = doors.token(), doors.token()
    headers = {"Authorization": f"Bearer {token}"}
    assert doors.vault("GET", "pages/boiler", headers=headers, tcp=True).status == 200
    (stolen,) = [
        each for each in doors.vault("GET", "tokens").json()["tokens"] if each["id"][4:] == token[4:12]
    ]
    assert doors.vault("POST", "revoke", body={"token": stolen["id"]}).json()["tokens"] == 1
    assert doors.vault("GET", "pages/boiler", headers=headers, tcp=True).code == "token.refused"
    assert doors.vault("GET", "pages/boiler", headers=headers).code == "token.refused"
    assert doors.ask("GET", "/mcp", headers=headers, tcp=True).status == 401
    relayed = doors.relay(principal="agent:claude", token=token)
    assert relayed.hear()["error"]["code"] == "token.refused"
    told = [
        (row.principal, row.action, row.channel, row.outcome)
        for row in audit.rows(doors.opened.memory.ledger, after=0)
    ]
    assert told[0] == ("agent:claude", "read_page", "http", "ok")
    knocks = [each for each in told[1:] if each[2] != "management"]
    assert {each[:2] + each[3:] for each in knocks} == {("agent:claude", "knock", "token.refused")}
    assert {each[2] for each in knocks} == {"http", "mcp"}
    fresh = {"Authorization": f"Bearer {other}"}
    assert doors.vault("GET", "pages/boiler", headers=fresh, tcp=True).status == 200


def test_a_token_opens_neither_consent_nor_upkeep(doors: Doors) -> None:
    """Whoever has one can make no other, widen no grant, read no settings and end no owner, on the socket either."""
    doors.opened.agent("agent:claude", "read", "propose", "write", "review", "forget", "record")
    headers = {"Authorization": f"Bearer {doors.token()}"}
    for method, route, body in (
        ("POST", "tokens", {"principal": "agent:evil"}),
        ("GET", "tokens", None),
        ("POST", "grants", {"principal": "agent:claude", "rights": ["read"], "sensitivity": "sensitive"}),
        ("GET", "grants", None),
        ("POST", "revoke", {"principal": "agent:other"}),
        ("GET", "status", None),
        ("POST", "accept", {}),
        ("POST", "rebuild", None),
        ("POST", "handover", {"version": "999"}),
        ("GET", "audit/proof", None),
    ):
        for tcp in (True, False):
            answer = doors.vault(method, route, body=body, headers=headers, tcp=tcp)
            assert (answer.status, answer.code) == (403, "http.person-only"), route
    assert doors.handed_over == []
    assert doors.vault("GET", "tokens").json()["tokens"][0]["principal"] == "agent:claude"
    assert len(doors.vault("GET", "tokens").json()["tokens"]) == 1

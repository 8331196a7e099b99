"""Refused greetings at the relays' door are in the audit trail, without what was said."""

from pcpd.ledger import audit, tokens
from tests.doors import Doors


def test_refused_greetings_are_written_down(doors: Doors) -> None:
    """A stranger is unknown, whatever it calls itself; a revoked or borrowed token names whose it is."""
    ledger = doors.opened.memory.ledger
    revoked, borrowed = doors.token("agent:old"), doors.token("agent:other")
    tokens.revoke(ledger, "agent:old")
    for greeting in (
        {"principal": "agent:made-up", "token": "pcp_00000000_" + "x" * 43},
        {"principal": "agent:old", "token": revoked},
        {"principal": "agent:claude", "token": borrowed},
        {"token": 5},
    ):
        relayed = doors.relay(**greeting)
        assert "error" in relayed.hear()
        assert relayed.hear() is None
    found = audit.rows(ledger, after=0)
    assert [(row.principal, row.outcome, row.channel, row.action) for row in found] == [
        ("unknown", "token.refused", "mcp", "knock"),
        ("agent:old", "token.refused", "mcp", "knock"),
        ("agent:other", "token.refused", "mcp", "knock"),
        ("unknown", "relay.greeting", "mcp", "knock"),
    ]
    assert "made-up" not in repr(found)


def test_whoever_connects_and_says_nothing_was_not_refused(doors: Doors) -> None:
    """As clients do that look whether somebody listens."""
    relayed = doors.relay()
    relayed.link.shutdown(1)
    assert relayed.hear() is None
    assert audit.rows(doors.opened.memory.ledger) == []

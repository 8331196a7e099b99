"""Who can do what, since when and until when, in one answer."""

from datetime import UTC, datetime

from pcpd.ledger import pauses
from pcpd.memory import consent, read, standing
from pcpd.policy.grants import Grant
from tests.vaults import Opened


def test_everybody_with_a_grant_a_token_or_a_pause_is_shown(opened: Opened) -> None:
    """With what keeps each from doing what it may; tokens without their secrets."""
    made = consent.create_token(opened.memory, "agent:a", label="laptop")
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"], until="2099-01-01"))
    consent.create_token(opened.memory, "agent:b")
    ended = Grant("agent:c", ("personal",), ("semantic",), ("read",), until=datetime(2020, 1, 1, tzinfo=UTC))
    opened.memory.access.grant(ended)
    opened.memory.brakes.pause("agent:d", "2026-01-01T00:00:00Z")
    read.list_pages(opened.memory, opened.agent("agent:a"))
    now = standing.access(opened.memory)
    a, b, c, d = now.principals
    assert [each.principal for each in now.principals] == ["agent:a", "agent:b", "agent:c", "agent:d"]
    (grant,) = a.grants
    assert (grant.rights, grant.until, grant.has_ended) == (("read",), "2099-01-01T00:00:00Z", False)
    assert grant.since is not None
    assert [(each.id, each.label) for each in a.tokens] == [(made["id"], "laptop")]
    assert (a.last_used is not None, a.notes) == (True, ())
    assert b.notes == ("no grant: it can come in and sees nothing",)
    assert c.notes == ("every grant has ended", "no token: it cannot come in")
    assert d.paused_since == "2026-01-01T00:00:00Z"
    assert str(made["token"]) not in repr(now)
    assert len(now.notices) == 1


def test_a_pause_of_all_shows_with_each_and_takes_no_grant_away(opened: Opened) -> None:
    """What it may is still shown, since that is what comes back."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    opened.memory.brakes.pause(pauses.EVERYBODY, "2026-01-01T00:00:00Z")
    (a,) = standing.access(opened.memory).principals
    assert (a.principal, a.paused_since, len(a.grants)) == ("agent:a", "2026-01-01T00:00:00Z", 1)


def test_a_removed_principal_and_a_bad_file_are_told(opened: Opened) -> None:
    """The last good grants are shown with what is wrong."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    opened.memory.access.path.write_text("grants: {\n")
    now = standing.access(opened.memory)
    assert len(now.principals[0].grants) == 1
    assert "stays in force" in now.notices[0]

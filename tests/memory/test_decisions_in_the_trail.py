"""What the person decides about agents stands in the audit trail: by a command, and by an editor."""

from collections.abc import Callable

import pytest

from pcpd.errors import NotFound, Usage
from pcpd.ledger import granted
from pcpd.memory import consent, trail
from pcpd.memory.memory import Caller
from pcpd.memory.trail import AuditEntry, AuditQuery
from pcpd.policy.decide import Principal
from tests.vaults import Opened

MANAGED = AuditQuery(channel="management")


def decisions(opened: Opened) -> list[AuditEntry]:
    """The rows of decisions, oldest first, as the person sees them."""
    return list(trail.rows(opened.memory, opened.person, MANAGED).rows[::-1])


def by_hand(opened: Opened, text: str) -> None:
    """Writes access.yaml as an editor does."""
    path = opened.memory.access.path
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def line(name: str) -> str:
    """A grant in access.yaml."""
    return f'  - {{principal: "{name}", partitions: [personal], categories: [semantic], rights: [read]}}\n'


def test_tokens_and_grants_given_and_taken_back_have_a_row_each(opened: Opened) -> None:
    """The controller's, by the channel `management`, with whom it is about and what came of it."""
    made = consent.create_token(opened.memory, "agent:a")
    wish = consent.Wish("agent:a", ["read"])
    consent.grant(opened.memory, wish)
    consent.grant(opened.memory, wish)
    consent.take_back(opened.memory, wish)
    consent.revoke(opened.memory, principal=None, token=str(made["id"]))
    rows = decisions(opened)
    assert {row.principal for row in rows} == {opened.memory.context.controller}
    assert [(row.action, row.outcome, row.about, dict(row.counts)) for row in rows] == [
        ("create_token", "ok", ("agent:a", made["id"]), {}),
        ("grant", "ok", ("agent:a",), {"granted": 1}),
        ("grant", "ok", ("agent:a",), {"granted": 0}),
        ("take_back_grant", "ok", ("agent:a",), {"taken_back": 1}),
        ("revoke", "ok", (made["id"], "agent:a"), {"taken_back": 0, "tokens": 1}),
    ]
    assert all(row.paths == () for row in rows)
    assert str(made["token"]) not in str(rows)


def test_what_was_refused_has_its_row_and_keeps_no_stray_name(opened: Opened) -> None:
    """A slip of the pen is told by its code; what was typed is not written down."""
    with pytest.raises(NotFound):
        consent.revoke(opened.memory, principal="agent:nobody", token=None)
    with pytest.raises(Usage):
        consent.grant(opened.memory, consent.Wish("x" * 50, ["read"]))
    rows = decisions(opened)
    assert [(row.action, row.outcome, row.about) for row in rows] == [
        ("revoke", "consent.absent", ()),
        ("grant", "consent.principal", ()),
    ]


def test_an_edit_by_hand_is_seen_once_with_whom_it_concerns(opened: Opened) -> None:
    """What was added and removed is counted; a look that finds nothing new adds nothing."""
    by_hand(opened, "grants:\n" + line("agent:a") + line("agent:b"))
    assert [(row.action, row.about, dict(row.counts)) for row in decisions(opened)] == [
        ("edit_access", ("agent:a", "agent:b"), {"granted": 2, "taken_back": 0})
    ]
    by_hand(opened, "grants:\n" + line("agent:b"))
    assert len(decisions(opened)) == 2
    assert decisions(opened)[-1].about == ("agent:a",)
    assert dict(decisions(opened)[-1].counts) == {"granted": 0, "taken_back": 1}


def test_a_bad_edit_is_told_once_by_its_code(opened: Opened) -> None:
    """What it said is not quoted; the mended file is told again."""
    by_hand(opened, "grants:\n" + line("agent:a"))
    decisions(opened)
    by_hand(opened, "grants: {secret word}\n")
    decisions(opened)
    opened.memory.grants()
    rows = decisions(opened)
    assert [row.outcome for row in rows] == ["ok", "access.invalid"]
    assert "secret" not in str(rows)


def test_an_edit_by_hand_before_a_command_is_told_as_one(opened: Opened) -> None:
    """The command's own grant is not told twice."""
    by_hand(opened, "grants:\n" + line("agent:a"))
    consent.grant(opened.memory, consent.Wish("agent:b", ["read"]))
    rows = decisions(opened)
    assert sorted((row.action, row.about) for row in rows) == [
        ("edit_access", ("agent:a",)),
        ("grant", ("agent:b",)),
    ]


def test_an_edit_while_no_owner_ran_is_told_at_the_next_start(opened: Opened) -> None:
    """A restart alone tells nothing."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    opened.restart()
    assert [row.action for row in decisions(opened)] == ["grant"]
    opened.close()
    by_hand_path = opened.base / "config" / "v" / "access.yaml"
    by_hand_path.write_text("grants:\n" + line("agent:b"))
    opened.open()
    assert decisions(opened)[-1].about == ("agent:a", "agent:b")


def test_an_agent_under_the_controllers_name_sees_no_decision(opened: Opened) -> None:
    """A token never makes a controller, so the trail of decisions stays closed to it."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    caller = Caller(Principal(opened.memory.context.controller), "mcp")
    assert trail.rows(opened.memory, caller, MANAGED).rows == ()
    rows = trail.rows(opened.memory, caller, AuditQuery()).rows
    assert {row.action for row in rows} == {"read_audit"}


def test_decisions_count_for_nothing_in_the_sum_of_what_was_read(opened: Opened) -> None:
    """The sum is about pages; asked for by channel, they are there."""
    consent.create_token(opened.memory, "agent:a")
    assert trail.summary(opened.memory, opened.person, AuditQuery()).principals == ()
    assert trail.summary(opened.memory, opened.person, MANAGED).principals != ()


def test_since_when_a_grant_is_there_outlives_the_owner(make_opened: Callable[..., Opened]) -> None:
    """One that goes and comes back begins anew; the others keep their time."""
    opened = make_opened().open()
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    before = granted.since(opened.memory.ledger)
    assert len(before) == 1
    opened.restart()
    consent.grant(opened.memory, consent.Wish("agent:b", ["read"]))
    now = granted.since(opened.memory.ledger)
    assert len(now) == 2
    assert before.items() <= now.items()
    consent.revoke(opened.memory, principal="agent:a", token=None)
    assert len(granted.since(opened.memory.ledger)) == 1

"""Refused knocks leave a truthful trail, and a flood of them leaves a short one."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow
from pcpd.memory import strangers
from pcpd.memory.memory import Clock
from tests.vaults import Opened


@dataclass
class Hands:
    """A clock that the test moves."""

    opened: Opened
    passed_s: float = 0.0

    def __post_init__(self) -> None:
        start = self.opened.memory.clock.now().replace(hour=12, minute=0, second=0, microsecond=0)
        self.opened.memory.clock = Clock(
            lambda: start + timedelta(seconds=self.passed_s),
            self.opened.memory.clock.now_ns,
            lambda: 1000.0 + self.passed_s,
        )


@pytest.fixture
def hands(opened: Opened) -> Hands:
    """The clock of the open vault."""
    return Hands(opened)


def rows(opened: Opened) -> list[AuditRow]:
    """The trail, oldest first."""
    return audit.rows(opened.memory.ledger, after=0, limit=1000)


def told(opened: Opened) -> list[tuple[str, str, str, int]]:
    """Who, why, where and how many, of each row."""
    return [(row.principal, row.outcome, row.channel, row.counts["refused"]) for row in rows(opened)]


def test_the_first_of_a_kind_is_written_down_at_once(opened: Opened, hands: Hands) -> None:
    """Who proved nothing is `unknown`; whoever shows a revoked token is named."""
    strangers.note(opened.memory, "http.no-token", channel="http")
    strangers.note(opened.memory, "token.refused", principal="agent:old", channel="mcp")
    assert told(opened) == [
        ("unknown", "http.no-token", "http", 1),
        ("agent:old", "token.refused", "mcp", 1),
    ]
    first = rows(opened)[0]
    assert (first.action, first.at[11:], first.object_ids, first.categories) == ("knock", "12:00:00Z", (), ())


def test_a_flood_is_a_row_a_minute_that_counts_it(opened: Opened, hands: Hands) -> None:
    """Nothing is lost in the count, and the row tells when the last one came and over how long."""
    for _ in range(1000):
        strangers.note(opened.memory, "http.no-token", channel="http")
        hands.passed_s += 0.1
    assert told(opened) == [
        ("unknown", "http.no-token", "http", 1),
        ("unknown", "http.no-token", "http", 600),
    ]
    gathered = rows(opened)[1]
    assert gathered.at[11:] == "12:01:00Z"
    assert gathered.duration_ms == pytest.approx(59_900)
    strangers.write_all(opened.memory)
    assert sum(count for *_, count in told(opened)) == 1000


def test_kinds_are_gathered_apart_and_a_knock_brings_out_what_is_due_of_others(
    opened: Opened, hands: Hands
) -> None:
    """No thread wakes for it: whoever comes next does it."""
    for _ in range(3):
        strangers.note(opened.memory, "http.no-token", channel="http")
        strangers.note(opened.memory, "http.foreign-host", channel="http")
    hands.passed_s = 60
    strangers.note(opened.memory, "relay.greeting", channel="mcp")
    assert told(opened)[2:] == [
        ("unknown", "http.no-token", "http", 2),
        ("unknown", "http.foreign-host", "http", 2),
        ("unknown", "relay.greeting", "mcp", 1),
    ]
    assert rows(opened)[2].at[11:] == "12:00:00Z"


def test_whoever_looks_at_the_trail_sees_what_is_due(opened: Opened, hands: Hands) -> None:
    """After the minute, and not before it: looking often makes no more rows."""
    for _ in range(3):
        strangers.note(opened.memory, "http.no-token", channel="http")
    strangers.write_due(opened.memory)
    assert len(rows(opened)) == 1
    hands.passed_s = 60
    strangers.write_due(opened.memory)
    strangers.write_due(opened.memory)
    assert [count for *_, count in told(opened)] == [1, 2]


def test_what_waits_is_written_at_the_owners_end(opened: Opened) -> None:
    """No count is lost by a restart."""
    for _ in range(5):
        strangers.note(opened.memory, "http.no-token", channel="http")
    opened.restart()
    assert [count for *_, count in told(opened)] == [1, 4]


def test_kinds_are_bounded(opened: Opened, hands: Hands) -> None:
    """Many revoked tokens in one minute: beyond the bound they are counted together, and none is lost."""
    many = strangers.MOST_KINDS + 50
    for number in range(many):
        strangers.note(opened.memory, "token.refused", principal=f"agent:a{number}", channel="http")
    assert len(opened.memory.knocks.kinds) == strangers.MOST_KINDS + 1
    assert len(rows(opened)) == strangers.MOST_KINDS + 1
    strangers.write_all(opened.memory)
    assert sum(count for *_, count in told(opened)) == many
    hands.passed_s = 120
    strangers.note(opened.memory, "token.refused", principal="agent:new", channel="http")
    assert told(opened)[-1] == ("agent:new", "token.refused", "http", 1)
    assert len(opened.memory.knocks.kinds) == 1


def test_a_ledger_that_cannot_be_written_loses_no_count(opened: Opened, hands: Hands) -> None:
    """The stranger is refused all the same; what was not written is in the next row."""
    with opened.memory.ledger.reading() as connection:
        connection.execute("PRAGMA query_only = ON")
    strangers.note(opened.memory, "http.no-token", channel="http")
    with opened.memory.ledger.reading() as connection:
        connection.execute("PRAGMA query_only = OFF")
    strangers.note(opened.memory, "http.no-token", channel="http")
    assert told(opened) == []
    hands.passed_s = 60
    strangers.note(opened.memory, "http.no-token", channel="http")
    assert told(opened) == [("unknown", "http.no-token", "http", 3)]

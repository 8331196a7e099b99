"""Following changes: who may, and which audit rows that leaves."""

import pytest

from pcpd.errors import Denied
from pcpd.ledger import audit
from pcpd.memory import consent, following
from pcpd.memory.following import Given
from pcpd.memory.subscribe import Event, News
from tests.vaults import Opened


def rows(opened: Opened) -> list[tuple[str, str]]:
    """Action and outcome of each audit row, the oldest first."""
    return [(row.action, row.outcome) for row in audit.rows(opened.memory.ledger)[::-1]]


def event(path: str, category: str = "semantic") -> Event:
    """A page that changed."""
    return Event(f"id of {path}", "changed", path, "v", "2026-11-30T12:00:00Z", category)


def test_who_may_read_nothing_opens_no_stream(opened: Opened) -> None:
    """The right to write alone shows nothing either; each try is a row."""
    for caller in (opened.agent("agent:nobody"), opened.agent("agent:writes", "write")):
        with pytest.raises(Denied, match="may not read anything here"):
            following.open_stream(opened.memory, caller, None, limit=10)
    assert rows(opened) == [("open_events", "denied")] * 2


def test_an_open_stream_ends_with_its_callers_last_grant(opened: Opened) -> None:
    """Looks leave no rows of their own."""
    caller = opened.agent("agent:claude", "read")
    news = following.open_stream(opened.memory, caller, None, limit=10)
    assert following.next_news(opened.memory, caller, news.cursor, limit=10) == news
    consent.revoke(opened.memory, principal="agent:claude", token=None)
    assert following.next_news(opened.memory, caller, news.cursor, limit=10) is None
    assert [row for row in rows(opened) if row[0] != "revoke"] == [("open_events", "ok")]


def test_the_row_of_a_closed_stream_sums_up_what_it_gave(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every event is counted; so many pages are named at most."""
    monkeypatch.setattr(following, "PATHS_NOTED", 2)
    given = Given()
    given.add(News((event("a"), event("b", "episodic")), "cursor", is_reset=False))
    given.add(News((event("c"), event("a")), "cursor", is_reset=False))
    given.add(News((), "cursor", is_reset=True))
    following.close_stream(opened.memory, opened.agent(), given, seconds=3.9)
    (row,) = audit.rows(opened.memory.ledger)
    assert row.counts == {"events": 4, "resets": 1, "seconds": 3}
    assert row.categories == ("episodic", "semantic")
    assert sorted(audit.object_paths(opened.memory.ledger, row.object_ids).values()) == ["a", "b"]


def test_notices_leave_a_row_where_they_tell_something(opened: Opened) -> None:
    """A page that changed twice is named once; no notice is no row. What is subscribed to is not named at all."""
    caller = opened.agent("agent:claude", "read")
    following.note_notices(opened.memory, caller, [])
    following.note_notices(opened.memory, caller, [event("a"), event("a")])
    following.note_subscription(opened.memory, caller, resources=7)
    subscription, notices = audit.rows(opened.memory.ledger)
    assert (notices.action, notices.counts) == ("resource_updated", {"results": 1})
    assert (subscription.action, subscription.counts, subscription.object_ids) == (
        "subscribe",
        {"resources": 7},
        (),
    )

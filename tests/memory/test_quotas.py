"""An agent that runs wild is held; the person, other agents and what was not done count for nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from pcpd.errors import Conflict, Unavailable
from pcpd.ledger import audit
from pcpd.memory import read, write
from pcpd.memory.quotas import Limits, Quotas, Use
from pcpd.pages.authorship import Proposed
from tests.vaults import Opened

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def made(opened: Opened, name: str, caller: object = None, text: str = "text\n") -> None:
    """Writes a new page."""
    who = caller or opened.agent("agent:a")
    write.write_page(opened.memory, who, name, Proposed(text))  # type: ignore[arg-type]


def test_what_is_over_the_quota_is_refused_with_when_it_ends() -> None:
    """The oldest act leaves the hour first; what does not fit changes nothing."""
    quotas = Quotas(Limits(writes=2, proposals=0, bytes=100))
    quotas.take("a", Use(NOON, 1, 0, 10))
    quotas.take("a", Use(NOON + timedelta(minutes=10), 1, 0, 10))
    with pytest.raises(Unavailable) as refused:
        quotas.take("a", Use(NOON + timedelta(minutes=20), 1, 0, 10))
    assert (refused.value.code, refused.value.details) == ("quota.reached", {"until": "2026-01-01T13:00:00Z"})
    assert "quota_writes" in refused.value.hint
    quotas.take("a", Use(NOON + timedelta(minutes=60), 1, 0, 10))
    quotas.take("b", Use(NOON, 1, 0, 10))
    with pytest.raises(Unavailable):
        quotas.take("c", Use(NOON, 1, 0, 101))
    for _ in range(9):
        quotas.take("d", Use(NOON, 0, 1, 0))


def test_writes_are_counted_and_what_was_not_done_is_given_back(opened: Opened) -> None:
    """A refused write costs nothing; reads cost nothing; the person has no quota; the trail has the refusal."""
    opened.memory.quotas.limits = Limits(writes=2)
    agent = opened.agent("agent:a", "read", "write")
    made(opened, "one")
    with pytest.raises(Conflict):
        made(opened, "one")
    read.list_pages(opened.memory, agent)
    made(opened, "two")
    with pytest.raises(Unavailable) as refused:
        made(opened, "three")
    assert refused.value.code == "quota.reached"
    assert not (opened.root / "three.md").exists()
    row = audit.rows(opened.memory.ledger)[0]
    assert (row.action, row.outcome) == ("write_page", "quota.reached")
    made(opened, "three", opened.agent("agent:b", "read", "write"))
    for name in ("four", "five", "six"):
        made(opened, name, opened.person)


def test_bytes_and_proposals_have_quotas_of_their_own(opened: Opened) -> None:
    """Counted in the audit row, so that they are known after a restart."""
    opened.memory.quotas.limits = Limits(proposals=1, bytes=2_000)
    opened.agent("agent:a", "read", "write")
    made(opened, "one", text="x" * 1_000)
    assert audit.rows(opened.memory.ledger)[0].counts["bytes"] > 1_000
    with pytest.raises(Unavailable):
        made(opened, "two", text="x" * 1_000)
    humble = opened.agent("agent:b", "read", "propose")
    made(opened, "idea", humble)
    with pytest.raises(Unavailable):
        made(opened, "another", humble)


def test_a_restart_gives_nothing_back(make_opened: Callable[..., Opened]) -> None:
    """What was written within the hour still counts."""
    opened = make_opened().open()
    opened.agent("agent:a", "read", "write")
    made(opened, "one")
    made(opened, "two")
    made(opened, "idea", opened.agent("agent:b", "read", "propose"))
    opened.restart()
    opened.memory.quotas.limits = Limits(writes=2, proposals=1)
    with pytest.raises(Unavailable):
        made(opened, "three")
    with pytest.raises(Unavailable):
        made(opened, "another", opened.agent("agent:b"))

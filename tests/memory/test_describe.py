"""The description of the context: what a caller is, may do and may ask for, and nothing of anybody else."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from pcpd.ledger import audit
from pcpd.memory import consent, upkeep
from pcpd.memory.describe import GrantedPart, PartOfContext, describe
from pcpd.memory.memory import Caller
from pcpd.policy.decide import Principal
from pcpd.policy.grants import Grant
from tests.vaults import Opened

CONTEXT = """\
partitions:
  - {name: personal, description: "Everything by default", default: true}
  - {name: work, description: "What the work is about"}
  - {name: medical, description: "Nobody's business"}
profile: me
"""
FILES = {
    "me.md": "who I am\n",
    "a.md": "text\n",
    "b.md": "---\ntype: episodic\n---\ntext\n",
    "w.md": "---\npartition: work\n---\ntext\n",
    "m.md": "---\npartition: medical\n---\ntext\n",
    "s.md": "---\nsensitivity: sensitive\n---\ntext\n",
    "p.md": "---\nreview: {state: proposed}\n---\ntext\n",
    "club.md": "---\npartition: club\n---\ntext\n",
}


@pytest.fixture
def context(make_opened: Callable[..., Opened]) -> Opened:
    """A vault with several partitions, a profile and another agent."""
    opened = make_opened(quiet_s=3600, poll_s=3600).open()
    file = opened.root / ".pcp" / "context.yaml"
    head = file.read_text().partition("partitions:")[0]
    opened.save(".pcp/context.yaml", head + CONTEXT)
    for name, text in FILES.items():
        opened.save(name, text)
    upkeep.full_scan(opened.memory)
    consent.create_token(opened.memory, "agent:other")
    opened.memory.access.grant(Grant("agent:other", ("medical",), ("semantic",), ("read",)))
    return opened


def agent(opened: Opened, *grants: Grant) -> Caller:
    """An agent with these grants."""
    for grant in grants:
        opened.memory.access.grant(grant)
    return Caller(Principal("agent:claude"), "mcp")


def test_the_person_is_shown_all_of_it(context: Opened) -> None:
    """Listed partitions and those that pages use, with what is hidden counted."""
    told = describe(context.memory, context.person)
    assert told.is_controller
    assert told.principal == told.controller
    assert [part.name for part in told.partitions] == ["club", "medical", "personal", "work"]
    assert told.partitions[2].pages == {"episodic": 1, "profile": 1, "semantic": 3}
    assert (told.pages, told.profile, told.grants, told.how_to_ask) == (len(FILES), "me", (), ())


def test_an_agent_is_told_of_its_own_grants_and_of_the_partitions_in_them(context: Opened) -> None:
    """With the pages that it may read, by category, and until when."""
    until = datetime(2099, 1, 1, tzinfo=UTC)
    caller = agent(
        context,
        Grant("agent:claude", ("personal",), ("semantic", "profile"), ("read", "write"), until=until),
        Grant("agent:claude", ("work",), ("semantic",), ("propose",), "sensitive"),
    )
    told = describe(context.memory, caller)
    assert told.grants == (
        GrantedPart(
            ("read", "write"), ("personal",), ("semantic", "profile"), "normal", "2099-01-01T00:00:00Z"
        ),
        GrantedPart(("propose",), ("work",), ("semantic",), "sensitive", None),
    )
    assert told.partitions == (
        PartOfContext("personal", "Everything by default", True, {"profile": 1, "semantic": 1}),
        PartOfContext("work", "What the work is about", False, {}),
    )
    assert (told.pages, told.profile, told.features) == (2, "me", ("review",))
    assert told.controller == context.memory.context.controller
    assert told.context == context.memory.context.id


def test_nothing_is_said_of_other_principals_partitions_and_pages(context: Opened) -> None:
    """Neither by a name nor by a number."""
    caller = agent(context, Grant("agent:claude", ("personal",), ("semantic",), ("read",)))
    told = describe(context.memory, caller)
    said = repr(asdict(told))
    for word in ("medical", "Nobody", "work'", "club", "agent:other", "'me'", "episodic"):
        assert word not in said, word
    assert (told.pages, told.profile) == (1, None)


def test_an_agent_without_grants_learns_who_can_give_some_and_how(context: Opened) -> None:
    """The commands are those of `pcpd`, with its own name."""
    told = describe(context.memory, agent(context))
    assert (told.pages, told.partitions, told.grants, told.profile) == (0, (), (), None)
    assert "`pcpd grant agent:claude --rights read`" in told.how_to_ask[0]
    granted = describe(
        context.memory, agent(context, Grant("agent:claude", ("work",), ("semantic",), ("read",)))
    )
    assert "`pcpd grant agent:claude --rights read,write`" in granted.how_to_ask[0]
    assert "`pcpd revoke agent:claude`" in granted.how_to_ask[1]


def test_a_grant_that_has_ended_and_one_of_a_removed_principal_are_no_grants(context: Opened) -> None:
    """As everywhere."""
    ended = datetime(2020, 1, 1, tzinfo=UTC)
    caller = agent(context, Grant("agent:claude", ("personal",), ("semantic",), ("read",), until=ended))
    assert describe(context.memory, caller).grants == ()
    caller = agent(context, Grant("agent:claude", ("personal",), ("semantic",), ("read",)))
    assert len(describe(context.memory, caller).grants) == 1
    file = context.root / ".pcp" / "context.yaml"
    gone = "principals:\n  - {id: agent:claude, role: agent, status: removed}\n"
    context.save(".pcp/context.yaml", file.read_text().replace("principals:\n", gone))
    upkeep.full_scan(context.memory)
    assert describe(context.memory, caller).grants == ()


def test_who_asked_is_in_the_trail_with_counts(context: Opened) -> None:
    """No page is named: none is."""
    describe(context.memory, agent(context, Grant("agent:claude", ("work",), ("semantic",), ("read",))))
    (row,) = audit.rows(context.memory.ledger, audit.Filter(principal="agent:claude"))
    assert (row.action, row.outcome, row.object_ids) == ("describe_context", "ok", ())
    assert (row.categories, row.counts) == (("semantic",), {"pages": 1, "grants": 1})

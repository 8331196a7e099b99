"""Promise 6: agents see what they were granted, and it is written down."""

import random

import pytest

from pcpd.errors import NotFound
from pcpd.index import listing
from pcpd.index.visible import EVERYTHING
from pcpd.ledger import audit
from pcpd.memory import read
from pcpd.policy.grants import CATEGORIES, Grant
from tests.vaults import Opened
from tests.waiting import until

PARTITIONS = ("personal", "work", "club")


def fill(opened: Opened, draw: random.Random) -> int:
    """Saves pages of every kind; all hold the word zyxquartz."""
    for number in range(40):
        keys = {
            "partition": draw.choice(PARTITIONS),
            "type": draw.choice(CATEGORIES[:3]),
            "sensitivity": draw.choice(("normal", "sensitive")),
        }
        lines = [f"{key}: {value}" for key, value in keys.items() if draw.random() < 0.8]
        if draw.random() < 0.2:
            lines.append(f"review: {{state: {draw.choice(('proposed', 'approved', 'rejected'))}}}")
        if draw.random() < 0.2:
            lines.append("x_session: {mode: wild}")
        opened.save(
            f"n{number}.md", "---\n" + "\n".join(lines) + f"\n---\nzyxquartz [[n{draw.randrange(40)}]]\n"
        )
    return 40


def some_grant(draw: random.Random) -> Grant:
    """Any grant of reading, wide or narrow."""
    return Grant(
        "agent:claude",
        tuple(draw.sample(PARTITIONS, draw.randrange(1, 3))),
        tuple(draw.sample(CATEGORIES, draw.randrange(1, 5))),
        tuple(draw.sample(("read", "propose", "review"), draw.randrange(1, 4))),
        draw.choice(("normal", "sensitive")),
    )


@pytest.mark.parametrize("seed", range(4))
def test_search_list_links_and_read_show_exactly_the_pages_that_policy_allows(
    opened: Opened, seed: int, soak: int
) -> None:
    """Random pages and grants: every door of reading agrees with `policy.decide`, page by page."""
    draw = random.Random(seed)  # noqa: S311 - a vault that can be made again
    count = fill(opened, draw)
    until(lambda: read.list_pages(opened.memory, opened.person).total == count)
    with opened.memory.index.reader() as conn:
        rows = listing.listing(conn, EVERYTHING, limit=100).pages
    for _ in range(4 * soak):
        opened.memory.access.revoke("agent:claude")
        opened.memory.access.grant(some_grant(draw))
        agent = opened.agent("agent:claude")
        allowed = {row.path for row in rows if opened.memory.may(agent, "read", row.facts).allowed}
        listed = read.list_pages(opened.memory, agent, limit=100)
        assert {row.path for row in listed.pages} == allowed
        assert listed.total == len(allowed)
        shown = {row.path for row in rows if row.path in allowed and not row.hidden}
        found = read.search(opened.memory, agent, "zyxquartz", limit=100)
        assert {hit.path for hit in found.results} == shown
        assert found.total == len(shown)
        for row in rows:
            if row.path in allowed:
                edges = read.links(opened.memory, agent, row.path)
                assert {edge.target for edge in edges.outgoing} <= allowed | {None}
                assert {edge.source for edge in edges.backlinks} <= allowed
            else:
                with pytest.raises(NotFound):
                    read.read_page(opened.memory, agent, row.path)


def test_without_a_grant_nothing_exists(opened: Opened) -> None:
    """No grant, no access: not even a count."""
    opened.save("note.md", "zyxquartz\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    nobody = opened.agent("agent:nobody")
    assert read.search(opened.memory, nobody, "zyxquartz").total == 0
    assert read.list_pages(opened.memory, nobody).total == 0


def test_a_removed_principal_has_nothing_whatever_its_grants_say(opened: Opened) -> None:
    """context.yaml says `removed`: that outranks access.yaml."""
    opened.save("note.md", "zyxquartz\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    agent = opened.agent("agent:claude", "read")
    assert read.search(opened.memory, agent, "zyxquartz").total == 1
    context = opened.root / ".pcp" / "context.yaml"
    text = context.read_text().replace(
        "principals:\n", "principals:\n  - {id: agent:claude, role: agent, status: removed}\n"
    )
    opened.save(".pcp/context.yaml", text)
    until(lambda: read.search(opened.memory, agent, "zyxquartz").total == 0)


def test_each_act_of_an_agent_is_in_the_trail_before_its_answer(opened: Opened) -> None:
    """Successes and refusals, who, what and when, with opaque numbers instead of paths, and no content."""
    opened.save("note.md", "zyxquartz\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    agent = opened.agent("agent:claude", "read")
    read.search(opened.memory, agent, "zyxquartz")
    (row,) = audit.rows(opened.memory.ledger)
    assert (row.principal, row.action, row.channel, row.outcome) == (
        "agent:claude",
        "search_memory",
        "mcp",
        "ok",
    )
    assert row.counts == {"results": 1, "total": 1}
    with pytest.raises(NotFound):
        read.read_page(opened.memory, agent, "absent")
    assert audit.rows(opened.memory.ledger)[0].outcome == "page.not-found"
    assert "zyxquartz" not in repr(audit.rows(opened.memory.ledger))
    assert "note" not in repr(audit.rows(opened.memory.ledger))

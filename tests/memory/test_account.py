"""What the trail says of each act: which pages it touched or named, their categories, counts; and of refusals."""

from collections.abc import Callable

import pytest

from pcpd.errors import Conflict, Denied, NotFound, PcpError
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow
from pcpd.memory import read, upkeep, write
from pcpd.memory.memory import Caller
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened

EPISODE = "---\ntype: episodic\n---\n"
WORK = "---\npartition: work\n---\n"
FILES = {
    "note.md": "# Note\n[[episode]] [[gone]]\n",
    "episode.md": EPISODE + "text\n",
    "alone.md": EPISODE + "nobody links here\n",
    "secret.md": WORK + "[[note]]\n",
}


@pytest.fixture
def told(make_opened: Callable[..., Opened]) -> Opened:
    """A vault with FILES."""
    opened = make_opened(quiet_s=3600, poll_s=3600).open()
    for file, text in FILES.items():
        opened.save(file, text)
    upkeep.full_scan(opened.memory)
    return opened


def last(opened: Opened) -> tuple[AuditRow, set[str]]:
    """The newest row, and the paths of its pages."""
    row = audit.rows(opened.memory.ledger)[0]
    return row, set(audit.object_paths(opened.memory.ledger, row.object_ids).values())


def asked(opened: Opened, act: Callable[[Caller], object]) -> tuple[AuditRow, set[str]]:
    """What the trail says when an agent that may do anything in `personal` asks for it."""
    act(opened.agent("agent:claude", "read", "write"))
    return last(opened)


def test_the_acts_that_name_pages_say_which_and_of_what_category(told: Opened) -> None:
    """Links with both their ends, what is around, links to nowhere, orphans, suggestions."""
    memory = told.memory
    row, paths = asked(told, lambda agent: read.links(memory, agent, "note"))
    assert (row.action, row.categories, paths) == (
        "page_links",
        ("episodic", "semantic"),
        {"note", "episode"},
    )
    assert row.counts == {"outgoing": 2, "backlinks": 0, "neighbours": 1}
    row, paths = asked(told, lambda agent: read.unresolved(memory, agent))
    assert (row.categories, paths, row.counts) == (("semantic",), {"note"}, {"results": 1})
    row, paths = asked(told, lambda agent: read.orphans(memory, agent))
    assert (row.categories, paths) == (("episodic", "semantic"), {"note", "alone"})
    row, paths = asked(told, lambda agent: read.suggest(memory, agent, "a"))
    assert (row.action, row.categories, paths, row.counts) == (
        "suggest_pages",
        ("episodic",),
        {"alone"},
        {"results": 1},
    )


def test_a_write_says_what_was_there_and_what_is_there_now(told: Opened) -> None:
    """A page that changes its type had two categories; a move has two paths."""
    memory = told.memory
    row, paths = asked(told, lambda agent: write.write_page(memory, agent, "new", Proposed(EPISODE + "x")))
    assert (row.action, row.outcome, row.categories, paths) == ("write_page", "ok", ("episodic",), {"new"})
    data = (told.root / "new.md").read_bytes()
    assert row.counts == {"changed": 1, "broken_links": 0, "bytes": len(data)}
    edit = [Edit("set", "type", "procedural")]
    row, paths = asked(told, lambda agent: write.edit_page(memory, agent, "new", edit))
    assert (row.categories, paths) == (("episodic", "procedural"), {"new"})
    row, paths = asked(told, lambda agent: write.move_page(memory, agent, "new", "moved"))
    assert (row.categories, paths) == (("procedural",), {"new", "moved"})
    row, paths = asked(
        told, lambda agent: write.remove_page(memory, agent, "moved", if_version=told.version("moved"))
    )
    assert (row.action, row.categories, paths) == ("remove_page", ("procedural",), {"moved"})


def test_a_write_that_changed_nothing_says_so(told: Opened) -> None:
    """The same text again, and the same call again under its key."""
    memory = told.memory
    agent = told.agent("agent:claude", "read", "write", key="k1")
    made = write.write_page(memory, agent, "new", Proposed("x"))
    assert last(told)[0].counts["changed"] == 1
    assert write.write_page(memory, agent, "new", Proposed("x")) == made
    row, paths = last(told)
    assert (row.outcome, row.counts["changed"], row.categories, paths) == ("ok", 0, ("semantic",), {"new"})


def test_a_refusal_names_the_page_that_is_there_and_nothing_that_is_not(told: Opened) -> None:
    """The trail is for the person, who wants to know what an agent was after; agents cannot fill it with names."""
    memory = told.memory
    agent = told.agent("agent:claude", "read", "write")
    for act, outcome in (
        (lambda: read.read_page(memory, agent, "secret"), "page.not-found"),
        (lambda: read.links(memory, agent, "secret"), "page.not-found"),
        (lambda: write.write_page(memory, agent, "secret", Proposed("x")), "denied"),
        (lambda: write.edit_page(memory, agent, "secret", [Edit("append", "", "x")]), "page.not-found"),
        (lambda: write.remove_page(memory, agent, "secret"), "page.not-found"),
        (lambda: write.move_page(memory, agent, "note", "secret"), "denied"),
    ):
        with pytest.raises(PcpError):
            act()
        row, paths = last(told)
        assert (row.outcome, paths, row.categories) == (outcome, {"secret"}, ())
    for act in (
        lambda: read.read_page(memory, agent, "nothing"),
        lambda: write.write_page(memory, agent, "nothing", Proposed(WORK)),
        lambda: write.remove_page(memory, agent, "nothing"),
    ):
        with pytest.raises((NotFound, Denied)):
            act()
        assert last(told)[1] == set()


def test_a_move_onto_a_page_that_cannot_be_seen_is_refused_as_one_to_a_place_without_grant(
    told: Opened,
) -> None:
    """It says nothing of what is there; a page that can be seen is a conflict with its version."""
    memory = told.memory
    agent = told.agent("agent:claude", "read", "write")
    with pytest.raises(Denied) as hidden:
        write.move_page(memory, agent, "note", "secret")
    with pytest.raises(Denied) as ungranted:
        write.write_page(memory, agent, "elsewhere", Proposed(WORK))
    assert (hidden.value.code, hidden.value.message) == (ungranted.value.code, ungranted.value.message)
    with pytest.raises(Conflict) as there:
        write.move_page(memory, agent, "note", "episode")
    assert there.value.code == "page.exists"
    assert there.value.details["version"] == read.read_page(memory, agent, "episode").version

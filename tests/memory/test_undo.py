"""An agent's act is taken back as a new version; what changed since is merged, or shown, and never lost."""

from collections.abc import Callable

import pytest

from pcpd.errors import Conflict, Denied, NotFound, PcpError, Usage
from pcpd.ledger import audit
from pcpd.memory import read, undo, upkeep, write
from pcpd.memory.memory import Caller
from pcpd.memory.undo import Undone
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened

TEXT = "---\ntitle: Boiler\n---\n# Quotes\n\nGas.\n\n# Later\n\nHeat pump.\n"


@pytest.fixture
def opened(make_opened: Callable[..., Opened]) -> Opened:
    """A vault with one page that the person wrote, all of it in history."""
    opened = make_opened(quiet_s=3600, poll_s=3600, ahead_s=3600).open()
    opened.save("boiler.md", TEXT)
    upkeep.full_scan(opened.memory)
    assert opened.running is not None
    opened.running.committer.flush()
    return opened


@pytest.fixture
def agent(opened: Opened) -> Caller:
    """An agent that may do anything."""
    return opened.agent("agent:a", "read", "write")


def undone(opened: Opened, act: str | None = None, **options: object) -> Undone:
    """Takes an act back as the person."""
    return undo.undo(opened.memory, opened.person, act, **options)  # type: ignore[arg-type]


def refused(opened: Opened, act: str | None = None, **options: object) -> PcpError:
    """What taking it back is refused with."""
    with pytest.raises(PcpError) as raised:
        undone(opened, act, **options)
    return raised.value


def text(opened: Opened, file: str = "boiler.md") -> str | None:
    """What a file says now."""
    path = opened.root / file
    return path.read_text() if path.exists() else None


def appended(opened: Opened, agent: Caller, words: str) -> None:
    """Has the agent add something to the page's end."""
    write.edit_page(opened.memory, agent, "boiler", [Edit("append", value=words)])


def test_a_change_is_taken_back_to_the_byte_and_stays_in_history(opened: Opened, agent: Caller) -> None:
    """As a new version by the person; nothing is rewritten."""
    appended(opened, agent, "Nonsense.")
    assert text(opened) != TEXT
    done = undone(opened)
    assert (done.principal, done.path, done.outcome, done.is_done) == ("agent:a", "boiler", "restored", True)
    assert "-Nonsense." in done.diff
    assert text(opened) == TEXT
    undo._wait_for_commits(opened.memory)
    first, second = opened.memory.require_history().log(None, limit=2)
    assert (first.principal, second.principal) == (opened.memory.context.controller, "agent:a")
    assert first.subject == f"Undo {done.rev[:12]}: Change boiler"


def test_each_kind_of_act_is_taken_back(opened: Opened, agent: Caller) -> None:
    """A new page goes, a removed one comes back, a moved one goes home, with what it says now."""
    memory = opened.memory
    write.write_page(memory, agent, "new", Proposed("text\n"))
    assert undone(opened).outcome == "removed"
    assert text(opened, "new.md") is None
    write.remove_page(memory, agent, "boiler", if_version=opened.version("boiler"))
    assert undone(opened).outcome == "restored"
    assert text(opened) == TEXT
    write.move_page(memory, agent, "boiler", "house/heating")
    opened.save("house/heating.md", TEXT + "Mine.\n")
    upkeep.full_scan(memory)
    assert undone(opened).outcome == "moved"
    assert (text(opened), text(opened, "house/heating.md")) == (TEXT + "Mine.\n", None)
    assert read.list_pages(memory, opened.person).total == 1


def test_acts_are_taken_back_one_after_the_other(opened: Opened, agent: Caller) -> None:
    """The last one that was not taken back yet, whoever's, or that of one principal."""
    memory, other = opened.memory, opened.agent("agent:b", "read", "write")
    write.write_page(memory, agent, "one", Proposed("text\n"))
    write.write_page(memory, other, "two", Proposed("text\n"))
    write.write_page(memory, agent, "three", Proposed("text\n"))
    paths = [undone(opened, principal="agent:b").path, undone(opened).path, undone(opened).path]
    assert paths == ["two", "three", "one"]
    assert refused(opened).code == "undo.nothing"
    assert read.list_pages(memory, opened.person).total == 1


def test_what_the_person_wrote_since_stays(opened: Opened, agent: Caller) -> None:
    """Elsewhere on the page it is merged; at the same place it is shown, and nothing is changed."""
    write.edit_page(opened.memory, agent, "boiler", [Edit("replace_text", "Gas.", "Oil.")])
    opened.save("boiler.md", (text(opened) or "").replace("Heat pump.", "Heat pump, 9 kW."))
    upkeep.full_scan(opened.memory)
    assert undone(opened).outcome == "merged"
    now = text(opened) or ""
    assert "Gas." in now
    assert "9 kW" in now
    write.edit_page(opened.memory, agent, "boiler", [Edit("replace_text", "Gas.", "Wood.")])
    opened.save("boiler.md", (text(opened) or "").replace("Wood.", "Pellets."))
    upkeep.full_scan(opened.memory)
    before = text(opened)
    clash = undone(opened)
    assert (clash.outcome, clash.is_done, text(opened)) == ("clash", False, before)
    (what,) = [each for each in clash.clashes if not each.key]
    assert ("Wood" in (what.base or ""), "Pellets" in (what.ours or ""), "Gas" in (what.theirs or "")) == (
        True,
    ) * 3


def test_a_page_that_the_person_went_on_with_is_not_removed(opened: Opened, agent: Caller) -> None:
    """It is theirs now: the clash is shown."""
    write.write_page(opened.memory, agent, "new", Proposed("text\n"))
    opened.save("new.md", (text(opened, "new.md") or "") + "Mine.\n")
    upkeep.full_scan(opened.memory)
    assert undone(opened).outcome == "clash"
    assert "Mine." in (text(opened, "new.md") or "")


def test_a_place_that_is_taken_and_a_page_that_is_gone_are_refused(opened: Opened, agent: Caller) -> None:
    """With what is there now as it was."""
    memory = opened.memory
    write.move_page(memory, agent, "boiler", "heating")
    opened.save("boiler.md", "Another.\n")
    upkeep.full_scan(memory)
    assert refused(opened).code == "undo.changed"
    assert text(opened) == "Another.\n"
    appended(opened, agent, "More.")
    (opened.root / "boiler.md").unlink()
    upkeep.full_scan(memory)
    assert refused(opened).code == "undo.changed"


def test_a_dry_run_tells_and_changes_nothing(opened: Opened, agent: Caller) -> None:
    """The same answer, but for `is_done`."""
    appended(opened, agent, "Nonsense.")
    before, rows = text(opened), len(audit.rows(opened.memory.ledger))
    told = undone(opened, dry_run=True)
    assert (told.outcome, told.is_done, text(opened)) == ("restored", False, before)
    assert "-Nonsense." in told.diff
    assert len(audit.rows(opened.memory.ledger)) == rows
    assert undone(opened).diff == told.diff


def test_an_act_is_named_by_version_or_by_its_audit_row(opened: Opened, agent: Caller) -> None:
    """A row of something else, and one that is not there, name nothing."""
    write.write_page(opened.memory, agent, "one", Proposed("text\n"))
    row = audit.rows(opened.memory.ledger)[0]
    write.write_page(opened.memory, agent, "two", Proposed("text\n"))
    read.list_pages(opened.memory, agent)
    other = audit.rows(opened.memory.ledger)[0]
    assert undone(opened, row.id).path == "one"
    assert text(opened, "one.md") is None
    assert undone(opened, row.id).outcome == "unchanged"
    for name in (other.id, "act_0000000000000000"):
        assert refused(opened, name).code == "undo.nothing"
    rev = opened.memory.require_history().log("two.md", limit=1)[0].rev
    assert undone(opened, rev[:10]).path == "two"
    assert refused(opened, "0" * 40).code == "history.no-version"
    assert [text(opened, f"{each}.md") for each in ("one", "two")] == [None, None]


def test_it_is_for_the_person_and_in_the_trail(opened: Opened, agent: Caller) -> None:
    """With whose act it was, and which page."""
    appended(opened, agent, "Nonsense.")
    with pytest.raises(Denied):
        undo.undo(opened.memory, agent, None)
    undone(opened)
    row = audit.rows(opened.memory.ledger)[0]
    names = set(audit.object_paths(opened.memory.ledger, row.object_ids).values())
    assert (row.action, row.channel, row.outcome) == ("undo", "management", "ok")
    assert names == {"/agent:a", "boiler"}
    assert row.counts["changed"] == 1


def test_what_is_no_single_page_is_refused(opened: Opened) -> None:
    """A save of many files by the person, and what is behind a dot."""
    for name in ("x.md", "y.md"):
        opened.save(name, name)
    upkeep.full_scan(opened.memory)
    assert opened.running is not None
    opened.running.committer.flush()
    with pytest.raises((Usage, Conflict, NotFound)) as raised:
        undone(opened, opened.memory.require_history().log("x.md", limit=1)[0].rev)
    assert raised.value.code in {"undo.not-a-page", "undo.nothing"}

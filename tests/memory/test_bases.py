"""What a change may be based on: the version of the whole page, or the mark of a part that was read."""

from collections.abc import Callable

import pytest

from pcpd.errors import Conflict, Usage
from pcpd.memory import read, write
from pcpd.memory.bases import part_mark
from pcpd.memory.memory import Caller
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened

PAGE = "---\ntitle: Boiler\n---\nGas.\n"


@pytest.fixture
def agent(make_opened: Callable[..., Opened]) -> tuple[Opened, Caller]:
    """A vault with one page, and an agent that may write."""
    opened = make_opened()
    opened.save("boiler.md", PAGE)
    opened.open()
    return opened, opened.agent("agent:claude", "read", "write")


def test_a_mark_is_good_for_edits_moves_and_removals_and_not_for_a_replacement(
    agent: tuple[Opened, Caller],
) -> None:
    """Who has read a part would lose the rest."""
    opened, caller = agent
    mark = part_mark(read.read_page(opened.memory, caller, "boiler").version)
    with pytest.raises(Usage) as refused:
        write.write_page(opened.memory, caller, "boiler", Proposed("New."), if_version=mark)
    assert refused.value.code == "page.read-in-part"
    assert (opened.root / "boiler.md").read_text() == PAGE
    edited = write.edit_page(
        opened.memory, caller, "boiler", [Edit("append", value="Pump.")], if_version=mark
    )
    moved = write.move_page(opened.memory, caller, "boiler", "heat", if_version=part_mark(edited.version))
    gone = write.remove_page(opened.memory, caller, "heat", if_version=part_mark(moved.version))
    assert gone.outcome == "removed"


def test_an_old_mark_is_stale_and_only_the_present_mark_is_told(agent: tuple[Opened, Caller]) -> None:
    """Not the version, which would open a replacement."""
    opened, caller = agent
    old = read.read_page(opened.memory, caller, "boiler").version
    write.edit_page(opened.memory, caller, "boiler", [Edit("append", value="Pump.")])
    present = read.read_page(opened.memory, caller, "boiler").version
    for base, told in ((part_mark(old), part_mark(present)), (old, present)):
        with pytest.raises(Conflict) as stale:
            write.remove_page(opened.memory, caller, "boiler", if_version=base)
        assert (stale.value.code, stale.value.details) == ("page.stale", {"version": told})


def test_a_mark_does_not_tell_whether_a_page_is_there(agent: tuple[Opened, Caller]) -> None:
    """It is refused before anything is looked at."""
    opened, caller = agent
    for path in ("boiler", "absent"):
        with pytest.raises(Usage):
            write.write_page(opened.memory, caller, path, Proposed("x"), if_version=part_mark("x"))

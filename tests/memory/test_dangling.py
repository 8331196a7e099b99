"""Who moves or removes a page is told which links led to it and do not any more."""

from collections.abc import Callable

import pytest

from pcpd.memory import read, upkeep, write
from tests.vaults import Opened

WORK = "---\npartition: work\n---\n"
FILES = {
    "a/plan.md": "text\n",
    "by_name.md": "[[plan]]\n",
    "by_path.md": "[[a/plan]] and [x](a/plan.md)\n",
    "closed.md": WORK + "[[a/plan]]\n",
    "other.md": "[[elsewhere]]\n",
}


@pytest.fixture
def linked(make_opened: Callable[..., Opened]) -> Opened:
    """A vault with FILES."""
    opened = make_opened(quiet_s=3600, poll_s=3600).open()
    for file, text in FILES.items():
        opened.save(file, text)
    upkeep.full_scan(opened.memory)
    return opened


def test_a_move_names_the_pages_whose_links_led_to_the_page_and_do_not_now(linked: Opened) -> None:
    """A link by name finds it where it is now, one by path does not."""
    moved = write.move_page(linked.memory, linked.person, "a/plan", "b/plan")
    assert moved.broken_links == ("by_path", "closed")
    back = write.move_page(linked.memory, linked.person, "b/plan", "a/plan")
    assert back.broken_links == ()


def test_an_agent_is_told_only_of_pages_that_it_may_see(linked: Opened) -> None:
    """A page outside the grant does not exist, nor do its links."""
    agent = linked.agent("agent:claude", "read", "write")
    assert write.move_page(linked.memory, agent, "a/plan", "b/plan").broken_links == ("by_path",)


def test_a_link_that_leads_to_another_page_now_is_named_too(linked: Opened) -> None:
    """It does not lead nowhere, but not there either."""
    linked.save("c/plan.md", "the other one\n")
    upkeep.full_scan(linked.memory)
    moved = write.move_page(linked.memory, linked.person, "a/plan", "a/older")
    assert moved.broken_links == ("by_name", "by_path", "closed")


def test_the_moved_pages_own_relative_links_count(linked: Opened) -> None:
    """`./plan` means another place from there; a link to itself goes with it."""
    linked.save("a/near.md", "[[./plan]] [[near]]\n")
    upkeep.full_scan(linked.memory)
    assert write.move_page(linked.memory, linked.person, "a/near", "b/near").broken_links == ("b/near",)
    assert write.move_page(linked.memory, linked.person, "b/near", "a/near").broken_links == ()


def test_a_removal_names_the_pages_whose_links_lead_nowhere_now(linked: Opened) -> None:
    """Not the page itself, though it may link to itself."""
    linked.save("a/plan.md", "[[plan]]\n")
    upkeep.full_scan(linked.memory)
    gone = write.remove_page(linked.memory, linked.person, "a/plan")
    assert gone.broken_links == ("by_name", "by_path", "closed")
    assert [edge.source for edge in read.unresolved(linked.memory, linked.person).links] != []

"""The link graph through the acts: what hangs loose, for the person and for an agent."""

from pcpd.memory import read
from tests.vaults import Opened
from tests.waiting import until


def test_loose_ends_are_links_without_a_page_and_pages_without_a_link(opened: Opened) -> None:
    """Each only as far as the reader sees."""
    opened.save("a.md", "[[b]] [[nowhere]] [[secret]]\n")
    opened.save("b.md", "text\n")
    opened.save("secret.md", "---\npartition: work\n---\n[[lost]]\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 3)
    mine = read.unresolved(opened.memory, opened.person)
    assert {edge.link.target for edge in mine.links} == {"nowhere", "lost"}
    assert read.orphans(opened.memory, opened.person).pages == ("a",)
    agent = opened.agent("agent:claude", "read")
    theirs = read.unresolved(opened.memory, agent)
    assert {edge.link.target for edge in theirs.links} == {"nowhere", "secret"}
    assert read.orphans(opened.memory, agent).pages == ("a",)


def test_loose_ends_come_in_pieces_to_the_very_end(opened: Opened) -> None:
    """Nothing twice, nothing left out."""
    opened.save("a.md", " ".join(f"[[gone{number}]]" for number in range(7)))
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    targets, cursor = [], None
    while True:
        piece = read.unresolved(opened.memory, opened.person, limit=3, cursor=cursor)
        targets += [edge.link.target for edge in piece.links]
        cursor = piece.cursor
        if cursor is None:
            break
    assert targets == [f"gone{number}" for number in range(7)]

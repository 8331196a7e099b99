"""What names a page, and what is said where a name is nobody's, or that of several pages."""

import pytest

from pcpd.errors import NotFound
from pcpd.memory import consent, read, versions, write
from pcpd.pages.edits import Edit
from tests.vaults import Opened
from tests.waiting import until


def test_a_name_of_several_pages_is_said_to_be_one_and_the_pages_are_named(opened: Opened) -> None:
    """Also when it is to be changed, or when its versions are asked for."""
    for file in ("Projects/Alpha.md", "Areas/alpha.md"):
        opened.save(file, "text\n")
    until(lambda: len(read.search(opened.memory, opened.person, "text").results) == 2)
    for act in (
        lambda: read.read_page(opened.memory, opened.person, "alpha"),
        lambda: write.edit_page(opened.memory, opened.person, "Alpha", [Edit("append", "", "x")]),
        lambda: versions.log(opened.memory, opened.person, "alpha"),
        lambda: versions.diff(opened.memory, opened.person, "alpha", None, None),
    ):
        with pytest.raises(NotFound) as caught:
            act()
        assert caught.value.code == "page.ambiguous"
        assert "Areas/alpha, Projects/Alpha" in caught.value.hint


def test_a_name_of_several_pages_tells_an_agent_of_none_that_it_may_not_see(opened: Opened) -> None:
    """Its own page answers to the name; without a grant the name is nobody's."""
    opened.save("a/note.md", "---\npartition: work\n---\nsecret\n")
    opened.save("b/note.md", "open\n")
    until(lambda: len(read.search(opened.memory, opened.person, "secret or open").results) == 2)
    assert read.read_page(opened.memory, opened.agent("agent:claude", "read"), "note").data == b"open\n"
    with pytest.raises(NotFound) as caught:
        read.read_page(opened.memory, opened.agent("agent:other"), "note")
    assert caught.value.code == "page.not-found"


def test_versions_of_what_never_was_are_refused(opened: Opened) -> None:
    """A slip of the pen does not look like a page without versions; one that was just saved has none yet."""
    for act in (
        lambda: versions.log(opened.memory, opened.person, "nosuch"),
        lambda: versions.diff(opened.memory, opened.person, "nosuch", None, None),
    ):
        with pytest.raises(NotFound):
            act()
    opened.save("fresh.md", "text\n")
    assert len(versions.log(opened.memory, opened.person, "fresh")) < 2


def test_restoring_names_the_version_itself(opened: Opened) -> None:
    """`HEAD` in a message would be another version the next day."""
    opened.save("note.md", "first\n")
    until(lambda: versions.log(opened.memory, opened.person, "note"))
    first = versions.log(opened.memory, opened.person, "note")[0].rev
    write.edit_page(opened.memory, opened.person, "note", [Edit("append", "", "second")])
    write.restore(opened.memory, opened.person, "note", first[:8])
    until(lambda: len(versions.log(opened.memory, opened.person, "note")) == 3)
    subject = versions.log(opened.memory, opened.person, "note")[0].subject
    assert subject == f"Restore note.md from {first[:12]}"


def test_only_who_was_let_in_can_be_shut_out(opened: Opened) -> None:
    """A misspelled name is an error; taking back twice is none."""
    made = consent.create_token(opened.memory, "agent:claude")
    for wrong in ({"principal": "agent:cluade", "token": None}, {"principal": None, "token": "tok_0"}):
        with pytest.raises(NotFound) as caught:
            consent.revoke(opened.memory, **wrong)
        assert caught.value.code == "consent.absent"
    for tokens in (1, 0):
        assert consent.revoke(opened.memory, principal=None, token=str(made["id"]))["tokens"] == tokens
    assert consent.revoke(opened.memory, principal="agent:claude", token=None) == {"grants": 0, "tokens": 0}

"""What names a page, and what is said where a name is nobody's, or that of several pages."""

import pytest

from pcpd.errors import Conflict, NotFound
from pcpd.memory import consent, read, versions, write
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from pcpd.policy.grants import Grant
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


def test_a_page_answers_to_an_alias_that_no_other_visible_page_has(opened: Opened) -> None:
    """Names of files go first; a page outside the grant takes no name away."""
    opened.save("heating.md", "---\naliases: [Boiler, Warm thing]\n---\nheating\n")
    opened.save("hidden.md", "---\npartition: work\naliases: [Boiler]\n---\nhidden\n")
    opened.save("named/warm thing.md", "the file\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 3)
    agent = opened.agent("agent:claude", "read")
    assert read.read_page(opened.memory, agent, "boiler").path == "heating"
    assert read.read_page(opened.memory, agent, "warm thing").path == "named/warm thing"
    with pytest.raises(NotFound) as caught:
        read.read_page(opened.memory, opened.person, "boiler")
    assert caught.value.code == "page.ambiguous"
    assert caught.value.hint == "name one by its path: heating, hidden"


def test_a_hidden_page_takes_no_name_from_one_that_can_be_seen(opened: Opened) -> None:
    """Whichever way of naming finds it first."""
    opened.save("plan.md", "---\npartition: work\n---\nhidden\n")
    opened.save("a/plan.md", "open\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    agent = opened.agent("agent:claude", "read")
    assert read.read_page(opened.memory, agent, "plan").path == "a/plan"
    assert read.read_page(opened.memory, opened.person, "plan").path == "plan"


def test_a_page_is_made_at_the_path_that_was_said_whatever_bears_the_name_elsewhere(opened: Opened) -> None:
    """A file name, an id or an alias of another page is no path of it."""
    opened.save("a/plan.md", "---\nid: the-id\naliases: [other]\n---\nthere already\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    agent = opened.agent("agent:claude", "read", "write")
    for path in ("plan", "the-id", "other"):
        assert write.write_page(opened.memory, agent, path, Proposed("new\n")).path == path
    with pytest.raises(Conflict):
        write.write_page(opened.memory, agent, "a/plan", Proposed("new\n"))
    with pytest.raises(Conflict):
        write.write_page(opened.memory, agent, "A/Plan", Proposed("new\n"))


def test_another_spelling_of_a_name_opens_nothing_where_the_file_system_takes_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where case does not matter, `Private/NOTE` is the file of an ignored folder, or of another category."""
    opened.save("private/note.md", "secret\n")
    opened.save(".gitignore", "private/\n")
    opened.save("profile/me.md", "secret\n")
    until(lambda: opened.memory.ignore.folder("private"))
    until(lambda: read.search(opened.memory, opened.person, "secret").total == 1)
    agent = opened.agent("agent:claude")
    opened.memory.access.grant(Grant("agent:claude", ("personal",), ("semantic",), ("read",)))
    files = opened.memory.files
    plain_stat, plain_read = files.stat, files.read
    monkeypatch.setattr(files, "stat", lambda file: plain_stat(file.lower()))
    monkeypatch.setattr(files, "read", lambda file, limit: plain_read(file.lower(), limit))
    for name in ("Private/note", "private/NOTE", "PRIVATE/NOTE"):
        with pytest.raises(NotFound):
            read.read_page(opened.memory, agent, name)

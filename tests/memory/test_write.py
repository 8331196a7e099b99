"""The acts that change pages: what they keep, what they refuse, and what history gets of them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pcpd.errors import Conflict, Denied, Invalid, NotFound, Usage
from pcpd.history.versions import Version
from pcpd.memory import carry_out, consent, read, reconcile, upkeep, versions, write
from pcpd.memory.doctor import status
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import MOST_EDITS, Edit
from tests.vaults import Opened
from tests.waiting import LONGEST_S, until


class Died(Exception):
    """Stands for the end of the owner in the middle of an act."""


def versions_of(opened: Opened, path: str) -> list[bytes]:
    """Gives the bytes of all committed versions of a page, the oldest first."""
    found: tuple[Version, ...] = versions.log(opened.memory, opened.person, path)
    return [versions.show(opened.memory, opened.person, path, each.rev) for each in reversed(found)]


def test_a_persons_save_that_no_commit_has_yet_is_committed_before_an_act_replaces_it(opened: Opened) -> None:
    """An edit through pcpd right after a save in an editor leaves both versions in git (promise 5)."""
    opened.save("note.md", "what the person wrote\n")
    until(lambda: read.search(opened.memory, opened.person, "person").results)
    write.edit_page(opened.memory, opened.person, "note", [Edit("append", value="and more\n")])
    until(lambda: len(versions_of(opened, "note")) == 2)
    assert versions_of(opened, "note") == [b"what the person wrote\n", b"what the person wrote\nand more\n"]


def test_an_owner_that_dies_in_an_act_has_noted_what_it_was_about_to_bury(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the file's replacement and the end of the act, nothing else knows of the person's save."""
    opened = make_opened(ahead_s=3600, quiet_s=3600, poll_s=3600).open()
    opened.save("note.md", "what the person wrote\n")
    upkeep.full_scan(opened.memory)

    def dies(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "apply", dies)
        with pytest.raises(Died):
            write.write_page(opened.memory, opened.person, "note", Proposed("by an act\n"), overwrite=True)
    opened.restart()
    until(lambda: b"what the person wrote\n" in versions_of(opened, "note"))
    opened.running.committer.flush()  # type: ignore[union-attr]
    assert versions_of(opened, "note") == [b"what the person wrote\n", b"by an act\n"]


def test_an_act_that_is_refused_leaves_no_older_version_on_top(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor was faster: its version is what history has at last."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    opened.save("note.md", "first\n")
    until(lambda: read.search(opened.memory, opened.person, "first").results)
    plain = carry_out._apply_steps

    def late(*arguments: object, **options: object) -> object:
        opened.save("note.md", "second\n")
        return plain(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(carry_out, "_apply_steps", late)
    with pytest.raises(Conflict):
        write.write_page(opened.memory, opened.person, "note", Proposed("act\n"), overwrite=True)
    until(lambda: versions_of(opened, "note")[-1:] == [b"second\n"])
    until(lambda: status(opened.memory)["history"]["waiting"] == 0)
    assert versions_of(opened, "note")[-1] == b"second\n"


def test_every_version_that_agents_write_is_a_commit_with_their_name(opened: Opened) -> None:
    """Three writes within a moment are three commits, in order, each with its principal."""
    agent = opened.agent("agent:claude", "read", "write")
    written = write.write_page(opened.memory, agent, "log", Proposed("one"))
    for text in ("two", "three"):
        written = write.write_page(opened.memory, agent, "log", Proposed(text), if_version=written.version)
    until(lambda: len(versions_of(opened, "log")) == 3)
    assert [data.splitlines()[-1] for data in versions_of(opened, "log")] == [b"one", b"two", b"three"]
    assert {each.principal for each in versions.log(opened.memory, opened.person, "log")} == {"agent:claude"}


def test_an_agents_page_says_who_wrote_it_and_when(opened: Opened) -> None:
    """pages.md §3: title, type, recorded_at, updated and source are filled in."""
    write.write_page(
        opened.memory,
        opened.agent("agent:claude", "read", "write"),
        "notes/pump",
        Proposed("# Heat: pump\n\nText"),
    )
    page = read.read_page(opened.memory, opened.person, "notes/pump").page
    assert (page.title, page.type, page.origin, page.author) == (
        "Heat: pump",
        "semantic",
        "agent",
        "agent:claude",
    )
    assert page.recorded_at is not None
    assert page.recorded_at == page.updated
    assert not page.problems


@pytest.mark.parametrize("key", ["id", "review", "source", "recorded_at", "x_import", "x_session"])
def test_agents_cannot_set_what_says_where_a_page_comes_from(opened: Opened, key: str) -> None:
    """Reserved keys are refused in new pages, in replacements and in edits; nothing is written."""
    agent = opened.agent("agent:claude", "read", "write")
    with pytest.raises(Denied):
        write.write_page(opened.memory, agent, "forged", Proposed(f"---\n{key}: x\n---\nText"))
    made = write.write_page(opened.memory, agent, "real", Proposed("Text"))
    with pytest.raises(Denied):
        write.write_page(
            opened.memory, agent, "real", Proposed(f"---\n{key}: x\n---\nOther"), if_version=made.version
        )
    with pytest.raises(Denied):
        write.edit_page(opened.memory, agent, "real", [Edit("set", key, "x")])
    assert opened.memory.files.stat("forged.md") is None
    assert read.read_page(opened.memory, opened.person, "real").version == made.version


def test_a_persons_edit_adds_no_key(opened: Opened) -> None:
    """What a person changes through pcpd is changed as they said, and nothing else."""
    opened.save("note.md", "---\ntitle: A # why\n---\ntext\n")
    write.edit_page(opened.memory, opened.person, "note", [Edit("set", "importance", 0.5)])
    assert (opened.root / "note.md").read_text() == "---\ntitle: A # why\nimportance: 0.5\n---\ntext\n"


def test_replacing_needs_the_version_that_was_read(opened: Opened) -> None:
    """Without a version a page is not overwritten; with a stale one the present version is in the answer."""
    agent = opened.agent("agent:claude", "read", "write")
    first = write.write_page(opened.memory, agent, "note", Proposed("one"))
    with pytest.raises(Conflict) as without:
        write.write_page(opened.memory, agent, "note", Proposed("two"))
    assert (without.value.code, without.value.details["version"]) == ("page.exists", first.version)
    second = write.write_page(opened.memory, agent, "note", Proposed("two"), if_version=first.version)
    with pytest.raises(Conflict) as stale:
        write.write_page(opened.memory, agent, "note", Proposed("three"), if_version=first.version)
    assert (stale.value.code, stale.value.details["version"]) == ("page.stale", second.version)


def test_a_read_page_written_back_whole_changes_nothing(opened: Opened) -> None:
    """An agent that sends back what it read, front matter and all, does not double the front matter."""
    agent = opened.agent("agent:claude", "read", "write")
    made = write.write_page(opened.memory, agent, "note", Proposed("text\n"))
    content = read.read_page(opened.memory, agent, "note").data.decode()
    again = write.write_page(opened.memory, agent, "note", Proposed(content), if_version=made.version)
    assert (again.outcome, again.version) == ("unchanged", made.version)


def test_a_write_that_is_asked_twice_under_one_key_is_done_once(opened: Opened) -> None:
    """The relay repeats a write when an owner dies: the second answer is the first one."""
    agent = opened.agent("agent:claude", "read", "write", key="k1")
    first = write.write_page(opened.memory, agent, "note", Proposed("text"))
    assert write.write_page(opened.memory, agent, "note", Proposed("text")) == first


def test_a_page_outside_the_grant_is_refused_as_if_it_did_not_exist(opened: Opened) -> None:
    """Reading, editing, moving and removing it answer alike; writing there is denied without a word of it."""
    opened.save("secret.md", "---\npartition: work\n---\nzyxquartz\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    agent = opened.agent("agent:claude", "read", "write")
    acts: tuple[Callable[[str], object], ...] = (
        lambda path: read.read_page(opened.memory, agent, path),
        lambda path: write.edit_page(opened.memory, agent, path, [Edit("append", value="x")]),
        lambda path: write.remove_page(opened.memory, agent, path),
        lambda path: write.move_page(opened.memory, agent, path, "mine"),
    )
    for act in acts:
        with pytest.raises(NotFound) as there:
            act("secret")
        with pytest.raises(NotFound) as nowhere:
            act("absent")
        assert there.value.message.replace("secret", "absent") == nowhere.value.message
    with pytest.raises(Denied) as refused:
        write.write_page(opened.memory, agent, "secret", Proposed("mine"))
    assert "secret" not in refused.value.message
    assert not refused.value.details


def test_propose_alone_does_not_write_where_nobody_reviews(make_opened: Callable[..., Opened]) -> None:
    """Without the feature `review`, a write with `propose` alone is denied with a hint that says what would help."""
    opened = make_opened(features=()).open()
    with pytest.raises(Denied) as refused:
        write.write_page(
            opened.memory, opened.agent("agent:shy", "read", "propose"), "note", Proposed("text")
        )
    assert refused.value.code == "proposal.no-review"
    assert "write" in refused.value.hint
    assert not (opened.root / "note.md").exists()


def test_moving_a_page_out_of_the_grant_is_refused(opened: Opened) -> None:
    """Both what a page was and what it becomes must be open to the agent."""
    agent = opened.agent("agent:claude", "read", "write")
    made = write.write_page(opened.memory, agent, "note", Proposed("text"))
    with pytest.raises(Denied):
        write.edit_page(opened.memory, agent, "note", [Edit("set", "partition", "work")])
    assert read.read_page(opened.memory, agent, "note").version == made.version


@pytest.mark.parametrize(
    ("edit", "content", "missing"),
    [
        (Edit("set", "partition", "work"), "---\npartition: work\n---\nx\n", "--partitions work"),
        (
            Edit("set", "sensitivity", "sensitive"),
            "---\nsensitivity: sensitive\n---\nx\n",
            "--sensitivity sensitive",
        ),
        (
            Edit("append", value="\n<!-- pcp:message x -->\n"),
            "<!-- pcp:message x -->\n",
            "--categories conversation",
        ),
    ],
    ids=["partition", "sensitivity", "conversation"],
)
def test_a_refusal_names_the_grant_that_the_wish_needs(
    opened: Opened, edit: Edit, content: str, missing: str
) -> None:
    """To read and write elsewhere is not enough: what is missing is said in the words of `pcpd grant`."""
    consent.grant(opened.memory, consent.Wish("agent:claude", ["read", "write"]))
    agent = opened.agent("agent:claude")
    write.write_page(opened.memory, agent, "note", Proposed("text"))
    acts: tuple[Callable[[], object], ...] = (
        lambda: write.edit_page(opened.memory, agent, "note", [edit]),
        lambda: write.write_page(opened.memory, agent, "new", Proposed(content)),
    )
    for act in acts:
        with pytest.raises(Denied) as refused:
            act()
        assert f"--rights read,write {missing}`" in refused.value.hint


def test_a_refusal_for_a_page_that_cannot_be_seen_tells_nothing_of_it(opened: Opened) -> None:
    """The hint is made of what the agent wished for, as where there is no page: also for a place to move to."""
    opened.save("secret.md", "---\npartition: work\nsensitivity: sensitive\n---\nzyxquartz\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    agent = opened.agent("agent:claude", "read", "write")
    write.write_page(opened.memory, agent, "note", Proposed("text"))
    acts: tuple[Callable[[], object], ...] = (
        lambda: write.write_page(opened.memory, agent, "secret", Proposed("mine")),
        lambda: write.move_page(opened.memory, agent, "note", "secret"),
    )
    for act in acts:
        with pytest.raises(Denied) as refused:
            act()
        assert refused.value.hint.endswith("`pcpd grant agent:claude --rights read,write`")


def test_a_page_whose_front_matter_does_not_parse_is_never_edited(opened: Opened) -> None:
    """It stays as it is, listed with its problem, its text searchable; the error says where."""
    broken = "---\ntitle: [\n---\nzyxquartz\n"
    opened.save("broken.md", broken)
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").results)
    with pytest.raises(Invalid):
        write.edit_page(opened.memory, opened.person, "broken", [Edit("set", "title", "x")])
    assert (opened.root / "broken.md").read_text() == broken


def test_a_moved_page_keeps_its_bytes_and_its_history(opened: Opened) -> None:
    """`move` renames; `log` follows it."""
    opened.save("old.md", "text that stays\n" * 5)
    until(lambda: len(versions_of(opened, "old")) == 1)
    write.move_page(opened.memory, opened.person, "old", "folder/new")
    assert not (opened.root / "old.md").exists()
    until(lambda: len(versions.log(opened.memory, opened.person, "folder/new")) == 2)


def test_restoring_and_what_git_itself_shows_are_closed_to_agents(opened: Opened) -> None:
    """Whatever their grants: as git has them, they are the person's; `history` and `version` are for agents."""
    agent = opened.agent("agent:claude", "read", "write")
    write.write_page(opened.memory, agent, "note", Proposed("one\n"))
    until(lambda: versions_of(opened, "note"))
    with pytest.raises(Denied):
        write.restore(opened.memory, agent, "note", "HEAD")
    with pytest.raises(Denied):
        versions.show(opened.memory, agent, "note", "HEAD")


def test_restore_brings_a_version_back_as_a_new_one(opened: Opened) -> None:
    """Also of a page that was removed; nothing of what came after is rewritten."""
    opened.save("note.md", "first\n")
    until(lambda: len(versions_of(opened, "note")) == 1)
    first = versions.log(opened.memory, opened.person, "note")[0].rev
    write.remove_page(opened.memory, opened.person, "note")
    until(lambda: len(versions.log(opened.memory, opened.person, "note")) == 2)
    write.restore(opened.memory, opened.person, "note", first)
    assert (opened.root / "note.md").read_text() == "first\n"
    until(lambda: len(versions.log(opened.memory, opened.person, "note")) == 3)


@pytest.mark.parametrize(
    "path", ["../out", "/etc/passwd", "a/../../b", ".pcp/context", ".git/config", "A b", "con"]
)
def test_agents_cannot_write_outside_the_strict_grammar(opened: Opened, path: str) -> None:
    """No way out of the vault, into dot folders, or to names that other systems cannot hold."""
    with pytest.raises((Invalid, Denied)):
        write.write_page(opened.memory, opened.agent("agent:claude", "read", "write"), path, Proposed("text"))


@pytest.mark.parametrize("at", ["before the files", "after the files", "before the answer"])
def test_a_write_whose_owner_dies_is_done_once_wherever_it_died(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Repeated under its key to the next owner: an append stands there once, and the answer is the same."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    opened.save("log.md", "begin\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    agent = opened.agent("agent:claude", "read", "write", key="k1")
    edits = [Edit("append", value="one more\n")]

    def dies(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as broken:
        owner, name = {
            "before the files": (type(opened.memory.files), "replace"),
            "after the files": (reconcile, "apply"),
            "before the answer": (carry_out, "replace"),
        }[at]
        broken.setattr(owner, name, dies)
        with pytest.raises(Died):
            write.edit_page(opened.memory, agent, "log", edits)
    opened.restart()
    opened.failures.clear()  # of the watcher, which met the broken code too
    again = write.edit_page(opened.memory, agent, "log", edits)
    assert (opened.root / "log.md").read_text().count("one more") == 1
    assert again.version == read.read_page(opened.memory, opened.person, "log").version
    assert write.edit_page(opened.memory, agent, "log", edits) == again


def test_a_write_of_unknown_fate_on_a_page_that_changed_since_is_refused(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what it was nor what it was meant to be: the agent must look."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    opened.save("log.md", "begin\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    agent = opened.agent("agent:claude", "read", "write", key="k1")

    def dies(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as broken:
        broken.setattr(reconcile, "apply", dies)
        with pytest.raises(Died):
            write.edit_page(opened.memory, agent, "log", [Edit("append", value="one more\n")])
    opened.restart()
    opened.failures.clear()  # of the watcher, which met the broken code too
    opened.save("log.md", "the person's own\n")
    with pytest.raises(Conflict) as refused:
        write.edit_page(opened.memory, agent, "log", [Edit("append", value="one more\n")])
    assert refused.value.code == "write.unknown"
    assert (opened.root / "log.md").read_text() == "the person's own\n"


def test_attachments_come_back_too(opened: Opened) -> None:
    """`restore` of a picture; what lies in dot folders stays closed."""
    opened.save("picture.png", b"\x89PNG one")
    until(lambda: len(versions_of(opened, "picture.png")) == 1)
    first = versions.log(opened.memory, opened.person, "picture.png")[0].rev
    opened.save("picture.png", b"\x89PNG two")
    until(lambda: len(versions_of(opened, "picture.png")) == 2)
    write.restore(opened.memory, opened.person, "picture.png", first)
    assert (opened.root / "picture.png").read_bytes() == b"\x89PNG one"
    with pytest.raises(Invalid):
        write.restore(opened.memory, opened.person, ".pcp/context.yaml", first)


def test_a_key_that_came_with_another_request_is_refused(opened: Opened) -> None:
    """The old answer would be a lie about the new request."""
    agent = opened.agent("agent:claude", "read", "write", key="k1")
    write.write_page(opened.memory, agent, "one", Proposed("text"))
    with pytest.raises(Conflict) as refused:
        write.write_page(opened.memory, agent, "two", Proposed("text"))
    assert refused.value.code == "write.key-reused"
    assert opened.memory.files.stat("two.md") is None


def test_a_key_is_known_to_be_used_also_when_the_owner_died_in_its_write(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note of what the write was about to do says for which request."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    agent = opened.agent("agent:claude", "read", "write", key="k1")

    def dies(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as broken:
        broken.setattr(reconcile, "apply", dies)
        with pytest.raises(Died):
            write.write_page(opened.memory, agent, "one", Proposed("text"))
    opened.restart()
    opened.failures.clear()  # of the watcher, which met the broken code too
    with pytest.raises(Conflict) as refused:
        write.write_page(opened.memory, agent, "two", Proposed("text"))
    assert refused.value.code == "write.key-reused"
    assert opened.memory.files.stat("two.md") is None
    assert write.write_page(opened.memory, agent, "one", Proposed("text")).outcome == "created"


def test_a_renamed_page_is_shown_and_restored_under_the_name_it_had(opened: Opened) -> None:
    """`log` follows the rename, so do `show` and `restore` with the versions that it lists."""
    opened.save("old.md", "text that stays\n" * 5)
    until(lambda: len(versions_of(opened, "old")) == 1)
    write.move_page(opened.memory, opened.person, "old", "new")
    until(lambda: len(versions.log(opened.memory, opened.person, "new")) == 2)
    first = versions.log(opened.memory, opened.person, "new")[-1].rev
    assert versions.show(opened.memory, opened.person, "new", first).startswith(b"text that stays")
    write.edit_page(opened.memory, opened.person, "new", [Edit("append", value="more\n")])
    write.restore(opened.memory, opened.person, "new", first)
    assert (opened.root / "new.md").read_text() == "text that stays\n" * 5
    assert not (opened.root / "old.md").exists()


def test_many_who_append_at_once_without_naming_a_version_keep_all(opened: Opened) -> None:
    """Nobody said which version they mean, so nobody is refused, and nothing is lost."""
    opened.save("log.md", "begin\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    words = [f"word{number}x" for number in range(24)]

    def append(word: str) -> None:
        write.edit_page(opened.memory, opened.person, "log", [Edit("append", value=f"{word}\n")])

    with ThreadPoolExecutor(8) as many:
        list(many.map(append, words))
    assert sorted((opened.root / "log.md").read_text().split()[1:]) == sorted(words)


def test_no_edit_is_tried_for_who_may_not_write_there(opened: Opened) -> None:
    """Taking a page apart takes time, which an agent that may only read must not have spent at will."""
    opened.save("note.md", "text\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    agent = opened.agent("agent:reader", "read")
    with pytest.raises(Denied):
        write.edit_page(opened.memory, agent, "note", [Edit("replace_section", "Not there", "x")])


def test_more_edits_at_once_than_take_a_moment_are_refused(opened: Opened) -> None:
    """Each of them may take a second on a front matter of the largest size."""
    opened.save("note.md", "text\n")
    edits = [Edit("set", f"x_key{number}", number) for number in range(MOST_EDITS + 1)]
    with pytest.raises(Usage) as refused:
        write.edit_page(opened.memory, opened.person, "note", edits)
    assert refused.value.code == "edit.too-many"
    assert write.edit_page(opened.memory, opened.person, "note", edits[:-1]).outcome == "replaced"


def test_an_edit_waits_for_those_of_its_own_page_alone(opened: Opened) -> None:
    """An agent whose edits of one page take long holds up nobody who edits another."""
    opened.save("one.md", "1\n")
    opened.save("two.md", "2\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    with ThreadPoolExecutor(2) as others, opened.memory.turn_to_edit("one"):
        waits = others.submit(
            write.edit_page, opened.memory, opened.person, "ONE", [Edit("append", value="x\n")]
        )
        goes_on = others.submit(
            write.edit_page, opened.memory, opened.person, "two", [Edit("append", value="x\n")]
        )
        assert goes_on.result(LONGEST_S).outcome == "replaced"
        assert not waits.done()
    assert waits.result(LONGEST_S).outcome == "replaced"

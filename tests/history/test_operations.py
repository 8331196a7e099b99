"""While the person has something under way, their branch is left alone and versions wait on the wip ref."""

from collections.abc import Callable

import pytest

from pcpd.errors import Broken
from pcpd.history.versions import Change
from tests.history.people import History, Person


def _merge(person: Person) -> None:
    person.git("merge", "-q", "other", check=False)


def _rebase(person: Person) -> None:
    person.git("rebase", "-q", "other", check=False)


def _cherry_pick(person: Person) -> None:
    person.git("cherry-pick", "other", check=False)


def _revert(person: Person) -> None:
    person.git("revert", "--no-edit", "HEAD~1", check=False)


def _bisect(person: Person) -> None:
    person.git("bisect", "start")


def _am(person: Person) -> None:
    patch = person.git("format-patch", "-1", "--stdout", "other")
    person.git("am", "-q", stdin=patch, check=False)


def _stash_pop(person: Person) -> None:
    person.write("page.md", "stashed\n")
    person.git("stash", "-q")
    person.commit("page.md", "committed meanwhile\n")
    person.git("stash", "pop", "-q", check=False)


def _detached(person: Person) -> None:
    person.git("checkout", "-q", "--detach")


def _unborn(person: Person) -> None:
    person.git("checkout", "-q", "--orphan", "fresh")


OPERATIONS: dict[str, tuple[Callable[[Person], None], str, list[list[str]]]] = {
    "merge": (_merge, "merge", [["merge", "--abort"]]),
    "rebase": (_rebase, "rebase", [["rebase", "--abort"]]),
    "cherry-pick": (_cherry_pick, "cherry-pick", [["cherry-pick", "--abort"]]),
    "revert": (_revert, "revert", [["revert", "--abort"]]),
    "bisect": (_bisect, "bisect", [["bisect", "reset"]]),
    "am": (_am, "am", [["am", "--abort"]]),
    "stash pop": (_stash_pop, "unmerged", [["checkout", "-q", "HEAD", "--", "page.md"]]),
    "detached": (_detached, "", [["checkout", "-q", "main"]]),
    "unborn": (_unborn, "", [["checkout", "-q", "main"]]),
}


@pytest.fixture
def forked(adopted: History, person: Person) -> History:
    """A vault with two branches that changed the same page."""
    person.git("checkout", "-q", "-b", "other")
    person.commit("page.md", "theirs\n")
    person.git("checkout", "-q", "main")
    person.commit("page.md", "middle\n")
    person.commit("page.md", "ours\n")
    return adopted


@pytest.mark.parametrize("name", OPERATIONS)
def test_versions_wait_aside_and_land_once_when_it_has_ended(
    forked: History, person: Person, name: str
) -> None:
    """Branch, index and operation are left alone; the branch then gets one normal commit."""
    begin, operation, end = OPERATIONS[name]
    begin(person)
    state = forked.repository.state()
    assert state.operation == operation
    refs, index = person.git("for-each-ref"), person.git("ls-files", "-s")
    first = forked.save(("notes.md", b"version 1\n"))
    second = forked.save(("notes.md", b"version 2\n"), ("more.md", b"more\n"))
    assert (first.aside, second.aside) == (True, True)
    assert forked.save(("notes.md", b"version 2\n")).rev is None
    assert person.git("for-each-ref", "--exclude=refs/pcpd", check=False) in {refs, ""}
    assert person.git("for-each-ref", "refs/heads", "refs/stash") == "".join(
        line for line in refs.splitlines(keepends=True) if "refs/pcpd" not in line
    )
    assert person.git("ls-files", "-s") == index
    assert forked.repository.state().wip == 2
    assert forked.repository.is_aside()
    assert forked.repository.wip_files() == ()  # still under way
    assert forked.repository.show("notes.md", str(first.rev)) == b"version 1\n"
    assert [version.rev for version in forked.repository.log("notes.md")] == [second.rev, first.rev]

    for command in end:
        person.git(*command)
    waiting = forked.repository.wip_files()
    assert waiting == ("more.md", "notes.md")
    count = int(person.git("rev-list", "--count", "HEAD"))
    landed = forked.commit(*(Change(file, data=(forked.root / file).read_bytes()) for file in waiting))
    assert not landed.aside
    assert int(person.git("rev-list", "--count", "HEAD")) == count + 1
    assert person.git("show", "HEAD:notes.md") == "version 2\n"
    assert person.git("rev-parse", "HEAD^").strip() != second.rev
    assert forked.repository.wip_files() == ()
    assert forked.repository.state().wip == 0
    assert not forked.repository.is_aside()
    assert forked.repository.show("notes.md", str(first.rev)) == b"version 1\n"


def test_a_second_episode_begins_on_the_new_branch_and_keeps_the_first(
    forked: History, person: Person
) -> None:
    """Nothing that went aside is ever lost."""
    person.git("checkout", "-q", "--detach")
    first = forked.save(("a.md", b"first\n"))
    person.git("checkout", "-q", "main")
    forked.save(("a.md", b"first\n"))
    person.git("checkout", "-q", "--detach")
    second = forked.save(("b.md", b"second\n"))
    assert forked.repository.state().wip == 1
    person.git("merge-base", "--is-ancestor", str(first.rev), str(second.rev))
    assert person.git("rev-parse", f"{second.rev}^1") == person.git("rev-parse", "main")
    person.git("gc", "-q", "--prune=now")
    assert forked.repository.show("a.md", str(first.rev)) == b"first\n"


def test_what_the_person_settled_themselves_lands_without_a_commit(forked: History, person: Person) -> None:
    """They merged and committed all: nothing is left to commit, and nothing waits."""
    person.git("merge", "-q", "other", check=False)
    forked.save(("page.md", b"resolved\n"))
    person.git("commit", "-qam", "merged")
    assert forked.repository.wip_files() == ("page.md",)
    assert forked.commit(Change("page.md", data=b"resolved\n")).rev is None
    assert forked.repository.wip_files() == ()


def test_a_version_that_is_no_longer_on_disk_can_be_kept_aside(adopted: History, person: Person) -> None:
    """`aside=True` keeps it in reach, and the branch as it is."""
    done = adopted.commit(Change("page.md", data=b"was here\n"), aside=True)
    assert done.aside
    assert person.git("show", "HEAD:page.md") == "one\n"
    assert adopted.repository.show("page.md", str(done.rev)) == b"was here\n"
    assert adopted.repository.wip_files() == ("page.md",)


def test_two_devices_do_not_share_a_wip_ref(adopted: History, person: Person) -> None:
    """The ref is named for the device."""
    person.git("checkout", "-q", "--detach")
    assert adopted.save(("a.md", b"x")).ref == "refs/pcpd/dev1/wip"


def test_our_own_new_repository_gets_its_first_commit_on_the_branch(own: History, person: Person) -> None:
    """Unborn, but nobody else's."""
    assert own.repository.state().unborn
    assert own.save(("a.md", b"x")).ref == "refs/heads/main"
    person.git("checkout", "-q", "--orphan", "fresh")
    assert own.save(("a.md", b"y")).aside


def test_an_empty_repository_of_the_person_is_left_unborn(person: Person, history_of_empty: History) -> None:
    """Their first commit is theirs; then ours follows."""
    assert history_of_empty.save(("a.md", b"x")).aside
    person.commit("first.md", "theirs\n")
    assert history_of_empty.repository.wip_files() == ("a.md",)
    assert not history_of_empty.save(("a.md", b"x")).aside


@pytest.fixture
def history_of_empty(person: Person, open_history: Callable[..., History]) -> History:
    """`git init` by the person, and nothing more."""
    person.git("init", "-q")
    return open_history(person.folder)


@pytest.mark.parametrize("written", [b"garbage\n", b"\0" * 41, b"\xff\xfe", b""])
@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_a_ref_that_names_nothing_is_told_and_left_alone(own: History, written: bytes, name: str) -> None:
    """As after a lost power supply; once it is whole, history goes on."""
    first = own.save(("page.md", b"one\n")).rev
    path = own.root / ".git" / name
    whole = path.read_bytes()
    path.write_bytes(written)
    own.clock.ahead = 10.0
    with pytest.raises(Broken, match="names no commit") as broken:
        own.save(("page.md", b"two\n"))
    assert broken.value.code == "history.broken"
    assert path.read_bytes() == written
    path.write_bytes(whole)
    own.clock.ahead = 20.0
    second = own.save(("page.md", b"two\n")).rev
    assert second != first
    assert own.repository.log("page.md")[0].rev == second

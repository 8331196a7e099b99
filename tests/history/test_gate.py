"""When git or a person is at work in the repository, nothing is committed."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pcpd.history import layout, refs
from pcpd.history.locks import Locks
from pcpd.history.versions import Busy, Change, Moved
from tests.history.people import HOUR, NOW, Clock, History, Opener, Person


@pytest.fixture
def watched(person: Person, open_history: Opener) -> History:
    """An adopted vault, at rest, whose clock runs with the machine's from here."""
    person.git("init", "-q")
    person.commit("page.md", "one\n")
    history = open_history(person.folder)
    history.save(("page.md", b"two\n"))
    history.clock.ahead = 0.0
    return history


def test_our_own_commits_do_not_make_us_wait(watched: History) -> None:
    """Index and HEAD changed, but by us."""
    for number in range(3):
        assert watched.save(("page.md", b"%d\n" % number)).rev


@pytest.mark.parametrize("command", ["add", "checkout", "commit", "reset", "stash", "symbolic-ref"])
def test_for_two_seconds_after_a_person_used_git_nothing_is_committed(
    watched: History, person: Person, command: str
) -> None:
    """Whatever touched index or HEAD."""
    person.git("branch", "other")
    person.write("page.md", "changed\n")
    steps = {
        "add": ["add", "page.md"],
        "checkout": ["checkout", "-q", "other"],
        "commit": ["commit", "-q", "-am", "theirs"],
        "reset": ["reset", "-q", "--hard"],
        "stash": ["stash", "-q"],
        "symbolic-ref": ["symbolic-ref", "HEAD", "refs/heads/other"],
    }
    person.git(*steps[command])
    with pytest.raises(Busy) as busy:
        watched.save(("other.md", b"x\n"))
    assert 0 < busy.value.retry_ms <= 2000
    watched.clock.ahead = 2.1
    assert watched.save(("other.md", b"x\n")).rev


def test_a_lock_that_came_and_went_is_a_change(watched: History, person: Person) -> None:
    """Even where nothing else changed."""
    lock = person.folder / ".git" / "index.lock"
    lock.write_bytes(b"")
    with pytest.raises(Busy):
        watched.save(("page.md", b"x\n"))
    lock.unlink()
    with pytest.raises(Busy):
        watched.save(("page.md", b"x\n"))
    watched.clock.ahead = 2.1
    assert watched.save(("page.md", b"x\n")).rev


def test_publishing_waits_too(watched: History, person: Person) -> None:
    """What was built before the person began is not published under them."""
    prepared = watched.repository.build([watched.put("a.md", b"x")], message="x", now=NOW)
    person.write("b.md", "x")
    person.git("add", "b.md")
    with pytest.raises(Busy):
        watched.repository.publish(prepared)
    watched.clock.ahead = HOUR
    watched.repository.publish(prepared)
    assert person.status() == "A  b.md\n"


def test_a_branch_switched_under_a_commit_is_noticed(watched: History, person: Person) -> None:
    """The other branch is at the same commit, so that only HEAD tells."""
    person.git("branch", "other")
    prepared = watched.repository.build([watched.put("a.md", b"x")], message="x", now=NOW)
    person.git("symbolic-ref", "HEAD", "refs/heads/other")
    watched.clock.ahead = HOUR
    with pytest.raises(Moved):
        watched.repository.publish(prepared)
    watched.commit(Change("a.md", data=b"x"))
    assert person.git("rev-list", "--count", "main..other") == "1\n"


def test_during_a_checkout_nothing_of_the_other_branch_lands_on_this_one(
    person: Person, open_history: Opener
) -> None:
    """The work tree is the new branch's long before HEAD is: a slow filter holds a real checkout there."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells who holds a lock")
    person.git("init", "-q")
    person.commit("a.md", "main\n")
    person.git("checkout", "-q", "-b", "other")
    person.commit("a.md", "other\n")
    person.commit("z.slow", "slow\n")
    person.git("checkout", "-q", "main")
    gate = person.folder / ".git" / "go"
    subprocess.run(["mkfifo", str(gate)], check=True)
    person.git("config", "filter.slow.smudge", f"cat {gate} >/dev/null; cat")
    (person.folder / ".git" / "info" / "attributes").write_text("*.slow filter=slow\n")
    history = open_history(person.folder)
    going = subprocess.Popen(["git", "checkout", "-q", "other"], cwd=person.folder, env=dict(person.env))
    with gate.open("wb"):  # opens once the filter reads: the checkout is in the middle
        assert (person.folder / "a.md").read_bytes() == b"other\n"
        assert person.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
        with pytest.raises(Busy):
            history.commit(Change("a.md", data=b"other\n"))
    assert going.wait(timeout=60) == 0
    with pytest.raises(Busy):
        history.commit(Change("a.md", data=b"other\n"))
    history.clock.ahead += 3
    assert history.commit(Change("a.md", data=b"other\n")).rev is None
    assert person.git("rev-list", "--count", "main") == "1\n"


def test_an_old_lock_of_a_killed_git_does_not_stop_history(watched: History, person: Person) -> None:
    """Nobody holds it: after ten seconds history goes on, and says that it is there."""
    lock = person.folder / ".git" / "index.lock"
    script = f"import os; os.open({str(lock)!r}, os.O_CREAT | os.O_EXCL); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    watched.clock.ahead = 3.0 if Path("/proc/self/fd").is_dir() else 11.0
    with pytest.raises(Busy, match="held"):
        watched.save(("page.md", b"x\n"))
    watched.clock.ahead = 61.0
    assert watched.save(("page.md", b"x\n")).unsettled == ("page.md",)
    assert "remove it" in str(watched.repository.state().locked)
    assert lock.exists()


def test_a_repository_opened_in_the_middle_of_something_waits(person: Person, open_history: Opener) -> None:
    """The first look already counts what changed just before it."""
    person.git("init", "-q")
    person.commit("page.md", "one\n")
    with pytest.raises(Busy):
        open_history(person.folder, clock=Clock(ahead=0.0)).save(("page.md", b"x\n"))


def test_a_repository_that_was_just_made_need_not_come_to_rest(person: Person, open_history: Opener) -> None:
    """Its first commit follows at once."""
    assert open_history(person.folder, create=True, clock=Clock(ahead=0.0)).save(("page.md", b"x\n")).rev


def test_threads_that_build_and_publish_together_lose_nothing(own: History, person: Person) -> None:
    """One builds long work while the other commits; both end on the branch, in whatever order."""
    own.clock.ahead = 0.0

    def commit(name: str, count: int) -> None:
        for number in range(count):
            files = [
                own.put(f"{name}/{each}.md", b"%d\n" % number) for each in range(30 if name == "many" else 1)
            ]
            own.commit(*files)

    with ThreadPoolExecutor() as pool:
        for done in [
            pool.submit(commit, "many", 3),
            pool.submit(commit, "one", 10),
            pool.submit(commit, "two", 10),
        ]:
            done.result()
    assert person.git("rev-list", "--count", "HEAD").strip() == "23"
    assert person.status() == ""
    person.git("fsck", "--strict")


def test_a_ref_moves_only_from_where_it_was_expected(own: History, person: Person) -> None:
    """Also when it moves in the last moment, after every look at it."""
    where = layout.find(own.root)
    assert where is not None
    first, second = (str(own.save(("a.md", data)).rev) for data in (b"1", b"2"))
    locks = Locks(own.root.parent / "locks")
    for old in (first, None):
        with pytest.raises(Moved):
            refs.move(where, locks, "refs/heads/main", old=old, new=first, log="x")
    assert person.git("rev-parse", "HEAD").strip() == second
    assert not list((own.root / ".git").rglob("*.lock"))
    refs.move(where, locks, "refs/heads/main", old=second, new=first, log="x")
    assert person.git("rev-parse", "HEAD").strip() == first


def test_a_merge_that_began_since_building_sends_the_commit_aside(watched: History, person: Person) -> None:
    """HEAD and the branch are where they were."""
    watched.clock.ahead = HOUR
    person.git("checkout", "-q", "-b", "other")
    person.commit("page.md", "theirs\n")
    person.git("checkout", "-q", "main")
    person.commit("page.md", "ours\n")
    prepared = watched.repository.build([watched.put("a.md", b"x")], message="x", now=NOW)
    person.git("merge", "-q", "other", check=False)
    with pytest.raises(Moved):
        watched.repository.publish(prepared)
    assert watched.commit(Change("a.md", data=b"x")).aside

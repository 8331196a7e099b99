"""The person's index follows our commits, and nothing else in it changes."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from pcpd.history.index_entries import IndexEntries
from pcpd.history.versions import Busy
from tests.history.people import NOW, Clock, History, Opener, Person


def test_status_is_clean_after_our_commit_and_their_next_commit_keeps_our_version(
    adopted: History, person: Person
) -> None:
    """Without the index, their next commit of another file would put the old version back."""
    adopted.save(("page.md", b"two\n"), ("new.md", b"new\n"))
    assert person.status() == ""
    person.commit("other.md", "theirs\n")
    assert person.git("show", "HEAD:page.md") == "two\n"
    assert person.git("show", "HEAD:new.md") == "new\n"


def test_the_entries_carry_the_times_of_the_files(adopted: History, person: Person) -> None:
    """So that git need not read them again."""
    adopted.save(("page.md", b"two\n"))
    debug = person.git("ls-files", "--debug", "page.md")
    assert f"size: {len(b'two' + os.linesep.encode())}" in debug
    assert "mtime: 0:0" not in debug


def test_a_file_that_changed_since_is_shown_as_changed(adopted: History, person: Person) -> None:
    """The index says what was committed, not what is on disk later, of equal size and all."""
    change = adopted.put("page.md", b"two\n")
    adopted.put("page.md", b"six\n")
    adopted.commit(change)
    assert person.status() == " M page.md\n"


def test_staged_work_stays_staged(adopted: History, person: Person) -> None:
    """Of other files, of the committed file itself, staged additions, deletions and renames."""
    person.commit("gone.md", "gone\n")
    person.commit("moved.md", "moved\n")
    person.write("page.md", "staged\n")
    person.write("added.md", "added\n")
    person.git("add", "page.md", "added.md")
    person.git("rm", "-q", "gone.md")
    person.git("mv", "moved.md", "there.md")
    before = person.git("diff", "--cached", "--name-status", "--no-renames")
    adopted.save(("page.md", b"on disk\n"), ("unrelated.md", b"x\n"))
    assert person.git("diff", "--cached", "--name-status", "--no-renames") == before
    assert person.git("show", ":page.md") == "staged\n"
    assert person.git("show", "HEAD:page.md") == "on disk\n"
    assert person.git("show", ":unrelated.md") == "x\n"


def test_a_mode_that_the_person_staged_stays(adopted: History, person: Person) -> None:
    """An entry with another mode is not the old HEAD's."""
    person.git("update-index", "--chmod=+x", "page.md")
    adopted.save(("page.md", b"two\n"))
    assert person.git("ls-files", "-s", "page.md").startswith("100755")


def test_a_deletion_follows_and_a_file_the_person_unstaged_does_not_come_back(
    adopted: History, person: Person
) -> None:
    """`git rm --cached` is staged work too."""
    person.commit("untracked.md", "x\n")
    person.git("rm", "-q", "--cached", "untracked.md")
    adopted.save(("page.md", None), ("untracked.md", b"y\n"))
    assert person.git("ls-files") == ""
    assert person.git("ls-tree", "--name-only", "HEAD") == "untracked.md\n"


def test_assume_unchanged_stays_set(adopted: History, person: Person) -> None:
    """The person's mark on a file survives."""
    person.git("update-index", "--assume-unchanged", "page.md")
    adopted.save(("page.md", b"two\n"))
    assert person.git("ls-files", "-v", "page.md") == "h page.md\n"


def test_many_entries_follow_too(adopted: History, person: Person) -> None:
    """More than libgit2 sets one by one."""
    adopted.save(*((f"n/{number}.md", b"x\n") for number in range(1100)), ("page.md", None))
    assert person.status() == ""
    assert "mtime: 0:0" not in person.git("ls-files", "--debug", "n/7.md")


def test_while_the_lock_is_held_entries_wait_on_disk_and_follow_later(
    adopted: History, person: Person, open_history: Opener
) -> None:
    """A lock that nobody living holds does not stop history; the entries are reported, and survive a restart."""
    lock = person.folder / ".git" / "index.lock"
    lock.write_bytes(b"")
    first = adopted.save(("page.md", b"two\n"))
    second = adopted.save(("page.md", b"three\n"), ("new.md", b"new\n"))
    assert first.unsettled == ("page.md",)
    assert second.unsettled == ("new.md", "page.md")
    assert person.git("show", "HEAD:page.md") == "three\n"
    assert adopted.repository.state().unsettled == 2
    assert "index.lock is held for" in str(adopted.repository.state().locked)
    assert lock.exists()
    adopted.repository.close()
    again = open_history(person.folder)
    assert again.repository.settle() == ("new.md", "page.md")
    lock.unlink()
    assert again.repository.settle() == ()
    assert person.status() == ""
    assert again.repository.state().locked is None


def test_what_waited_is_dropped_where_the_person_went_on(adopted: History, person: Person) -> None:
    """They staged the file meanwhile, or committed another version of it."""
    lock = person.folder / ".git" / "index.lock"
    person.commit("other.md", "one\n")
    lock.write_bytes(b"")
    adopted.save(("page.md", b"two\n"), ("other.md", b"two\n"))
    lock.unlink()
    person.write("page.md", "staged\n")
    person.git("add", "page.md")
    person.commit("other.md", "by hand\n")
    assert adopted.repository.settle() == ()
    assert person.git("show", ":page.md") == "staged\n"
    assert person.git("show", ":other.md") == "by hand\n"


def test_a_lock_that_a_living_process_holds_is_waited_for_with_growing_waits(
    adopted: History, person: Person
) -> None:
    """However old it is: a long checkout holds it."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux tells who holds a file")
    lock = person.folder / ".git" / "index.lock"
    waits = []
    with lock.open("wb"):
        for _ in range(3):
            with pytest.raises(Busy) as busy:
                adopted.save(("page.md", b"two\n"))
            waits.append(busy.value.retry_ms)
    assert waits == sorted(set(waits))
    assert person.git("show", "HEAD:page.md") == "one\n"
    lock.unlink()
    with pytest.raises(Busy):
        adopted.save(("page.md", b"two\n"))
    adopted.clock.ahead += 3
    assert adopted.save(("page.md", b"two\n")).unsettled == ()


def test_a_held_ref_lock_is_waited_for_and_never_removed(adopted: History, person: Person) -> None:
    """The commit is whole or not at all; nothing is doubled afterwards."""
    lock = person.folder / ".git" / "refs" / "heads" / "main.lock"
    lock.write_bytes(b"")
    with pytest.raises(Busy, match=r"main\.lock"):
        adopted.save(("page.md", b"two\n"))
    assert lock.exists()
    assert person.git("show", "HEAD:page.md") == "one\n"
    adopted.repository.settle()
    assert person.status() == " M page.md\n"  # nothing is staged for a commit that did not come about
    lock.unlink()
    adopted.save(("page.md", b"two\n"))
    assert person.git("rev-list", "--count", "HEAD") == "2\n"
    assert person.status() == ""


def test_an_index_that_changes_between_building_and_publishing_is_looked_at_again(
    adopted: History, person: Person
) -> None:
    """What the person staged in between is not lost."""
    prepared = adopted.repository.build([adopted.put("page.md", b"two\n")], message="x", now=NOW)
    person.write("added.md", "added\n")
    person.git("add", "added.md")
    adopted.repository.publish(prepared)
    assert person.status() == "A  added.md\n"
    assert person.git("show", "HEAD:page.md") == "two\n"


def test_a_repository_without_an_index_gets_one(adopted: History, person: Person) -> None:
    """As after `rm .git/index`: only what we committed is put into it."""
    (person.folder / ".git" / "index").unlink()
    with pytest.raises(Busy):
        adopted.save(("new.md", b"x\n"))
    adopted.clock.ahead += 3
    adopted.save(("new.md", b"x\n"))
    assert person.git("ls-files") == "new.md\n"


def test_the_person_stays_able_to_use_the_index(own: History, person: Person) -> None:
    """Permissions and form are git's."""
    own.save(("a.md", b"1"))
    index = person.folder / ".git" / "index"
    mode = index.stat().st_mode
    own.save(("a.md", b"2"))
    assert index.stat().st_mode == mode
    assert person.git("fsck", "--strict") == ""
    person.git("update-index", "--really-refresh")


def test_clocks_that_jump_do_not_block_for_ever(person: Person, open_history: Opener) -> None:
    """An index from the future counts as changed now, once."""
    person.git("init", "-q")
    person.commit("page.md", "one\n")
    clock = Clock(ahead=-9 * 3600.0)
    history = open_history(person.folder, clock=clock)
    with pytest.raises(Busy):
        history.save(("page.md", b"two\n"))
    clock.ahead += 3
    history.save(("page.md", b"two\n"))


def test_unmerged_entries_are_never_touched(adopted: History, person: Person) -> None:
    """Not even those of a file that waits for its entry."""
    lock = person.folder / ".git" / "index.lock"
    lock.write_bytes(b"")
    adopted.save(("new.md", b"ours\n"))
    lock.unlink()
    blob = person.git("rev-parse", "HEAD:new.md").strip()
    person.git("update-index", "--index-info", stdin=f"100644 {blob} 2\tnew.md\n100644 {blob} 3\tnew.md\n")
    assert adopted.repository.settle() == ()
    assert len(person.git("ls-files", "-u", "new.md").splitlines()) == 2


def test_a_commit_that_came_about_without_its_entries_is_completed_by_repeating_it(
    adopted: History, person: Person, open_history: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the branch and the index."""
    with monkeypatch.context() as broken:
        broken.setattr(IndexEntries, "settle", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            adopted.save(("page.md", b"two\n"))
    assert person.status() == "MM page.md\n"
    again = open_history(person.folder)
    assert again.save(("page.md", b"two\n")).rev is None
    assert person.status() == ""


def test_only_a_lock_that_is_provably_ours_is_removed(
    adopted: History, person: Person, open_history: Opener
) -> None:
    """A killed owner's goes; another program's that came meanwhile stays."""
    locks = person.folder / ".git" / "pcpd" / "ctx_1_a" / "locks"
    locks.mkdir(parents=True)
    ours, theirs = (person.folder / ".git" / name for name in ("index.lock", "HEAD.lock"))
    (locks / quote("../../../index.lock", safe="")).write_bytes(b"")
    ours.hardlink_to(locks / quote("../../../index.lock", safe=""))
    (locks / quote("../../../HEAD.lock", safe="")).write_bytes(b"")
    theirs.write_bytes(b"")
    open_history(person.folder)
    assert not ours.exists()
    assert theirs.exists()
    assert not list(locks.iterdir())


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt

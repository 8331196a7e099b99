"""What is committed is what came to rest on disk, on libgit2 and on the git program alike."""

import os
import unicodedata
from pathlib import Path

import pytest

from pcpd.errors import NotFound
from pcpd.history.layout import make
from pcpd.history.packing import LOOSE, PACKS
from pcpd.history.versions import Change, Moved
from tests.history.people import NOW, History, Opener, Person


@pytest.fixture(params=["libgit2", "program"])
def history(request: pytest.FixtureRequest, person: Person, open_history: Opener) -> History:
    """A vault of pcpd's own making, and one that libgit2 cannot open (SHA-256)."""
    if request.param == "libgit2":
        return open_history(person.folder, create=True)
    person.git("init", "-q", "--object-format=sha256")
    person.commit("first.txt", "by hand\n")
    return open_history(person.folder)


def test_every_byte_is_committed_and_shown_again(history: History, person: Person) -> None:
    """CRLF, NUL, no last newline, no bytes at all."""
    pages = {
        "a.md": b"one\r\ntwo\r\n\r\n",
        "deep/er/b.bin": bytes(range(256)),
        "empty.md": b"",
        "c.md": b"no newline",
    }
    done = history.save(*pages.items())
    assert done.rev
    assert person.status() == ""
    for file, data in pages.items():
        assert history.repository.show(file, done.rev) == data
    assert history.repository.head_files().keys() >= pages.keys()
    person.git("fsck", "--strict")


def test_a_version_that_is_larger_than_asked_for_is_not_read(history: History) -> None:
    """Whatever the person put under that name once; what is just as large comes."""
    rev = str(history.save(("a.md", b"x" * 1000)).rev)
    assert history.repository.show("a.md", rev, limit=1000) == b"x" * 1000
    with pytest.raises(NotFound) as caught:
        history.repository.show("a.md", rev, limit=999)
    assert caught.value.code == "history.no-version"


def test_two_stored_texts_are_compared_without_their_names(history: History, person: Person) -> None:
    """Git's hunks alone, also where the person has git colour everything; a text may look like a hunk."""
    person.git("config", "color.ui", "always")
    person.git("config", "diff.noprefix", "true")
    old, new = (history.repository.store("a.md", data) for data in (b"1\n@@ x\n2\n", b"1\n@@ x\n3\n"))
    assert history.repository.compare(old, new) == "@@ -1,3 +1,3 @@\n 1\n @@ x\n-2\n+3\n"
    assert history.repository.compare(old, old) == ""
    binary = history.repository.store("a.md", b"\0\1")
    assert history.repository.compare(old, binary) == "Binary files differ\n"


def test_a_commit_carries_our_name_and_the_principal(history: History, person: Person) -> None:
    """Author and committer are pcpd; who acted stands in the trailer."""
    done = history.save(("a.md", b"x"), message="a: written", principal="agent:claude\nFake: x")
    assert person.git("log", "-1", "--format=%an|%ae|%cn|%s").strip() == "pcpd|pcpd@localhost|pcpd|a: written"
    assert person.git("log", "-1", "--format=%ct").strip() == str(int(NOW.timestamp()))
    [version] = history.repository.log("a.md")
    assert (version.rev, version.principal, version.at) == (done.rev, "agent:claude Fake: x", NOW)


def test_what_is_as_it_was_makes_no_commit(history: History, person: Person) -> None:
    """Repeating a commit is nothing; a mix commits only what changed."""
    history.save(("a.md", b"x"), ("b.md", b"y"))
    before = person.git("rev-parse", "HEAD")
    again = history.save(("a.md", b"x"), ("gone.md", None))
    assert again.rev is None
    assert set(again.skipped_unchanged) == {"a.md", "gone.md"}
    assert person.git("rev-parse", "HEAD") == before
    mixed = history.save(("a.md", b"x"), ("b.md", b"z"))
    assert mixed.skipped_unchanged == ("a.md",)
    assert person.git("diff-tree", "--name-only", "-r", "HEAD~", "HEAD") == "b.md\n"


def test_stored_versions_can_be_committed_later(history: History) -> None:
    """`store` keeps the bytes; the commit names the blob."""
    oid = history.repository.store("a.md", b"early")
    assert oid == history.repository.blob_id(b"early")
    history.put("a.md", b"later")
    done = history.commit(Change("a.md", oid))
    assert history.repository.show("a.md", str(done.rev)) == b"early"


def test_deletions_empty_folders_and_files_that_become_folders(history: History, person: Person) -> None:
    """Trees follow in every order of changes."""
    history.save(("a", b"file"), ("b/c/d.md", b"deep"), ("b/x.md", b"x"))
    (history.root / "a").unlink()
    (history.root / "a").mkdir()
    (history.root / "a" / "inner.md").write_bytes(b"inner")
    (history.root / "b" / "c" / "d.md").unlink()
    history.commit(Change("a"), Change("a/inner.md", data=b"inner"), Change("b/c/d.md"))
    assert set(history.repository.head_files()) - {"first.txt"} == {"a/inner.md", "b/x.md"}
    (history.root / "a" / "inner.md").unlink()
    (history.root / "a").rmdir()
    (history.root / "a").write_bytes(b"file again")
    history.commit(Change("a", data=b"file again"), Change("a/inner.md"))
    assert set(history.repository.head_files()) - {"first.txt"} == {"a", "b/x.md"}
    (history.root / "b" / "c").rmdir()
    assert person.status() == ""
    person.git("fsck", "--strict")


def test_many_files_go_in_one_commit(history: History, person: Person) -> None:
    """Fast-import serves them, with deletions, folders that take a file's place, and hostile names."""
    names = [f"n/{number}.md" for number in range(60)] + [
        'q"uote\\ back.md',
        "-dash.md",
        "new\nline.md",
        " lead.md",
        "tab\t.md",
    ]
    history.save(("a", b"file"), ("n/0.md", b"old"))
    (history.root / "a").unlink()
    changes = [history.put(name, name.encode() + b"\n") for name in names]
    done = history.commit(Change("a"), history.put("a/b.md", b"in folder"), *changes)
    assert history.repository.head_files().keys() - {"first.txt"} == {*names, "a/b.md"}
    assert all(history.repository.show(name, str(done.rev)) == name.encode() + b"\n" for name in names)
    assert person.status() == ""
    assert not person.git("for-each-ref", "refs/pcpd")
    person.git("fsck", "--strict")
    assert history.commit(*changes).rev is None


def test_a_name_that_is_no_utf8_is_kept(history: History, person: Person) -> None:
    """Its bytes are what git holds."""
    name = os.fsdecode(b"caf\xe9.md")
    done = history.save((name, b"latin"), ("plain.md", b"x"))
    assert history.repository.show(name, str(done.rev)) == b"latin"
    assert name in history.repository.head_files()
    assert person.status() == ""
    [version] = history.repository.log(name)
    assert version.file == name
    history.save((name, b"again"), message=f"{name} changed")
    assert "changed" in person.git("log", "-1", "--format=%s")


@pytest.mark.parametrize(
    "name",
    [".git/config", ".GIT/x", "a/.Git", "git~1", "a/git~1/b", ".git::$INDEX_ALLOCATION", ".git .md/../x", "../out.md",
     "a//b", "/abs.md", "x/.git./y", ".g\u200cit/x", "a\\.git\\config"],
)  # fmt: skip
def test_names_that_git_cannot_hold_are_reported(history: History, name: str) -> None:
    """The rest of the commit goes on, few files or many."""
    done = history.commit(Change(name, data=b"evil"), history.put("good.md", b"good"))
    assert [refused.file for refused in done.refused] == [name]
    assert done.refused[0].reason
    assert "good.md" in history.repository.head_files()


def test_git_keeps_the_spelling_that_head_has(history: History, person: Person) -> None:
    """A name in another Unicode form is the same file where the disk has only one of the two."""
    composed, decomposed = (unicodedata.normalize(form, "é/ü.md") for form in ("NFC", "NFD"))
    history.save((decomposed, b"one"))
    for part in (decomposed, decomposed.partition("/")[0]):
        path = history.root / part
        path.unlink() if path.is_file() else path.rmdir()
    done = history.commit(history.put(composed, b"two"), Change(decomposed))
    assert [file for file in history.repository.head_files() if "md" in file] == [decomposed]
    assert history.repository.show(composed, str(done.rev)) == b"two"
    assert history.commit(Change(decomposed)).rev is None  # not deleted: spelled otherwise on disk


def test_two_spellings_on_disk_are_two_files(history: History) -> None:
    """Where the file system holds both, git does too."""
    composed, decomposed = (unicodedata.normalize(form, "ü.md") for form in ("NFC", "NFD"))
    history.save((decomposed, b"one"))
    history.put(composed, b"two")
    if (history.root / decomposed).samefile(history.root / composed):
        pytest.skip("needs a file system that keeps both spellings")
    history.save((composed, b"two"))
    assert {composed, decomposed} <= history.repository.head_files().keys()


def test_mode_bits_are_no_change_and_stay_as_head_has_them(history: History, person: Person) -> None:
    """A new file may come executable; afterwards the bit is HEAD's."""
    history.commit(Change("run.sh", data=b"1", executable=True), Change("page.md", data=b"1"))
    history.put("run.sh", b"1")
    assert history.commit(Change("run.sh", data=b"1")).rev is None
    history.commit(Change("run.sh", data=b"2"), Change("page.md", data=b"2", executable=True))
    listed = person.git("ls-tree", "HEAD", "run.sh", "page.md")
    assert listed.startswith("100644 blob") is True
    assert "100755 blob" in listed


def test_a_commit_for_a_branch_that_moved_is_built_again(history: History, person: Person) -> None:
    """`publish` refuses; `commit` builds on the new tip."""
    history.save(("a.md", b"1"))
    prepared = history.repository.build([history.put("a.md", b"2")], message="late", now=NOW)
    person.commit("other.md", "theirs")
    with pytest.raises(Moved):
        history.repository.publish(prepared)
    history.commit(Change("a.md", data=b"2"))
    assert person.git("log", "--format=%s").splitlines()[:2] == ["pages changed", "by hand"]
    assert person.status() == ""
    assert not list((history.root / ".git" / "pcpd" / "ctx_1_a").glob("index-*"))


def test_content_decides_whether_a_file_differs(history: History) -> None:
    """Against what the branch has."""
    history.save(("a.md", b"1"))
    assert not history.repository.differs("a.md", b"1")
    assert history.repository.differs("a.md", b"2")
    assert history.repository.differs("new.md", b"")


def test_packing_keeps_everything(own: History, person: Person) -> None:
    """Even what no ref reaches: a version that was stored and not committed yet."""
    oid = own.repository.store("kept.md", b"not committed yet")
    assert not own.repository.maintain()
    counted = [
        data for data in map(b"%d".__mod__, range(5000)) if own.repository.blob_id(data).startswith("17")
    ]
    for data in counted[: LOOSE + 1]:
        own.repository.store("a.md", data)
    assert own.repository.maintain()
    assert person.git("count-objects").startswith("0 objects")
    own.commit(Change("kept.md", oid))
    person.git("fsck", "--strict")
    assert not own.repository.maintain()


def test_many_packs_become_fewer(own: History, person: Person) -> None:
    """Each commit of many files leaves a pack."""
    for number in range(PACKS + 1):
        own.save(*((f"{file}.md", b"%d" % number) for file in range(20)))
    assert own.repository.maintain()
    assert len(list((own.root / ".git" / "objects" / "pack").glob("*.pack"))) < PACKS
    assert own.repository.show("3.md", "HEAD~7") == b"%d" % (PACKS - 7)
    assert person.git("rev-list", "--count", "HEAD").strip() == str(PACKS + 1)


def test_a_repository_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """No half-made .git, no folder left over; raw bytes are asked for in it."""
    made = make(tmp_path, "ctx_1_a")
    assert [path.name for path in tmp_path.iterdir()] == [".git"]
    assert made.kind == "own"
    assert b"* -text" in (tmp_path / ".git" / "info" / "attributes").read_bytes()
    assert not list((tmp_path / ".git" / "hooks").glob("*")) or (tmp_path / ".git" / "hooks").is_dir()

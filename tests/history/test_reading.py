"""The log follows renames and pages on; versions and differences come back as they were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import NotFound, Usage
from pcpd.history import bulk, names, reading
from pcpd.history.versions import Change
from tests.history.people import History, Person


def test_the_log_of_a_file_follows_its_renames(own: History, person: Person) -> None:
    """Ours and the person's."""
    text = b"".join(b"line %d\n" % number for number in range(20))
    first = own.save(("a.md", text), message="written", principal="agent:claude")
    own.put("a.md", None)
    second = own.save(("folder/b.md", text), ("a.md", None), message="moved")
    person.git("mv", "folder/b.md", "c.md")
    person.git("commit", "-q", "-m", "moved by hand")
    own.save(("c.md", text + b"more\n"))
    found = own.repository.log("c.md")
    assert [(version.file, version.change) for version in found] == [
        ("c.md", "modified"), ("c.md", "renamed"), ("folder/b.md", "renamed"), ("a.md", "added"),
    ]  # fmt: skip
    assert [version.author for version in found] == ["pcpd", "Sam", "pcpd", "pcpd"]
    assert found[-1].principal == "agent:claude"
    assert own.repository.show("a.md", str(first.rev)) == text
    assert own.repository.show("folder/b.md", str(second.rev)) == text


def test_a_new_file_does_not_inherit_the_history_of_one_with_equal_bytes(own: History) -> None:
    """Git would follow a copy, were the file but empty."""
    own.save(("a.md", b""), ("t.md", b"same text\n"))
    own.save(("b.md", b""), ("u.md", b"same text\n"))
    assert len(own.repository.log("b.md")) == 1
    assert len(own.repository.log("u.md")) == 1


def test_a_removed_file_has_a_log(own: History) -> None:
    """Its last entry is the removal; what it held can be shown."""
    done = own.save(("a.md", b"x"))
    own.save(("a.md", None))
    assert [version.change for version in own.repository.log("a.md")] == ["removed", "added"]
    with pytest.raises(NotFound):
        own.repository.show("a.md", "HEAD")
    assert own.repository.show("a.md", str(done.rev)) == b"x"


@pytest.mark.parametrize("file", ["a.md", None])
def test_the_log_pages_to_its_end(own: History, file: str | None) -> None:
    """`before` is the last one's rev; each version comes once."""
    revs = [own.save(("a.md", b"%d\n" % number)).rev for number in range(7)]
    pages, before = [], None
    while page := own.repository.log(file, limit=3, before=before):
        pages.append([version.rev for version in page])
        before = page[-1].rev
    assert pages == [revs[:3:-1], revs[3:0:-1], revs[:1]]
    with pytest.raises(NotFound):
        own.repository.log(file, before="0" * 40)
    assert own.repository.log(file, limit=0) == []


def test_an_empty_history_and_an_unknown_file_have_no_versions(own: History) -> None:
    """Neither is an error."""
    assert own.repository.log() == []
    assert own.repository.head_files() == {}
    own.save(("a.md", b"x"))
    assert own.repository.log("b.md") == []


def test_a_merge_by_the_person_shows_what_it_changed(adopted: History, person: Person) -> None:
    """Against the branch that it was merged into; both sides' versions are listed."""
    person.git("checkout", "-q", "-b", "other")
    person.commit("page.md", "theirs\n")
    person.git("checkout", "-q", "main")
    adopted.save(("else.md", b"x\n"))
    person.git("merge", "-q", "--no-edit", "other")
    assert [version.subject for version in adopted.repository.log("page.md")][-2:] == ["by hand", "by hand"]


@pytest.mark.parametrize("rev", ["", "-p", "--all", "HEAD:a.md", "a b", "x\0y", "HEAD\n", "y" * 400])
def test_words_that_name_no_version_are_refused(own: History, rev: str) -> None:
    """Before git sees them."""
    own.save(("a.md", b"x"))
    with pytest.raises(Usage):
        own.repository.show("a.md", rev)


def test_versions_can_be_named_as_git_names_them(own: History, person: Person) -> None:
    """Full, short, relative, branch, tag; unknown ones are not found."""
    first = str(own.save(("a.md", b"1")).rev)
    own.save(("a.md", b"2"))
    person.git("tag", "-a", "-m", "x", "v1", first)
    for rev in (first, first[:8], "HEAD~1", "main^", "v1"):
        assert own.repository.resolve(rev) == first
    for rev in ("nonsense", "HEAD~9", "deadbeef", "0" * 40):
        with pytest.raises(NotFound):
            own.repository.resolve(rev)


def test_differences_are_gits_own_text(own: History, person: Person) -> None:
    """Between versions, to the branch, to the disk; also of a file that is not there."""
    first = str(own.save(("a.md", b"1\n"), ("b.md", b"b\n")).rev)
    second = str(own.save(("a.md", b"2\n")).rev)
    assert own.repository.diff("a.md", first, second) == person.git("diff", first, second, "--", "a.md")
    assert own.repository.diff(None, first, second) == person.git("diff", first, second)
    assert own.repository.diff("a.md") == ""
    own.put("a.md", b"3\n")
    assert "-2\n+3\n" in own.repository.diff("a.md")
    assert "-1\n+3\n" in own.repository.diff("a.md", first)
    assert "-2\n+3\n" in own.repository.diff(None)
    own.put("a.md", None)
    assert "deleted file" in own.repository.diff("a.md")
    own.put("new.md", b"new\n")
    assert "+new" in own.repository.diff("new.md")
    assert own.repository.diff("none.md") == ""


def test_a_link_out_of_the_vault_is_not_read_for_a_difference(own: History) -> None:
    """Neither the file nor a folder on its way."""
    outside = own.root.parent / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret\n")
    own.save(("a.md", b"1\n"), ("sub/a.md", b"1\n"))
    own.put("a.md", None)
    own.put("sub/a.md", None)
    (own.root / "sub").rmdir()
    (own.root / "a.md").symlink_to(outside / "a.md")
    (own.root / "sub").symlink_to(outside)
    assert "secret" not in own.repository.diff("a.md") + own.repository.diff("sub/a.md")


def test_what_git_lists_is_read_whatever_names_hold() -> None:
    """A name may look like a header or like a status."""
    header = "\x01{}\0{}\0Sam\0\x01subject\0{}\0\0"
    out = (
        header.format("a" * 40, 5, "agent:x") + "\nM\0\x01evil\0R90\0M\0A\0"
        + header.format("b" * 40, 6, "") + header.format("c" * 40, 7, "") + "\nD\0\n\0"
    ).encode()  # fmt: skip
    found = [version for version, _ in reading.versions(out)]
    assert [(version.rev[0], version.file, version.change) for version in found] == [
        ("a", "\x01evil", "modified"), ("b", "", ""), ("c", "\n", "removed"),
    ]  # fmt: skip


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_quoted_names_hold_no_byte_that_ends_a_command(raw: bytes) -> None:
    """And only printable ASCII."""
    import os

    quoted = bulk.quoted(os.fsdecode(raw))
    assert quoted[:1] == quoted[-1:] == b'"'
    assert all(0x20 <= byte < 0x7F for byte in quoted)
    assert eval(b"b" + quoted) == raw  # noqa: S307 - Python reads the same escapes


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_name_is_fit_or_has_a_reason(text: str) -> None:
    """And what is fit never leads out of the vault or into git's folder."""
    reason = names.unfit(text)
    segments = text.lower().split("/")
    if {"", "..", ".", ".git", "git~1"} & set(segments):
        assert reason
    assert names.unfit("plain/" + "x" * 5000)
    assert Change(text).is_deletion

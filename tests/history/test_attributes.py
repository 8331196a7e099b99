"""Line endings, filters and attributes: bytes as on disk, unless the person's attributes ask for more."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pcpd.errors import Invalid
from pcpd.history.attributes import Conversion, conversion
from pcpd.history.versions import Change
from tests.history.people import History, Opener, Person

ROT = "tr A-Za-z N-ZA-Mn-za-m"


@pytest.fixture
def filtered(adopted: History, person: Person) -> History:
    """A vault whose secret folder goes through a filter of the person's."""
    person.git("config", "filter.rot.clean", ROT)
    person.git("config", "filter.rot.smudge", ROT)
    person.commit(".gitattributes", "secret/** filter=rot\n")
    return adopted


@pytest.mark.parametrize("setting", ["true", "input", "false"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_in_our_own_repositories_every_setting_leaves_the_bytes(
    own: History, person: Person, setting: str, ending: str
) -> None:
    """core.autocrlf, core.eol, core.safecrlf, text attributes of the person's whole account."""
    person.git("config", "--global", "core.autocrlf", setting)
    person.git("config", "--global", "core.safecrlf", "true")
    attributes = Path(person.env["HOME"]) / "attributes"
    attributes.write_text("* text=auto\n*.md text eol=lf\n")
    person.git("config", "--global", "core.attributesFile", str(attributes))
    data = f"one{ending}two{ending}mixed\r\n\n".encode()
    done = own.save(("page.md", data))
    assert own.repository.show("page.md", str(done.rev)) == data
    assert person.git("cat-file", "-s", "HEAD:page.md").strip() == str(len(data))
    assert person.status() == ""
    assert own.save(("page.md", data)).rev is None


@pytest.mark.parametrize("setting", ["true", "input"])
def test_settings_alone_never_make_a_page_look_changed(
    adopted: History, person: Person, setting: str
) -> None:
    """A checkout under core.autocrlf puts CRLF on disk where HEAD has LF: that is no change."""
    person.git("config", "core.autocrlf", setting)
    assert not adopted.repository.differs("page.md", b"one\r\n")
    assert adopted.save(("page.md", b"one\r\n")).rev is None
    done = adopted.save(("page.md", b"one\r\ntwo\r\n"))
    assert person.git("cat-file", "-s", "HEAD:page.md").strip() == "8"
    assert person.status() == ""
    shown = adopted.repository.show("page.md", str(done.rev))
    assert shown == (b"one\r\ntwo\r\n" if setting == "true" else b"one\ntwo\n")


def test_new_pages_keep_their_bytes_under_settings(adopted: History, person: Person) -> None:
    """Only attributes ask for a conversion; git's own rule then leaves such a file alone."""
    person.git("config", "core.autocrlf", "input")
    adopted.save(("new.md", b"one\r\n"))
    assert person.git("cat-file", "-s", "HEAD:new.md").strip() == "5"
    assert person.status() == ""
    adopted.save(("new.md", b"one\r\ntwo\r\n"))
    assert person.git("cat-file", "-s", "HEAD:new.md").strip() == "10"


@pytest.mark.parametrize(
    "rule", ["*.md eol=lf", "*.md text", "* text=auto", "*.md crlf", "*.md text=auto eol=lf"]
)
def test_attributes_about_line_endings_go_through_gits_own_step(
    adopted: History, person: Person, rule: str
) -> None:
    """A raw blob would leave `git status` dirty for ever."""
    person.commit(".gitattributes", f"{rule}\n")
    adopted.save(("page.md", b"one\r\ntwo\r\n"), ("lf.md", b"x\n"))
    assert person.git("cat-file", "-s", "HEAD:page.md").strip() == "8"
    assert person.status() == ""
    assert not adopted.repository.differs("page.md", b"one\r\ntwo\r\n")
    assert adopted.save(("page.md", b"one\r\ntwo\r\n")).rev is None


def test_eol_crlf_is_shown_as_it_was_on_disk(adopted: History, person: Person) -> None:
    """The blob has LF, the disk CRLF."""
    person.commit(".gitattributes", "*.md eol=crlf\n")
    done = adopted.save(("page.md", b"one\r\ntwo\r\n"))
    assert adopted.repository.show("page.md", str(done.rev)) == b"one\r\ntwo\r\n"


def test_ident_and_encodings_go_through_gits_own_step(adopted: History, person: Person) -> None:
    """`$Id$` is collapsed, UTF-16 stored as UTF-8, and both come back."""
    person.commit(".gitattributes", "*.id ident\n*.utf16 working-tree-encoding=UTF-16LE eol=lf\n")
    done = adopted.save(("a.id", b"$Id: something $\n"), ("b.utf16", "é\n".encode("utf-16-le")))
    assert person.git("show", "HEAD:a.id") == "$Id$\n"
    assert person.git("show", "HEAD:b.utf16") == "é\n"
    assert adopted.repository.show("b.utf16", str(done.rev)) == "é\n".encode("utf-16-le")
    assert person.status() == ""


@pytest.mark.parametrize("count", [1, 60])
def test_a_filtered_file_is_never_stored_in_clear(filtered: History, person: Person, count: int) -> None:
    """Neither in the commit nor anywhere else in the repository; it is shown as it is on disk."""
    done = filtered.save(*((f"secret/{number}.md", b"hidden %d\n" % number) for number in range(count)))
    assert person.git("show", "HEAD:secret/0.md") == "uvqqra 0\n"
    assert person.status() == ""
    assert filtered.repository.show("secret/0.md", str(done.rev)) == b"hidden 0\n"
    assert not filtered.repository.differs("secret/0.md", b"hidden 0\n")
    assert filtered.save(("secret/0.md", b"hidden 0\n")).rev is None
    filtered.repository.diff("secret/0.md", str(done.rev))
    assert b"hidden" not in _all_objects(person)


def test_storing_early_filters_too(filtered: History, person: Person) -> None:
    """`store` is the same step."""
    oid = filtered.repository.store("secret/a.md", b"hidden\n")
    filtered.put("secret/a.md", b"hidden\n")
    filtered.commit(Change("secret/a.md", oid))
    assert person.git("show", "HEAD:secret/a.md") == "uvqqra\n"
    assert b"hidden" not in _all_objects(person)


@pytest.mark.parametrize("fault", ["not configured", "failing", "missing program"])
def test_a_filter_that_cannot_run_keeps_the_file_out_and_says_so(
    filtered: History, person: Person, fault: str
) -> None:
    """Git itself would store it in clear; the rest of the commit goes on."""
    if fault == "not configured":
        person.git("config", "--remove-section", "filter.rot")
    else:
        person.git("config", "filter.rot.clean", "false" if fault == "failing" else "/no/such/program")
    done = filtered.save(("secret/a.md", b"hidden\n"), ("open.md", b"open\n"))
    assert [refused.file for refused in done.refused] == ["secret/a.md"]
    assert "filter" in done.refused[0].reason
    assert person.git("show", "HEAD:open.md") == "open\n"
    with pytest.raises(Invalid, match="filter"):
        filtered.repository.store("secret/a.md", b"hidden\n")
    assert filtered.repository.differs("secret/a.md", b"hidden\n")
    assert b"hidden" not in _all_objects(person)


def test_a_locked_file_as_checked_out_is_no_change(filtered: History, person: Person) -> None:
    """A clone without the filter has HEAD's own bytes on disk."""
    filtered.save(("secret/a.md", b"hidden\n"))
    person.git("config", "--remove-section", "filter.rot")
    assert filtered.save(("secret/a.md", b"uvqqra\n")).refused == ()
    assert not filtered.repository.differs("secret/a.md", b"uvqqra\n")


def test_attributes_that_only_the_index_or_head_has_count(filtered: History, person: Person) -> None:
    """Deleting .gitattributes from the disk does not open the secrets."""
    (person.folder / ".gitattributes").unlink()
    filtered.save(("secret/a.md", b"hidden\n"))
    assert b"hidden" not in _all_objects(person)


def test_attributes_in_a_sub_folder_and_in_the_account_count(adopted: History, person: Person) -> None:
    """Wherever git looks for them: nested files, macros, info/attributes, the person's own file."""
    for key in ("clean", "smudge"):
        person.git("config", f"filter.rot.{key}", ROT)
    person.write("deep/.gitattributes", "*.md filter=rot\n")
    config = Path(person.env["HOME"]) / ".config" / "git"
    config.mkdir(parents=True)
    (config / "attributes").write_text("*.key filter=rot\n")
    (person.folder / ".git" / "info" / "attributes").write_text("[attr]hush filter=rot\n*.hush hush\n")
    adopted.save(
        ("deep/er/a.md", b"hidden\n"), ("b.key", b"hidden\n"), ("c.hush", b"hidden\n"), ("d.md", b"open\n")
    )
    assert b"hidden" not in _all_objects(person)
    assert person.git("show", "HEAD:d.md") == "open\n"


@pytest.mark.needs("git-crypt")
def test_git_crypt_stays_encrypted(adopted: History, person: Person) -> None:
    """The real tool, in few and in many files."""
    subprocess.run(
        ["git-crypt", "init"], cwd=person.folder, env=dict(person.env), check=True, capture_output=True
    )
    person.commit(".gitattributes", "secret/** filter=git-crypt diff=git-crypt\n")
    adopted.save(("secret/a.md", b"hidden\n"))
    done = adopted.save(*((f"secret/{number}.md", b"hidden\n") for number in range(20)))
    blob = subprocess.run(
        ["git", "cat-file", "blob", "HEAD:secret/7.md"], cwd=person.folder, capture_output=True, check=True
    ).stdout
    assert blob.startswith(b"\0GITCRYPT\0")
    assert adopted.repository.show("secret/7.md", str(done.rev)) == b"hidden\n"
    assert adopted.save(("secret/7.md", b"hidden\n")).rev is None
    assert person.status() == ""
    assert b"hidden" not in _all_objects(person)


@pytest.mark.needs("git-lfs")
def test_git_lfs_stores_a_pointer(adopted: History, person: Person) -> None:
    """The attachment's bytes go to LFS's own store and come back."""
    person.git("lfs", "install", "--local")
    person.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    data = bytes(range(256)) * 50
    done = adopted.save(("big.bin", data))
    assert person.git("show", "HEAD:big.bin").startswith("version https://git-lfs")
    assert adopted.repository.show("big.bin", str(done.rev)) == data
    assert person.status() == ""


def test_git_missing_refuses_what_may_need_a_filter(
    filtered: History, person: Person, open_history: Opener, env: Mapping[str, str]
) -> None:
    """Without the program, nobody can tell which attributes hold."""
    blind = open_history(person.folder, environment={**env, "PATH": "/nowhere"})
    done = blind.save(("secret/a.md", b"hidden\n"))
    assert [refused.file for refused in done.refused] == ["secret/a.md"]
    assert b"hidden" not in _all_objects(person)


def test_conversions_are_read_as_git_reads_them() -> None:
    """`-text` outranks eol; a bare filter is none; text=auto counts."""
    assert conversion({"text": "unset", "eol": "lf"}, True) == Conversion()
    assert conversion({"filter": "unset"}, False) == Conversion()
    assert conversion({"text": "auto"}, True) == Conversion(by_attribute=True)
    assert conversion({}, True) == Conversion(by_setting=True)
    assert conversion({"filter": "lfs", "text": "unset"}, False) == Conversion(filter="lfs")
    assert conversion({"crlf": "input"}, False) == Conversion(by_attribute=True)


def _all_objects(person: Person) -> bytes:
    """Gives the bytes of all objects, reachable or not."""
    return subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=person.folder, env=dict(person.env),
        capture_output=True, check=True,
    ).stdout  # fmt: skip

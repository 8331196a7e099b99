"""A scan lists what belongs to the vault, follows nothing out of it, and never takes trouble for emptiness."""

import os
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import Unavailable
from pcpd.pages.paths import VERSIONED_DOT_NAMES
from pcpd.vault.ignore import DEEPEST, Ignore, is_passing
from pcpd.vault.root import RootIdentity
from pcpd.vault.scan import Listing, scan


def listed(root: Path, **options: object) -> Listing:
    """Scans with rules read afresh."""
    return scan(root, Ignore.load(root), **options)  # type: ignore[arg-type]


def put(root: Path, *files: str) -> None:
    """Makes files with their own name as content, and the folders above."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file, encoding="utf-8")


def test_every_file_is_listed_with_its_stat(root: Path) -> None:
    """Pages, attachments and control files, in all folders, with what tells versions apart."""
    put(root, "a.md", "deep/er/b.md", "deep/picture.png", "conversations/_topic.md", "no ending")
    found = listed(root)
    assert sorted(found.files) == [
        "a.md",
        "conversations/_topic.md",
        "deep/er/b.md",
        "deep/picture.png",
        "no ending",
    ]
    seen = (root / "deep/er/b.md").stat()
    assert found.files["deep/er/b.md"] == (
        seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode & 0o7777,
    )  # fmt: skip
    assert sorted(found.folders) == ["", "conversations", "deep", "deep/er"]


def test_dot_files_are_no_part_of_the_vault_but_for_four(root: Path) -> None:
    """Settings of editors and of git stay theirs."""
    put(
        root,
        ".pcp/context.yaml",
        ".gitignore",
        "deep/.gitattributes",
        ".pcpignore",
        ".obsidian/app.json",
        ".git/HEAD",
    )
    put(root, ".hidden.md", "deep/.trash/x.md", ".pcp/.secret")
    assert sorted(listed(root).files) == [
        ".gitignore",
        ".pcp/context.yaml",
        ".pcpignore",
        "deep/.gitattributes",
    ]


def test_no_rule_hides_what_belongs_to_every_vault(root: Path) -> None:
    """`.*` is a common rule; it must not take the vault's own context away."""
    put(root, ".pcp/context.yaml", "a.md")
    (root / ".gitignore").write_text(".*\n.pcp\n.gitignore\n", encoding="utf-8")
    assert sorted(listed(root).files) == [".gitignore", ".pcp/context.yaml", "a.md"]


@pytest.mark.parametrize(
    "name",
    [".plan.md.swp", ".#plan.md", "#plan.md#", "plan.md~", "4913", ".~lock.plan.md#", "plan.md.crdownload",
     "plan.md.part", "x.tmp", "~$plan.docx", ".goutputstream-AB12", "plan.md.swo", "plan.md___jb_tmp___", ".pcpd-w-x"],
)  # fmt: skip
def test_passing_files_of_programs_are_never_listed(root: Path, name: str) -> None:
    """Swap, lock, backup, download and temporary files, of editors and of this program."""
    put(root, "plan.md", f"deep/{name}")
    (root / ".#dangling.md").symlink_to("sam@host.1234:1700000000")
    assert list(listed(root).files) == ["plan.md"]
    assert listed(root).skipped == ()


@pytest.mark.parametrize(
    "name", ["#1 idea.md", "~home.md", "4913.md", "a.tmp.md", "$x.md", "plan#.md", "-.md", "…"]
)
def test_names_that_people_choose_are_listed(root: Path, name: str) -> None:
    """Any file name that the person likes."""
    put(root, name)
    assert list(listed(root).files) == [name]


def test_ignored_folders_are_not_entered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is in them: they are never opened."""
    put(root, "a.md", "node_modules/x/y.js", "deep/node_modules/z.js")
    (root / ".gitignore").write_text("node_modules/\n", encoding="utf-8")
    opened = []
    real = os.open

    def noted(path: object, *arguments: object, **options: object) -> int:
        opened.append(str(path))
        return real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", noted)
    assert sorted(listed(root).files) == [".gitignore", "a.md"]
    assert not [path for path in opened if "node_modules" in path]


def test_rules_hold_at_every_level_and_change_with_the_next_scan(root: Path) -> None:
    """`.pcpignore` beats `.gitignore`, deep beats shallow, `.git/info/exclude` is weakest; one `Ignore` serves all."""
    put(root, "a.log", "keep.log", "deep/b.log", "deep/c.md", "e.bin")
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/info/exclude").write_text("*.bin\n*.log\n", encoding="utf-8")
    (root / ".pcpignore").write_text("!keep.log\n", encoding="utf-8")
    (root / "deep/.gitignore").write_text("!*.log\nc.md\n", encoding="utf-8")
    ignore = Ignore.load(root)
    expected = [".pcpignore", "deep/.gitignore", "deep/b.log", "keep.log"]
    assert sorted(scan(root, ignore).files) == expected
    assert ignore.sources == {".pcpignore", "deep/.gitignore"}
    (root / "deep/.gitignore").unlink()
    (root / ".git/info/exclude").write_text("", encoding="utf-8")
    assert sorted(scan(root, ignore).files) == [
        ".pcpignore",
        "a.log",
        "deep/b.log",
        "deep/c.md",
        "e.bin",
        "keep.log",
    ]
    assert not ignore.file("deep/c.md")


def test_links_are_told_and_never_followed(root: Path, tmp_path: Path) -> None:
    """To the own folder, to the parent, to each other, outward, to a file: the scan ends, each page once."""
    put(root, "deep/a.md")
    put(tmp_path / "outside", "secret.md")
    for name, target in {
        "self": ".", "deep/up": "..", "one": "two", "two": "one", "out": "../outside", "out.md": "../outside/secret.md",
        "again.md": "deep/a.md",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    found = listed(root)
    assert list(found.files) == ["deep/a.md"]
    assert {skipped.file for skipped in found.skipped} == {
        "self",
        "deep/up",
        "one",
        "two",
        "out",
        "out.md",
        "again.md",
    }
    assert all("link" in skipped.reason for skipped in found.skipped)


def test_a_folder_swapped_for_a_link_during_the_scan_leads_nowhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are opened by name in their open parent, and a link is refused there."""
    put(root, "deep/a.md", "deep/er/b.md")
    put(tmp_path / "outside", "er/secret.md", "secret.md")
    real = os.scandir

    def swapping(handle: int) -> "os._ScandirIterator[str]":
        entries = real(handle)
        if (root / "deep").is_dir() and not (root / "deep").is_symlink():
            (root / "deep").rename(tmp_path / "moved")
            (root / "deep").symlink_to(tmp_path / "outside")
        return entries

    monkeypatch.setattr(os, "scandir", swapping)
    assert listed(root).files == {}


def test_pipes_and_sockets_named_like_pages_are_told(root: Path) -> None:
    """None is opened, so that none can block."""
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            server.bind(f"/proc/self/fd/{handle}/s.md" if Path("/proc").exists() else "s.md")
        except OSError:
            pass
        finally:
            os.close(handle)
    found = listed(root)
    assert found.files == {}
    assert "pipe.md" in {skipped.file for skipped in found.skipped}


def test_names_that_are_not_utf8_are_told_in_a_printable_form(root: Path) -> None:
    """A file, and a folder with all that is in it; the others are listed."""
    put(root, "good.md", "new\nline.md", "日本.md")
    try:
        (Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md"))).write_text("latin-1")
        (Path(os.fsdecode(os.fsencode(root) + b"/d\xff"))).mkdir()
    except OSError:
        pytest.skip("this file system refuses such names")
    (Path(os.fsdecode(os.fsencode(root) + b"/d\xff/x.md"))).write_text("below")
    found = listed(root)
    assert sorted(found.files) == ["good.md", "new\nline.md", "日本.md"]
    assert {skipped.file for skipped in found.skipped} == {"caf\\xe9.md", "d\\xff"}


def test_a_repository_inside_the_vault_is_named_and_its_pages_listed(root: Path) -> None:
    """A clone, a submodule or worktree (a `.git` file), a broken `.git` folder; the vault's own is none."""
    put(root, ".git/HEAD", "clone/.git/HEAD", "clone/a.md", "sub/.git", "sub/b.md")
    (root / "broken/.git").mkdir(parents=True)
    found = listed(root)
    assert sorted(found.nested) == ["broken", "clone", "sub"]
    assert sorted(found.files) == ["clone/a.md", "sub/b.md"]


def test_own_temporary_files_are_named_for_cleaning(root: Path) -> None:
    """They are no files of the vault, wherever they lie."""
    put(root, "deep/.pcpd-w-0-0-a.md", "a.md")
    found = listed(root)
    assert found.leftovers == ("deep/.pcpd-w-0-0-a.md",)
    assert list(found.files) == ["a.md"]


def test_folders_nested_without_end_are_told(root: Path) -> None:
    """A depth that no person makes takes no stack and no descriptors."""
    handle = os.open(root, os.O_RDONLY)
    for _ in range(DEEPEST + 20):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    found = listed(root)
    assert len(found.folders) == DEEPEST
    assert [skipped.reason for skipped in found.skipped] == [f"it lies more than {DEEPEST} folders deep"]


def test_a_scan_that_begins_below_looks_no_deeper(root: Path) -> None:
    """Else an index would have pages that a new one would not have."""
    deep = "/".join("d" * (DEEPEST - 1))
    put(root, f"{deep}/seen.md", f"{deep}/d/unseen.md")
    assert list(listed(root).files) == list(listed(root, folder="d/d").files) == [f"{deep}/seen.md"]
    ignore = Ignore.load(root)
    assert not ignore.file(f"{deep}/seen.md")
    assert ignore.file(f"{deep}/d/unseen.md")


def test_a_name_of_any_depth_can_be_asked_for(root: Path) -> None:
    """It is too deep to be looked into, and that is all."""
    assert Ignore.load(root).file("d/" * 20_000 + "page.md")


def test_what_is_asked_of_folders_that_are_not_there_is_not_kept(root: Path) -> None:
    """Agents may ask for any name, as often as they like; the rules hold there all the same."""
    put(root, "there/page.md")
    (root / ".gitignore").write_text("hidden/\n")
    ignore = Ignore.load(root)
    tracemalloc.start()
    try:
        for number in range(200):
            assert not ignore.file(f"not-there-{number}/" + "below/" * 50 + "page.md")
            assert ignore.file(f"not-there-{number}/hidden/" + "below/" * 50 + "page.md")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200_000
    (root / "there" / ".gitignore").write_text("page.md\n")
    assert ignore.file("there/page.md")


class TestTrouble:
    """What cannot be looked at is unknown, not gone."""

    def test_a_folder_that_may_not_be_listed_is_unreadable(self, unprivileged: Path) -> None:
        """Its pages are not deleted; the others are listed. Closed to listing or to entering alike."""
        put(unprivileged, "a.md", "closed/b.md", "blind/c.md")
        (unprivileged / "closed").chmod(0)
        (unprivileged / "blind").chmod(0o444)
        try:
            found = listed(unprivileged)
        finally:
            (unprivileged / "closed").chmod(0o700)
            (unprivileged / "blind").chmod(0o700)
        assert list(found.files) == ["a.md"]
        assert {path.split("/")[0] for path in found.unreadable} == {"closed", "blind"}

    def test_an_error_half_way_makes_the_folder_unreadable(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is in it is unknown then; the other folders are listed."""
        put(root, "bad/a.md", "bad/b.md", "good/c.md")
        real = os.scandir

        class Failing:
            def __init__(self, handle: int) -> None:
                self.entries = real(handle)
                names = set(os.listdir(handle))
                self.fails = "b.md" in names

            def __enter__(self) -> "Failing":
                return self

            def __exit__(self, *_: object) -> None:
                self.entries.close()

            def __iter__(self) -> Iterator[os.DirEntry[str]]:
                yield next(self.entries)
                if self.fails:
                    raise OSError(5, "Input/output error")
                yield from self.entries

        monkeypatch.setattr(os, "scandir", Failing)
        found = listed(root)
        assert found.unreadable == ("bad",)
        assert list(found.files) == ["good/c.md"]

    def test_a_mount_that_is_gone_is_unreadable_not_empty(self, root: Path) -> None:
        """A folder that was on another file system the last time, and now is just a folder."""
        put(root, "disk/.keep", "a.md")
        found = listed(root, mounts=frozenset({"disk"}))
        assert found.unreadable == ("disk",)
        assert list(found.files) == ["a.md"]

    @pytest.mark.parametrize("how", ["removed", "a file", "replaced", "closed"])
    def test_a_vault_that_vanished_is_never_called_empty(self, unprivileged: Path, how: str) -> None:
        """Removed, unmounted, replaced or not to be listed: an error, not an empty listing."""
        root = unprivileged / "vault"
        put(root, "a.md")
        identity = RootIdentity.of(root)
        ignore = Ignore.load(root)
        root.rename(unprivileged / "moved")
        if how == "a file":
            root.write_text("x", encoding="utf-8")
        if how in {"replaced", "closed"}:
            root.mkdir(mode=0o300 if how == "closed" else 0o700)
        with pytest.raises(Unavailable) as caught:
            scan(root, ignore, identity=None if how == "closed" else identity)
        assert caught.value.code == "vault.vanished"
        assert "nothing in it is taken for deleted" in caught.value.message

    def test_a_vault_that_vanishes_during_the_scan_is_noticed(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The root is looked at again at the end."""
        put(root, "a.md")
        real = os.scandir

        def vanishing(handle: int) -> "os._ScandirIterator[str]":
            root.rename(root.with_name("moved"))
            return real(handle)

        monkeypatch.setattr(os, "scandir", vanishing)
        with pytest.raises(Unavailable):
            listed(root)

    def test_a_file_that_goes_between_listing_and_stat_is_just_gone(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Files that live 5 ms are normal: no error, no trouble told."""
        put(root, *(f"{number}.md" for number in range(20)))
        real = os.scandir

        @contextmanager
        def deleting(handle: int) -> Iterator[list[os.DirEntry[str]]]:
            with real(handle) as entries:
                seen = list(entries)
            (root / seen[0].name).unlink()
            yield seen

        monkeypatch.setattr(os, "scandir", deleting)
        found = listed(root)
        assert len(found.files) == 19
        assert (found.unreadable, found.skipped) == ((), ())


class TestFolder:
    """One folder can be scanned by itself, under the same rules."""

    def test_a_folder_is_listed_with_vault_relative_names(self, root: Path) -> None:
        """And with the rules from above it."""
        put(root, "deep/er/a.md", "deep/er/b.log", "other/c.md")
        (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
        assert list(listed(root, folder="deep").files) == ["deep/er/a.md"]
        assert list(listed(root, folder="deep/er").files) == ["deep/er/a.md"]

    @pytest.mark.parametrize(
        "folder", ["missing", "a.md", "link", "ignored", "ignored/below", ".git", "link/sub"]
    )
    def test_what_is_no_folder_of_the_vault_is_empty(self, root: Path, folder: str) -> None:
        """Gone, a file, a link, ignored: nothing is there."""
        put(root, "a.md", "ignored/below/b.md", ".git/HEAD", "real/sub/c.md")
        (root / "link").symlink_to("real")
        (root / ".gitignore").write_text("ignored\n", encoding="utf-8")
        found = listed(root, folder=folder)
        assert (found.files, found.unreadable) == ({}, ())


@settings(max_examples=40)
@given(
    files=st.lists(
        st.lists(
            st.sampled_from(["a", "b.md", ".git", ".pcp", "x~", "c.log", "日本", "d"]), min_size=1, max_size=4
        ),
        max_size=12,
    ),
    rules=st.lists(st.sampled_from(["*.log", "a/", "!c.log", "/d", "日*", "b.md"]), max_size=3),
)
def test_scan_and_single_answers_agree(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], rules: list[str]
) -> None:
    """What a scan lists is what `Ignore.file` lets in, file by file, without the scan having read the rules."""
    root = tmp_path_factory.mktemp("vault")
    for parts in files:
        path = root.joinpath(*parts)
        if not path.exists() and not any(parent.is_file() for parent in path.parents):
            put(root, "/".join(parts))
    (root / ".gitignore").write_text("\n".join(rules), encoding="utf-8")
    every = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    ignore = Ignore(root)
    assert {file for file in every if not ignore.file(file)} == set(listed(root).files)


@given(st.text(min_size=1).filter(lambda name: "/" not in name and "\0" not in name))
def test_every_name_is_passing_or_not(name: str) -> None:
    """Any text has an answer, and a dot at the beginning decides."""
    if name.startswith("."):
        assert is_passing(name) == (name not in VERSIONED_DOT_NAMES)
    else:
        assert is_passing(name) in {True, False}

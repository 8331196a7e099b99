"""Single files: read whole, changed on the version they name, never lost, never outside the vault."""

import errno
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd import durable
from pcpd.errors import Broken, Conflict, Invalid, NotFound, PcpError, Unavailable
from pcpd.pages.changes import same_stat
from pcpd.vault.files import Files
from pcpd.vault.ignore import Ignore
from pcpd.vault.inode import has_writer, read_all, version_of
from pcpd.vault.scan import scan
from pcpd.vault.temporary import conflict_name
from tests.vault.steps import Died, Steps, tree

OLD, NEW, SAVED = b"old text\n" * 100, b"new text, longer\n" * 200, b"saved by an editor\n" * 50
V_OLD = version_of(OLD)
CONFLICT = "plan (conflict 2026-01-05 120000).md"

Act = Callable[[Files], object]
ACTS: dict[str, Act] = {
    "create": lambda files: files.create("deep/er/fresh.md", NEW),
    "replace": lambda files: files.replace("plan.md", NEW, base=V_OLD),
    "remove": lambda files: files.remove("plan.md", base=V_OLD),
    "move": lambda files: files.move("plan.md", "deep/er/moved.md", base=V_OLD),
}


def outcomes(act: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the vault may hold before and after an act on one page."""
    after = {
        "create": {"plan.md": OLD, "deep/er/fresh.md": NEW},
        "replace": {"plan.md": NEW},
        "remove": {},
        "move": {"deep/er/moved.md": OLD},
    }
    return {"plan.md": OLD}, after[act]


def code_of(act: Callable[[], object]) -> str:
    """Does something, and gives the code of the error that it raised, or an empty text."""
    try:
        act()
    except PcpError as error:
        return error.code
    return ""


def cleaned(root: Path, files: Files) -> tuple[str, ...]:
    """Does what a start does with what a crash left."""
    return files.clean_leftovers(scan(root, Ignore.load(root)).leftovers)


class TestReading:
    """What is read is whole, and dated so that a later scan sees what changed meanwhile."""

    def test_a_read_gives_bytes_stat_and_version(self, root: Path, files: Files) -> None:
        """The version is the SHA-256 of the bytes; the stat is that of a scan."""
        (root / "plan.md").write_bytes(OLD)
        read = files.read("plan.md", 10**6)
        assert (read.data, read.version) == (OLD, V_OLD)
        assert read.stat == files.stat("plan.md") == scan(root, Ignore.load(root)).files["plan.md"]

    def test_a_long_file_is_cut_but_its_version_is_that_of_the_whole(self, root: Path, files: Files) -> None:
        """Two long files that differ at their end are two versions."""
        (root / "long.md").write_bytes(OLD)
        read = files.read("long.md", 10)
        assert (read.data, read.version) == (OLD[:10], V_OLD)

    def test_many_files_are_looked_at_as_one_is(self, root: Path, files: Files) -> None:
        """In whatever order they are asked for; what is not there, or no regular file, is left out."""
        (root / "a").mkdir()
        (root / "link").symlink_to("a")
        for name in ("a/x.md", "a/y.md", "z.md"):
            (root / name).write_bytes(OLD)
        asked = [
            "z.md",
            "a/x.md",
            "link/x.md",
            "gone.md",
            "a",
            "a/gone.md",
            "gone/x.md",
            "z.md/x.md",
            "a/y.md",
        ]
        assert files.stats(asked) == {name: files.stat(name) for name in ("a/x.md", "a/y.md", "z.md")}
        with pytest.raises(Invalid):
            files.stats(["a/x.md", "a/../z.md"])

    @pytest.mark.parametrize("limit", [0, 1, len(OLD) - 1, len(OLD), len(OLD) + 1])
    def test_a_file_that_is_longer_than_it_said_is_read_to_its_end(self, root: Path, limit: int) -> None:
        """One that grows while it is read, or that a file system gives in pieces; never more than the limit."""
        (root / "plan.md").write_bytes(OLD)
        for expected in (0, 1, len(OLD), 10**6):
            with (root / "plan.md").open("rb") as file:
                assert read_all(file.fileno(), limit, expected=expected) == OLD[:limit]

    @pytest.mark.parametrize("kind", ["nothing", "folder", "link", "dangling", "pipe", "socketless parent"])
    def test_what_is_no_regular_file_is_not_there(self, root: Path, files: Files, kind: str) -> None:
        """No link is followed and no pipe waited for."""
        target = root / "x.md"
        (root / "page.md").write_bytes(OLD)
        make: dict[str, Callable[[], object]] = {
            "nothing": lambda: None,
            "folder": target.mkdir,
            "link": lambda: target.symlink_to("page.md"),
            "dangling": lambda: target.symlink_to("nowhere"),
            "pipe": lambda: os.mkfifo(target),
            "socketless parent": lambda: None,
        }
        make[kind]()
        name = "page.md/x.md" if kind == "socketless parent" else "x.md"
        assert files.stat(name) is None
        with pytest.raises(FileNotFoundError):
            files.read(name, 100)

    def test_a_file_that_changes_while_it_is_read_is_read_again(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The bytes belong together; and if it never rests, the stat is the one from before."""
        (root / "plan.md").write_bytes(OLD)
        real, calls = os.fstat, []

        def meddling(handle: int) -> os.stat_result:
            seen = real(handle)
            if stat.S_ISREG(seen.st_mode):
                calls.append(handle)
                if len(calls) == 2:  # after the kind of file was looked at and the first stat was taken
                    (root / "plan.md").write_bytes(NEW)
            return seen

        monkeypatch.setattr(os, "fstat", meddling)
        read = files.read("plan.md", 10**6)
        monkeypatch.undo()
        assert (read.data, read.version) == (NEW, version_of(NEW))
        assert read.stat == files.stat("plan.md")

    def test_a_file_that_may_not_be_read_is_no_missing_file(self, unprivileged: Path) -> None:
        """A page whose rights were taken away must not look deleted, nor one in a folder that is closed."""
        files = Files(unprivileged, lambda: datetime.now(UTC))
        (unprivileged / "closed").mkdir()
        for name in ("x.md", "closed/x.md"):
            (unprivileged / name).write_bytes(OLD)
        (unprivileged / "x.md").chmod(0)
        (unprivileged / "closed").chmod(0)
        try:
            with pytest.raises(Broken, match=r"cannot read x\.md") as caught:
                files.read("x.md", 100)
            assert caught.value.code == "vault.unreadable"
            with pytest.raises(Broken):
                files.stat("closed/x.md")
        finally:
            (unprivileged / "closed").chmod(0o700)


class TestChanging:
    """Create, replace, remove and move do what they say, on the version that they name."""

    @pytest.mark.parametrize("act", ACTS)
    def test_an_act_leaves_exactly_its_outcome(self, root: Path, files: Files, act: str) -> None:
        """Nothing else is in the vault afterwards, no temporary file either; what is told is what is there."""
        (root / "plan.md").write_bytes(OLD)
        done = ACTS[act](files)
        assert tree(root) == outcomes(act)[1]
        for file in tree(root).keys() - {"plan.md"} or tree(root):
            assert getattr(done, "stat", None) == files.stat(file)
            assert getattr(done, "version", None) == files.read(file, 10**6).version

    @pytest.mark.parametrize("act", ACTS)
    def test_an_act_is_on_the_disk_before_it_is_told(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch, act: str
    ) -> None:
        """Bytes first, then the rename, then the names of every folder that changed: a power cut takes nothing back."""
        (root / "plan.md").write_bytes(OLD)
        order: list[str] = []
        sync, rename = os.fsync, durable._renameat
        assert rename is not None

        def noted_sync(handle: int) -> None:
            seen = os.fstat(handle)
            is_root = (seen.st_dev, seen.st_ino) == tuple(files.identity)
            order.append("bytes" if stat.S_ISREG(seen.st_mode) else "root" if is_root else "folder")
            sync(handle)

        def noted_rename(*arguments: Any) -> int:
            order.append("rename")
            return rename(*arguments)

        monkeypatch.setattr(os, "fsync", noted_sync)
        monkeypatch.setattr(durable, "_renameat", noted_rename)
        ACTS[act](files)
        expected = {
            "create": ["root", "folder", "bytes", "rename", "folder"],
            "replace": ["bytes", "rename", "root"],
            "remove": ["rename", "root"],
            "move": ["root", "folder", "rename", "folder", "root"],
        }
        assert order == expected[act]

    @pytest.mark.parametrize("act", ["replace", "remove", "move"])
    def test_a_stale_act_is_refused_with_the_present_version(
        self, root: Path, files: Files, act: str
    ) -> None:
        """Nothing is written, and the answer says what to read again."""
        (root / "plan.md").write_bytes(SAVED)
        with pytest.raises(Conflict) as caught:
            ACTS[act](files)
        assert caught.value.code == "page.stale"
        assert caught.value.details["version"] == version_of(SAVED)
        assert tree(root) == {"plan.md": SAVED}

    @pytest.mark.parametrize("act", ["replace", "remove", "move"])
    def test_an_act_on_what_is_gone_says_so(self, root: Path, files: Files, act: str) -> None:
        """It is not made anew by a replacement."""
        with pytest.raises(NotFound) as caught:
            ACTS[act](files)
        assert caught.value.code == "page.gone"
        assert tree(root) == {}

    def test_create_and_move_never_land_on_another_file(self, root: Path, files: Files) -> None:
        """Both files keep their bytes."""
        (root / "plan.md").write_bytes(OLD)
        (root / "other.md").write_bytes(NEW)
        assert code_of(lambda: files.create("other.md", SAVED)) == "page.exists"
        for target in ("other.md", "plan.md"):
            with pytest.raises(Conflict) as caught:
                files.move("plan.md", target, base=V_OLD)
            assert caught.value.code == "page.exists"
        assert tree(root) == {"other.md": NEW, "plan.md": OLD}

    def test_a_new_page_has_the_rights_that_the_umask_gives(self, root: Path, files: Files) -> None:
        """Other programs of the person can read it, as if an editor had made it."""
        before = os.umask(0o027)
        try:
            files.create("new.md", NEW)
        finally:
            os.umask(before)
        assert (root / "new.md").stat().st_mode & 0o777 == 0o640

    def test_replacing_keeps_mode_and_attributes(self, root: Path, files: Files) -> None:
        """The file is another one, but what hangs on it stays."""
        path = root / "plan.md"
        path.write_bytes(OLD)
        path.chmod(0o754)
        can = _set_attribute(path)
        files.replace("plan.md", NEW, base=V_OLD)
        assert path.stat().st_mode & 0o7777 == 0o754
        if can:
            assert os.getxattr(path, "user.tag") == b"blue"

    def test_root_keeps_the_owner_of_a_replaced_file(self, root: Path, files: Files) -> None:
        """A service that runs as root takes no file away from its owner; who is not root owns it anyway."""
        path = root / "plan.md"
        path.write_bytes(OLD)
        owner = (12345, 54321) if os.geteuid() == 0 else (path.stat().st_uid, path.stat().st_gid)
        os.chown(path, *owner)
        files.replace("plan.md", NEW, base=V_OLD)
        assert (path.stat().st_uid, path.stat().st_gid) == owner

    @pytest.mark.parametrize("links", [True, False])
    def test_where_files_cannot_be_exchanged_they_are_renamed(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        """Some file systems know no exchange, and some of these no hard links."""
        (root / "plan.md").write_bytes(OLD)

        def no_exchange(*_: object, **__: object) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        monkeypatch.setattr(durable, "exchange", no_exchange)
        if not links:
            monkeypatch.setattr(os, "link", no_exchange)
        done = files.replace("plan.md", NEW, base=V_OLD)
        assert tree(root) == {"plan.md": NEW}
        assert done.stat == files.stat("plan.md")

    def test_a_page_changes_only_its_case(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a file system that does not tell the names apart, the new name seems taken, by the file itself."""
        (root / "plan.md").write_bytes(OLD)
        files.move("plan.md", "Plan.md", base=V_OLD)
        assert list(tree(root)) == ["Plan.md"]

        def insensitive(*_: object, **__: object) -> None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

        seen = (root / "Plan.md").stat()
        monkeypatch.setattr(durable, "rename_new", insensitive)
        monkeypatch.setattr(os, "stat", lambda *_, **__: seen)
        files.move("Plan.md", "PLAN.md", base=V_OLD)
        monkeypatch.undo()
        assert list(tree(root)) == ["PLAN.md"]

    def test_two_names_of_one_file_are_not_taken_for_a_change_of_case(self, root: Path, files: Files) -> None:
        """A hard link under the other spelling is a file of the person's."""
        (root / "plan.md").write_bytes(OLD)
        os.link(root / "plan.md", root / "Plan.md")
        with pytest.raises(Conflict):
            files.move("plan.md", "Plan.md", base=V_OLD)
        assert sorted(tree(root)) == ["Plan.md", "plan.md"]


class TestCrashing:
    """Old or new, for a crash or a full disk at every step; an editor's save in between is never lost."""

    @pytest.mark.parametrize("act", ACTS)
    def test_a_crash_at_any_step_leaves_old_or_new(
        self, root: Path, files: Files, steps: Steps, act: str
    ) -> None:
        """Whatever step is the last, the next start leaves one of two states, and nothing beside it."""
        before, after = outcomes(act)
        for step in range(1, 100):
            _fresh(root, {"plan.md": OLD})
            try:
                with steps.dying(step):
                    ACTS[act](files)
            except Died:
                assert not set(tree(root)) & {"plan.md"} or tree(root)["plan.md"] in {OLD, NEW}
                assert cleaned(root, files) == ()
                assert tree(root) in (before, after), f"died before step {step}"
                continue
            assert tree(root) == after
            assert step > 3
            return
        pytest.fail("the act never came to its end")

    @pytest.mark.parametrize("act", ACTS)
    def test_a_full_disk_at_any_step_changes_nothing(
        self, root: Path, files: Files, steps: Steps, act: str
    ) -> None:
        """The error says that the disk is full; the page is as it was, or as it was to be."""
        before, after = outcomes(act)
        seen = set()
        for step in range(1, 100):
            _fresh(root, {"plan.md": OLD})
            with steps.full(step):
                code = code_of(lambda: ACTS[act](files))
            if steps.count < step:
                break
            cleaned(root, files)
            assert tree(root) in (before, after), f"full at step {step}"
            assert code in {"vault.full", ""}
            seen.add(code)
        assert "vault.full" in seen

    @pytest.mark.parametrize("how", ["rename", "in place", "delete and create"])
    @pytest.mark.parametrize("act", ["replace", "remove", "move"])
    def test_a_save_at_any_step_is_never_lost(
        self, root: Path, files: Files, steps: Steps, act: str, how: str
    ) -> None:
        """The editor's bytes are in the vault afterwards: under the page's name, or as a conflict copy."""
        for step in range(1, 100):
            _fresh(root, {"plan.md": OLD})

            def save() -> None:
                _save(root / "plan.md", how)

            with steps.at({step: save}):
                code = code_of(lambda: ACTS[act](files))
            assert code in {"", "page.stale", "page.gone", "page.exists"}
            if steps.count < step:
                break
            assert cleaned(root, files) == ()
            assert SAVED in tree(root).values(), f"{how} before step {step}: {list(tree(root))}"
            assert not [name for name in tree(root) if name.startswith(".")]

    @pytest.mark.parametrize("how", ["rename", "in place"])
    def test_a_save_and_then_a_crash_lose_nothing_either(
        self, root: Path, files: Files, steps: Steps, how: str
    ) -> None:
        """The next start finds the save in the temporary file, and keeps it as a conflict copy."""
        for save_at in range(1, 100):
            for die_at in range(save_at + 1, 100):
                _fresh(root, {"plan.md": OLD})

                def save() -> None:
                    _save(root / "plan.md", how)

                try:
                    with steps.at({save_at: save, die_at: steps.die}):
                        ACTS["replace"](files)
                except (Died, PcpError):
                    cleaned(root, files)
                    assert SAVED in tree(root).values(), f"saved before {save_at}, died before {die_at}"
                    continue
                break
            if steps.count < save_at:
                return

    def test_an_editor_that_is_still_writing_keeps_its_file(self, root: Path, files: Files) -> None:
        """It opened the old file before the exchange and saves afterwards: into the conflict copy."""
        (root / "plan.md").write_bytes(OLD)
        with (root / "plan.md").open("r+b") as editor:
            can_tell = _tells_writers(root)
            done = files.replace("plan.md", NEW, base=V_OLD)
            editor.truncate()
            editor.write(SAVED)
        assert (done.conflict_copy is not None) == can_tell
        if can_tell:
            assert tree(root) == {"plan.md": NEW, CONFLICT: SAVED + OLD[len(SAVED) :]}

    def test_a_folder_or_link_put_in_the_pages_place_comes_back(
        self, root: Path, files: Files, steps: Steps
    ) -> None:
        """It is no version of the page, and no temporary file either."""
        for step in range(1, 100):
            _fresh(root, {"plan.md": OLD})

            def swap() -> None:
                (root / "plan.md").rename(root / "aside")
                (root / "plan.md").symlink_to("aside")

            with steps.at({step: swap}):
                code = code_of(lambda: ACTS["replace"](files))
            assert not code or (root / "plan.md").is_symlink()
            if steps.count < step:
                break
            assert (root / "aside").read_bytes() in {OLD, NEW}
            assert list(tree(root)) == ["aside", "plan.md"]

    def test_conflict_copies_never_overwrite_one_another(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those of one second get numbers."""
        for number in range(3):
            (root / "plan.md").write_bytes(OLD)
            with monkeypatch.context() as patch:
                _save_late(patch, root / "plan.md", str(number).encode())
                files.replace("plan.md", NEW, base=V_OLD)
        assert tree(root) == {
            "plan.md": NEW,
            CONFLICT: b"0",
            "plan (conflict 2026-01-05 120000 2).md": b"1",
            "plan (conflict 2026-01-05 120000 3).md": b"2",
        }

    def test_only_own_leftovers_are_cleaned(self, root: Path, files: Files) -> None:
        """What looks alike but is none stays, and no link is followed."""
        (root / "keep.md").write_bytes(OLD)
        name = f".pcpd-w-{'0' * 16}-{'1' * 16}-keep.md"
        (root / name).symlink_to("keep.md")
        (root / ".pcpd-notes").write_bytes(b"somebody's")
        assert cleaned(root, files) == ()
        assert set(tree(root)) == {"keep.md", ".pcpd-notes", name}


class TestStaying:
    """No name and no link leads out of the vault, and a vault that vanished is not written to."""

    @pytest.mark.parametrize(
        "name", ["", "/etc/passwd", "../x.md", "a/../../x.md", "a//b", "a/./b", "a\0b", "."]
    )
    def test_a_name_that_leads_out_is_refused(self, root: Path, files: Files, name: str) -> None:
        """Whatever the act."""
        for act in _acts_on(files, name):
            with pytest.raises(Invalid) as caught:
                act()
            assert caught.value.code == "path.invalid"

    @pytest.mark.parametrize("where", ["folder", "deep folder", "file"])
    def test_a_link_that_leads_out_is_not_followed(
        self, root: Path, files: Files, tmp_path: Path, where: str
    ) -> None:
        """Nothing outside is read or changed; inside the vault likewise, since links are never followed."""
        outside = tmp_path / "outside"
        (outside / "sub").mkdir(parents=True)
        (outside / "secret.md").write_bytes(OLD)
        (outside / "sub" / "secret.md").write_bytes(OLD)
        (root / "out").symlink_to(outside)
        (root / "file.md").symlink_to(outside / "secret.md")
        name = {"folder": "out/secret.md", "deep folder": "out/sub/secret.md", "file": "file.md"}[where]
        before = tree(outside)
        assert files.stat(name) is None
        for act in _acts_on(files, name):
            with pytest.raises((PcpError, FileNotFoundError)):
                act()
        assert tree(outside) == before
        assert (root / "file.md").is_symlink()

    def test_a_vault_whose_folder_was_replaced_is_not_written_to(self, root: Path, files: Files) -> None:
        """An unmounted vault leaves an empty folder at the same path: that is not it, until somebody says so."""
        root.rename(root.with_name("moved"))
        root.mkdir()
        (root / "plan.md").write_bytes(OLD)
        for act in _acts_on(files, "plan.md"):
            with pytest.raises(Unavailable) as caught:
                act()
            assert caught.value.code == "vault.vanished"
        files.adopt_root()
        assert files.read("plan.md", 10**6).data == OLD

    @pytest.mark.parametrize("act", ACTS)
    def test_a_folder_without_write_permission_changes_nothing(self, unprivileged: Path, act: str) -> None:
        """The error says so and how to cure it."""
        (unprivileged / "plan.md").write_bytes(OLD)
        files = Files(unprivileged, lambda: datetime.now(UTC))
        unprivileged.chmod(0o500)
        try:
            with pytest.raises(Broken) as caught:
                ACTS[act](files)
        finally:
            unprivileged.chmod(0o700)
        assert caught.value.code == "vault.read-only"
        assert caught.value.hint
        assert tree(unprivileged) == {"plan.md": OLD}

    def test_a_name_that_the_disk_cannot_hold_is_refused(self, root: Path, files: Files) -> None:
        """At most 255 bytes a segment, counted in bytes."""
        with pytest.raises(Invalid) as caught:
            files.create("ä" * 200 + ".md", NEW)
        assert caught.value.code == "path.too-long"
        assert tree(root) == {}

    def test_a_name_that_the_disk_cannot_hold_is_not_there(self, files: Files) -> None:
        """Whoever asks for it hears what they hear of any other file that does not exist."""
        name = "x" * 5000 + ".md"
        assert files.stat(name) is None
        with pytest.raises(FileNotFoundError):
            files.read(name, 1)

    def test_a_page_with_the_longest_name_can_be_replaced(
        self, root: Path, files: Files, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its temporary file and its conflict copy have shorter stems, cut between characters."""
        name = "記" * 84 + ".md"
        assert len(name.encode()) == 255
        files.create(name, OLD)
        _save_late(monkeypatch, root / name, SAVED)
        done = files.replace(name, NEW, base=V_OLD)
        assert done.conflict_copy is not None
        assert files.read(done.conflict_copy, 10**6).data == SAVED
        assert same_stat(done.stat, files.read(name, 10**6).stat)


@given(st.text(min_size=1, max_size=300), st.integers(1, 999))
def test_a_conflict_copy_has_a_name_that_disks_can_hold(name: str, number: int) -> None:
    """At most 255 bytes, with the same ending, whatever the page is called."""
    ending = "." + name.rpartition(".")[2] if "." in name[1:] else ""
    if len(ending.encode("utf-8", "surrogateescape")) > 100:
        return
    copy = conflict_name(name, datetime(2026, 1, 5, tzinfo=UTC), number)
    assert len(os.fsencode(copy)) <= 255
    assert copy.endswith(ending)
    assert "(conflict 2026-01-05 000000" in copy


def _save_late(monkeypatch: pytest.MonkeyPatch, path: Path, data: bytes) -> None:
    """Lets an editor save just before two files are exchanged."""
    real = durable.exchange

    def late(a: str, b: str, **options: int) -> None:
        path.write_bytes(data)
        real(a, b, **options)

    monkeypatch.setattr(durable, "exchange", late)


def _tells_writers(folder: Path) -> bool:
    """Tells whether this file system knows who has a file open for writing."""
    path = folder / ".probe"
    path.write_bytes(b"")
    with path.open("ab"), path.open("rb") as reader:
        found = has_writer(reader.fileno())
    path.unlink()
    return found


def _fresh(root: Path, content: dict[str, bytes]) -> None:
    """Makes the vault hold just this."""
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, data in content.items():
        (root / name).write_bytes(data)


def _save(path: Path, how: str) -> None:
    """Saves as an editor does."""
    if how == "rename":
        path.with_name("saving").write_bytes(SAVED)
        path.with_name("saving").rename(path)
        return
    if how == "delete and create":
        path.unlink(missing_ok=True)
    path.write_bytes(SAVED)


def _set_attribute(path: Path) -> bool:
    """Sets an extended attribute, where the file system has them."""
    try:
        os.setxattr(path, "user.tag", b"blue")
    except (OSError, AttributeError):
        return False
    return True


def _acts_on(files: Files, name: str) -> list[Callable[[], object]]:
    return [
        lambda: files.read(name, 100),
        lambda: files.create(name, NEW),
        lambda: files.replace(name, NEW, base=V_OLD),
        lambda: files.remove(name, base=V_OLD),
        lambda: files.move(name, "elsewhere.md", base=V_OLD),
    ]


@pytest.mark.skipif("not __import__('sys').platform.startswith('linux')")
def test_a_file_that_somebody_has_open_for_writing_is_told(tmp_path: Path) -> None:
    """A reader is no writer, and who has closed it is none any more; the file system must know leases."""
    import fcntl

    path = tmp_path / "x"
    path.write_bytes(OLD)
    with path.open("rb") as reader, path.open("rb"):
        try:
            fcntl.fcntl(reader, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            assert not has_writer(reader.fileno())
            return
        fcntl.fcntl(reader, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        assert not has_writer(reader.fileno())
        with path.open("ab"):
            assert has_writer(reader.fileno())
        assert not has_writer(reader.fileno())


def test_a_name_is_spelled_as_on_disk_or_not(tmp_path: Path) -> None:
    """Folders count, and forms of letters; what is not there is spelled nohow."""
    (tmp_path / "Notes").mkdir()
    (tmp_path / "Notes" / "Caf\xe9.md").write_bytes(OLD)
    files = Files(tmp_path, lambda: datetime.now(UTC))
    assert files.is_spelled("Notes/Caf\xe9.md")
    for other in (
        "notes/Caf\xe9.md",
        "Notes/caf\xe9.md",
        "Notes/Cafe\u0301.md",
        "Notes/x.md",
        "x/Caf\xe9.md",
        "Notes",
    ):
        assert files.is_spelled(other) == (other == "Notes")

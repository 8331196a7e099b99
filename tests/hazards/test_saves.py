"""However a page is saved, the last version is found and no deletion is seen; passing files are nothing."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pcpd.memory import commits, read, upkeep, write
from pcpd.memory.doctor import status
from pcpd.pages.edits import Edit
from pcpd.vault.watch import Dirty
from tests.hazards.conftest import Asked, git
from tests.service.conftest import Machine
from tests.vaults import Opened
from tests.waiting import until


def in_place(path: Path, text: str) -> None:
    """Truncates and writes."""
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    """Writes beside, and renames over the page."""
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text)
    beside.replace(path)


def by_backup_and_rename(path: Path, text: str) -> None:
    """Moves the page away, and writes a new one."""
    path.rename(path.with_name(path.name + "~"))
    path.write_text(text)


def by_delete_and_create(path: Path, text: str) -> None:
    """Deletes the page, and writes a new one."""
    path.unlink()
    path.write_text(text)


def by_sed(path: Path, text: str) -> None:
    """`sed -i`, which writes beside and renames."""
    subprocess.run(["sed", "-i", f"s/.*/{text.strip()}/", str(path)], check=True)


SAVES = [in_place, by_rename, by_backup_and_rename, by_delete_and_create, by_sed]


@pytest.mark.parametrize("save", SAVES)
def test_of_ten_saves_in_a_row_the_last_is_found_and_no_commit_deletes(
    opened: Opened, ask: Asked, save: Callable[[Path, str], None]
) -> None:
    """The page keeps its row in the index and its history; commits come in between all the while."""
    path = opened.save("house/boiler.md", "zyxquartz start\n")
    other = opened.save("house/other.md", "zyxother\n")
    until(lambda: len(ask.commits("house")) == 2)
    for number in range(10):
        save(path, f"zyxquartz v{number}\n")
    until(lambda: ask.found('"zyxquartz v9"') == ["house/boiler"])
    ask.commit_all()
    done = ask.commits("house/boiler.md")
    assert done[-1] == "A\thouse/boiler.md"
    assert {each[0] for each in done[:-1]} == {"M"}
    assert git(opened.root, "show", "HEAD:house/boiler.md") == "zyxquartz v9\n"
    assert ask.found("zyxquartz") == ["house/boiler"]
    assert other.exists()
    assert git(opened.root, "ls-files", "house").split() == ["house/boiler.md", "house/other.md"]


def test_a_real_owner_sees_the_last_of_many_saves_and_no_deletion(machine: Machine) -> None:
    """All ways of saving, one after the other, through the process that serves."""
    machine.run()
    page = machine.vault / "boiler.md"
    for number in range(10):
        SAVES[number % len(SAVES)](page, f"zyxquartz v{number}\n")
    until(lambda: machine.json("search", '"zyxquartz v9"')["total"] == 1)
    until(lambda: machine.json("log", "boiler")["versions"])
    log = git(machine.vault, "log", "--format=", "--name-status", "--", "boiler.md")
    assert "D\t" not in log
    assert git(machine.vault, "ls-files") == ".pcp/context.yaml\nboiler.md\n"


def test_swap_lock_backup_and_download_files_are_never_pages_nor_versions(opened: Opened, ask: Asked) -> None:
    """Nor links that dangle as locks do; nothing of it is an error."""
    for name in (
        ".boiler.md.swp", ".boiler.md.swx", "boiler.md~", "#boiler.md#", "4913", "boiler.md.tmp",
        ".~lock.boiler.md#", "~$boiler.md", "film.mp4.crdownload", "boiler.md.part",
    ):  # fmt: skip
        (opened.root / name).write_text("zyxpassing\n")
    (opened.root / ".#boiler.md").symlink_to("sam@host.123:456")
    (opened.root / "dangling.md").symlink_to("nowhere")
    opened.save("boiler.md", "zyxreal\n")
    until(lambda: ask.found("zyxreal"))
    assert opened.running
    opened.running.steward.scan()
    ask.commit_all()
    assert ask.found("zyxpassing") == []
    assert git(opened.root, "ls-files") == ".pcp/context.yaml\nboiler.md\n"
    assert read.list_pages(opened.memory, opened.person).total == 1
    assert ask.status()["notices"] == []


def test_files_that_live_five_milliseconds_are_nothing(opened: Opened, ask: Asked) -> None:
    """Gone before, while or after they were read: no error, no page, no commit."""
    for number in range(200):
        passing = opened.root / f"passing{number}.md"
        passing.write_text("zyxpassing\n")
        if number % 4 == 0:
            until(passing.exists)
        with contextlib.suppress(FileNotFoundError):
            passing.unlink()
    opened.save("stays.md", "zyxstays\n")
    until(lambda: ask.found("zyxstays"))
    until(lambda: ask.found("zyxpassing") == [])
    ask.commit_all()
    until(ask.equals_a_rebuild)
    listed = git(opened.root, "ls-tree", "-r", "--name-only", "HEAD").split()
    assert sorted(listed) == [".pcp/context.yaml", "stays.md"]
    assert opened.failures == []


def test_an_own_write_is_one_update_and_one_commit(opened: Opened, ask: Asked) -> None:
    """What pcpd writes comes back to it as an event, and is recognised by its content."""
    opened.save("boiler.md", "---\ntitle: Boiler\n---\nzyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    applied = opened.memory.applied
    write.edit_page(opened.memory, opened.person, "boiler", [Edit("append", value="zyxmore")])
    assert ask.found("zyxmore") == ["boiler"]
    opened.save("later.md", "zyxlater\n")  # events come in order: what came before it has been heard
    until(lambda: ask.found("zyxlater"))
    ask.commit_all()
    assert opened.memory.applied == applied + 2
    assert ask.commits("boiler.md") == ["M\tboiler.md", "A\tboiler.md"]
    data = (opened.root / "boiler.md").stat()
    opened.running.steward.scan()  # type: ignore[union-attr]
    ask.commit_all()
    assert opened.memory.applied == applied + 2
    assert (opened.root / "boiler.md").stat() == data
    assert len(ask.commits("boiler.md")) == 2


@pytest.mark.parametrize("touch", ["time", "mode", "rewritten"])
def test_what_has_the_same_bytes_is_no_change(opened: Opened, ask: Asked, touch: str) -> None:
    """A changed time stamp or mode, or the same text saved again: no index work, no commit."""
    path = opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    applied = opened.memory.applied
    if touch == "time":
        os.utime(path, (1, 1))
    elif touch == "mode":
        path.chmod(0o640)
    else:
        path.write_text("zyxquartz\n")
    assert opened.running
    opened.running.steward.scan()
    ask.commit_all()
    assert opened.memory.applied == applied
    assert ask.commits("boiler.md") == ["A\tboiler.md"]
    assert git(opened.root, "status", "--porcelain") == ""


def test_five_thousand_files_at_once_are_all_there(opened: Opened, ask: Asked) -> None:
    """As an import or a big checkout writes them; the index then equals a rebuild."""
    for number in range(5_000):
        if number % 100 == 0:
            (opened.root / f"f{number // 100}").mkdir()
        (opened.root / f"f{number // 100}/p{number}.md").write_text(f"zyxquartz p{number}\n")
    person = opened.person
    until(lambda: read.search(opened.memory, person, "zyxquartz").total == 5_000)
    until(ask.equals_a_rebuild)
    shutil.rmtree(opened.root / "f3")
    until(lambda: read.search(opened.memory, person, "zyxquartz").total == 4_900)
    until(lambda: status(opened.memory)["index"]["in_step"])


def test_what_a_scan_found_is_committed_without_another_event(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the thread that commits looked while the scan's transaction was still open, and saw nothing."""
    monkeypatch.setattr(commits, "TIDY_S", 0.01)
    opened = make_opened(ahead_s=3600, quiet_s=0).open(scan=False)
    assert opened.running
    opened.running.committer.start()
    memory = opened.memory
    until(lambda: opened.running and not opened.running.committer._untidy)
    release = memory.index.release

    def late_release() -> None:
        if memory.index.writer._is_held:
            until(lambda: not memory.versions_waiting.is_set() and memory.versions_waiting._cond._waiters)  # type: ignore[attr-defined]
        release()

    monkeypatch.setattr(memory.index, "release", late_release)
    opened.save("boiler.md", "zyxquartz\n")
    upkeep.full_scan(memory)
    until(lambda: status(memory)["history"]["waiting"] == 0)
    assert git(opened.root, "show", "HEAD:boiler.md") == "zyxquartz\n"


def test_a_page_that_is_missing_in_the_middle_of_a_save_is_not_gone(
    make_opened: Callable[..., Opened],
) -> None:
    """Only what stays away for a moment is taken for deleted: the watcher says which that is."""
    opened = make_opened().open(scan=False)
    opened.save("boiler.md", "zyxquartz\n")
    upkeep.full_scan(opened.memory)
    assert opened.running
    (opened.root / "boiler.md").unlink()
    opened.running.steward._dirty(Dirty(frozenset({"boiler.md"})))
    assert Asked(opened).found("zyxquartz") == ["boiler"]
    opened.running.steward._dirty(Dirty(frozenset({"boiler.md"}), gone=frozenset({"boiler.md"})))
    assert Asked(opened).found("zyxquartz") == []

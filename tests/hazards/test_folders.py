"""Folders that are ignored, cannot be listed, go away or come back: nothing is lost, and the rest goes on."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcpd.errors import Unavailable
from pcpd.memory import read, reconcile, steward, write
from pcpd.memory.doctor import status
from pcpd.memory.keeper import Urgency
from pcpd.pages.authorship import Proposed
from tests.hazards.conftest import Asked, git
from tests.vaults import Opened
from tests.waiting import until

linux = pytest.mark.skipif("not __import__('sys').platform.startswith('linux')")


def scan(opened: Opened) -> None:
    """Has the steward look at everything now."""
    assert opened.running
    opened.running.steward.scan()


def look_after(opened: Opened) -> None:
    """What the steward's heartbeat does."""
    assert opened.running
    opened.running.steward._look_after([])


@pytest.mark.parametrize("rules", [".gitignore", ".pcpignore"])
def test_changed_ignore_rules_take_effect_both_ways_while_it_runs(
    opened: Opened, ask: Asked, rules: str
) -> None:
    """What is ignored leaves the index, and is found again when it is not; its file and its versions stay."""
    opened.save("drafts/idea.md", "zyxidea\n")
    opened.save("boiler.md", "zyxboiler\n")
    until(lambda: ask.found("zyxidea") == ["drafts/idea"])
    ask.commit_all()
    opened.save(rules, "drafts/\n")
    until(lambda: ask.found("zyxidea") == [])
    opened.save("drafts/new.md", "zyxnew\n")
    ask.commit_all()
    assert ask.found("zyxboiler") == ["boiler"]
    opened.save(rules, "")
    until(lambda: ask.found("zyxidea") == ["drafts/idea"])
    until(lambda: ask.found("zyxnew") == ["drafts/new"])
    ask.commit_all()
    opened.save("drafts/later.md", "zyxlater\n")
    until(lambda: ask.found("zyxlater") == ["drafts/later"])
    ask.commit_all()
    assert ask.commits("drafts/idea.md") == ["A\tdrafts/idea.md"]
    until(ask.equals_a_rebuild)


@linux
def test_a_huge_ignored_tree_is_neither_watched_nor_read(opened: Opened, ask: Asked) -> None:
    """One watch for each folder of the vault, none for the thousands below `node_modules`."""
    opened.save(".gitignore", "node_modules/\n")
    until(lambda: opened.memory.ignore.folder("node_modules"))
    for number in range(1_000):
        (opened.root / f"node_modules/p{number}").mkdir(parents=True)
        (opened.root / f"node_modules/p{number}/readme.md").write_text("zyxpackage\n")
    opened.save("src/plan.md", "zyxplan\n")
    until(lambda: ask.found("zyxplan") == ["src/plan"])
    scan(opened)
    assert ask.found("zyxpackage") == []
    assert watched_folders() < 20
    opened.restart()
    assert ask.found("zyxpackage") == []
    assert watched_folders() < 20


def watched_folders() -> int:
    """How many watches this process holds."""
    count = 0
    for file in Path("/proc/self/fdinfo").iterdir():
        try:
            count += file.read_text().count("inotify wd:")
        except OSError:
            continue
    return count


@linux
def test_at_the_limit_of_watches_the_vault_is_polled_and_status_says_why(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner starts all the same, and finds what is saved."""

    def refuse(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pcpd.vault.inotify.InotifyFD.add_callback", refuse)
    opened = make_opened(ahead_s=3600).open()
    ask = Asked(opened)
    assert opened.running
    assert opened.running.steward.mode == "polling"
    assert "fs.inotify.max_user_watches" in ask.notice("watch")
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))


def test_a_vault_on_a_network_mount_is_polled_and_status_says_why(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events of other machines never arrive there. State stays on the local disk, or it would be refused."""
    root = make_opened().root
    monkeypatch.setattr("pcpd.vault.watch.network_filesystem", lambda path: "nfs4")
    opened = make_opened(ahead_s=3600).open()
    ask = Asked(opened)
    assert root == opened.root
    assert opened.running
    assert opened.running.steward.mode == "polling"
    assert "nfs4" in ask.notice("watch")
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))


@pytest.fixture
def short_opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """A vault below `/tmp` itself, with 20 pages in one folder; user `nobody` may have what is in it."""
    base = Path(tempfile.mkdtemp(prefix="pcpd-", dir="/tmp"))
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(base))
    opened = Opened(base, ahead_s=3600, quiet_s=0.05)
    for number in range(20):
        opened.save(f"closed/n{number}.md", f"zyxquartz n{number}\n")
    opened.save("open.md", "zyxopen\n")
    opened.open()
    yield opened
    for folder in (opened.root, opened.root / "closed"):
        folder.chmod(0o700)
    opened.close()
    shutil.rmtree(base)


@contextmanager
def closed(folder: Path, base: Path) -> Iterator[None]:
    """Nobody may list the folder, not even who runs pcpd: root, whom nothing stops, is `nobody` meanwhile."""
    nobody = pwd.getpwnam("nobody").pw_uid
    is_root = os.geteuid() == 0
    folder.chmod(0)
    if is_root:
        give(base, nobody)
        os.seteuid(nobody)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
            give(base, 0)
        folder.chmod(0o700)


def give(base: Path, owner: int) -> None:
    """Gives all that is below a folder to somebody."""
    for path in (base, *base.rglob("*")):
        os.chown(path, owner, -1, follow_symlinks=False)


def test_a_sub_folder_that_cannot_be_listed_keeps_its_pages(short_opened: Opened) -> None:
    """In index and history; it is named in `status`, health is not green, and the other pages are followed."""
    opened = short_opened
    ask = Asked(opened)
    ask.commit_all()
    with closed(opened.root / "closed", opened.base):
        scan(opened)
        assert read.search(opened.memory, opened.person, "zyxquartz").total == 20
        assert "closed" in ask.notice("unreadable")
        assert not ask.is_in_step()
        opened.save("open.md", "zyxchanged\n")
        until(lambda: ask.found("zyxchanged"))
    ask.commit_all()
    assert len(git(opened.root, "ls-tree", "-r", "--name-only", "HEAD", "closed/").split()) == 20
    scan(opened)
    until(ask.is_in_step)
    assert ask.notice("unreadable") == ""


def test_a_root_that_cannot_be_listed_deletes_nothing(short_opened: Opened) -> None:
    """It is said, and it goes on by itself afterwards."""
    opened = short_opened
    ask = Asked(opened)
    ask.commit_all()
    with closed(opened.root, opened.base):
        scan(opened)
        assert not ask.is_in_step()
        assert "nothing in it is taken for deleted" in ask.notice("vault")
        assert read.search(opened.memory, opened.person, "zyxquartz").total == 20
    scan(opened)
    until(ask.is_in_step)
    until(lambda: ask.notice("vault") == "")


def test_a_root_that_goes_and_comes_back_is_watched_again(opened: Opened, ask: Asked) -> None:
    """As a disk that is unmounted and mounted: said meanwhile, nothing removed, and the watcher is a new one."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    opened.root.rename(opened.base / "away")
    look_after(opened)
    assert not ask.is_in_step()
    assert "nothing in it is taken for deleted" in ask.notice("vault")
    assert ask.found("zyxquartz") == ["boiler"]
    (opened.base / "away/later.md").write_text("zyxlater\n")
    (opened.base / "away").rename(opened.root)
    look_after(opened)
    until(ask.is_in_step)
    assert (ask.notice("vault"), ask.notice("watch")) == ("", "")
    assert ask.found("zyxlater") == ["later"]
    opened.save("after.md", "zyxafter\n")
    until(lambda: ask.found("zyxafter"))
    opened.failures.clear()  # commits failed meanwhile


def test_a_root_that_another_folder_of_the_same_vault_replaced_is_taken_up(
    opened: Opened, ask: Asked
) -> None:
    """As a backup that was put back, or a folder that a sync program made anew: read, watched and committed."""
    opened.save("boiler.md", "zyxquartz\n")
    opened.save("other.md", "zyxother\n")
    until(lambda: ask.found("zyxquartz") and ask.found("zyxother"))
    ask.commit_all()
    backup = opened.base / "backup"
    shutil.copytree(opened.root, backup, symlinks=True)
    (backup / "boiler.md").write_text("zyxrestored\n")
    opened.root.rename(opened.base / "broken")
    backup.rename(opened.root)
    look_after(opened)
    until(lambda: ask.found("zyxrestored") == ["boiler"])
    until(ask.is_in_step)
    until(lambda: ask.notice("vault") == "")
    opened.save("after.md", "zyxafter\n")
    until(lambda: ask.found("zyxafter") == ["after"])
    ask.commit_all()
    assert git(opened.root, "show", "HEAD:after.md") == "zyxafter\n"
    assert git(opened.root, "show", "HEAD:boiler.md") == "zyxrestored\n"
    opened.restart()
    assert ask.found("zyxafter") == ["after"]


def test_another_vault_in_the_place_of_the_root_is_not_taken_for_it(
    opened: Opened, ask: Asked, make_opened: Callable[..., Opened]
) -> None:
    """Nor a folder that is no vault: nothing of it is read, nothing known is forgotten."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    opened.root.rename(opened.base / "away")
    opened.root.mkdir()
    opened.save("foreign.md", "zyxforeign\n")
    look_after(opened)
    assert not ask.is_in_step()
    assert ask.notice("vault")
    stranger = make_opened("stranger")
    stranger.save(
        ".pcp/context.yaml", (opened.base / "away/.pcp/context.yaml").read_text().replace("ctx_", "ctx_9")
    )
    stranger.save("foreign.md", "zyxforeign\n")
    shutil.rmtree(opened.root)
    stranger.root.rename(opened.root)
    look_after(opened)
    assert not ask.is_in_step()
    assert ask.found("zyxforeign") == []
    assert ask.found("zyxquartz") == ["boiler"]
    shutil.rmtree(opened.root)
    (opened.base / "away").rename(opened.root)
    look_after(opened)
    until(ask.is_in_step)
    opened.failures.clear()  # commits failed meanwhile


def test_the_trouble_of_one_vault_stops_no_other(make_opened: Callable[..., Opened]) -> None:
    """Each has its own keeper, watcher and index."""
    one, two = (make_opened(name, ahead_s=3600).open() for name in ("one", "two"))
    one.root.rename(one.base / "away")
    look_after(one)
    two.save("boiler.md", "zyxquartz\n")
    until(lambda: Asked(two).found("zyxquartz"))
    assert Asked(two).is_in_step()
    assert not Asked(one).is_in_step()
    (one.base / "away").rename(one.root)
    look_after(one)
    one.failures.clear()  # commits failed meanwhile


@linux
def test_a_dead_watcher_is_replaced_and_what_it_missed_is_found(opened: Opened, ask: Asked) -> None:
    """The heartbeat notices that the thread has ended."""
    assert opened.running
    source = opened.running.steward._watch._source
    reader = source._reader  # type: ignore[union-attr]
    reader.stop()
    reader.join()
    opened.save("missed.md", "zyxmissed\n")
    look_after(opened)
    assert ask.found("zyxmissed") == ["missed"]
    opened.save("after.md", "zyxafter\n")
    until(lambda: ask.found("zyxafter"))


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_that_jumped_or_a_sleep_leads_to_a_scan(
    opened: Opened, ask: Asked, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    """Whether it went ahead or back: `proved_at` is as of now, and what no event told is found."""
    assert opened.running
    scans = []
    plain = steward.Steward.scan

    def counted(self: steward.Steward) -> None:
        scans.append(1)
        plain(self)

    monkeypatch.setattr(steward.Steward, "scan", counted)
    look_after(opened)
    assert scans == []
    beat = opened.running.steward._beat()
    opened.running.steward._last = steward.Beat(beat.wall - jump_s, beat.monotonic)
    look_after(opened)
    assert scans == [1]
    look_after(opened)
    assert scans == [1]
    assert opened.memory.health.proved_at is not None


def test_links_and_special_files_are_read_by_nobody(opened: Opened, ask: Asked) -> None:
    """To the own folder, to the parent, to each other, outward; pipes named like pages; a folder made a link."""
    outside = opened.base / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("zyxsecret\n")
    opened.save("swapped/page.md", "zyxswapped\n")
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxswapped"))
    (opened.root / "self").symlink_to(".")
    (opened.root / "up").symlink_to("..")
    (opened.root / "a").symlink_to("b")
    (opened.root / "b").symlink_to("a")
    (opened.root / "out").symlink_to(outside)
    (opened.root / "out.md").symlink_to(outside / "secret.md")
    os.mkfifo(opened.root / "pipe.md")
    (opened.root / "swapped").rename(opened.base / "elsewhere")
    (opened.root / "swapped").symlink_to(outside)
    until(lambda: ask.found("zyxswapped") == [])
    scan(opened)
    ask.commit_all()
    assert ask.found("zyxsecret") == []
    assert read.search(opened.memory, opened.person, "zyxquartz").total == 1
    assert git(opened.root, "ls-tree", "-r", "--name-only", "HEAD").split() == [
        ".pcp/context.yaml",
        "boiler.md",
    ]
    for path in ("out", "out/secret", "up/outside/secret", "swapped/secret", "pipe"):
        with pytest.raises(Exception, match="there is no page"):
            read.read_page(opened.memory, opened.person, path)


def test_each_deletion_is_checked_again_before_it_is_applied(opened: Opened, ask: Asked) -> None:
    """A file that was not there when somebody looked, and is there now, is read and not removed."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    done = reconcile.apply_on_keeper(opened.memory, [reconcile.Gone("boiler.md")], Urgency.EVENT)
    assert done.removed == 0
    assert ask.found("zyxquartz") == ["boiler"]
    (opened.root / "boiler.md").unlink()
    until(lambda: ask.found("zyxquartz") == [])


def test_status_tells_when_the_index_was_last_proved(opened: Opened, ask: Asked) -> None:
    """By a time that each full scan sets."""
    first = ask.status()["index"]["proved_at"]  # type: ignore[index]
    opened.memory.health.proved_at = None
    scan(opened)
    assert first
    assert ask.status()["index"]["proved_at"] >= first  # type: ignore[index]


def test_nothing_of_ours_comes_into_a_vault_that_took_our_place(make_opened: Callable[..., Opened]) -> None:
    """Neither do we take its context for ours, nor does its repository get the versions that we still owe."""
    ours, theirs = make_opened("ours", quiet_s=3600).open(), make_opened("theirs", quiet_s=0).open()
    assert ours.running
    ours.running.committer.close(60)
    write.write_page(ours.memory, ours.person, "note", Proposed("one\n"))
    write.remove_page(ours.memory, ours.person, "note")
    assert status(ours.memory)["history"]["waiting"] == 2
    theirs.save("note.md", "theirs\n")
    until(lambda: git(theirs.root, "for-each-ref") != "")
    theirs.close()
    context = theirs.root / ".pcp" / "context.yaml"
    context.write_text(context.read_text().replace("ctx_", "ctx_9"))
    head = git(theirs.root, "rev-parse", "HEAD")
    ours.root.rename(ours.base / "away")
    theirs.root.rename(ours.root)
    with pytest.raises(Unavailable) as caught:
        ours.running.committer.flush()
    assert caught.value.code == "vault.vanished"
    with ours.memory.transaction() as tx:
        ours.memory.reload_context(tx)
    assert not ours.memory.context.id.startswith("ctx_9")
    assert "another folder" in ours.memory.health.notices["context"]
    assert git(ours.root, "rev-parse", "HEAD") == head
    ours.running.close()
    assert git(ours.root, "rev-parse", "HEAD") == head
    ours.running = None
    ours.failures.clear()

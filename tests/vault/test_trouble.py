"""Trouble of a watcher is noticed, named and healed; what was missed meanwhile is everything."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchdog.observers.inotify_c import InotifyFD

from pcpd.vault import watch as watch_module
from pcpd.vault.ignore import Ignore
from pcpd.vault.inotify import InotifySource
from pcpd.vault.watch import Dirty, Watch
from tests.vault.follower import PATIENCE_S, Follower, stopped

LIMIT = Path("/proc/sys/fs/inotify/max_queued_events")

linux = pytest.mark.skipif("not __import__('sys').platform.startswith('linux')")
Begin = Callable[..., tuple[Watch, Follower]]


@pytest.fixture
def begin(root: Path) -> Iterator[Begin]:
    """Starts to watch and to follow."""
    watches = []

    def start(*, poll: bool = False) -> tuple[Watch, Follower]:
        follower = Follower(root)
        watch = Watch(root, Ignore.load(root), follower, poll=poll, poll_s=0.02, grace_s=0.05)
        watches.append(watch)
        watch.start()
        return watch, follower

    yield start
    for watch in watches:
        stopped(watch)


def inotify(watch: Watch) -> InotifySource:
    """The source of events that stands behind a watcher."""
    assert isinstance(watch._source, InotifySource)
    return watch._source


def put(root: Path, *files: str) -> None:
    """Makes files, and the folders above."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(file, encoding="utf-8")


@linux
class TestInotify:
    """Events of Linux."""

    def test_ignored_folders_are_not_watched(self, root: Path, begin: Begin) -> None:
        """Not `.git`, not what the rules name, nor anything in them, however they came to be."""
        put(
            root,
            "a/b/c.md",
            ".git/refs/heads/x",
            "node_modules/x/y.js",
            ".pcp/context.yaml",
            ".obsidian/app.json",
        )
        put(root, "a/skip/e.md")
        (root / ".gitignore").write_text("node_modules/\n", encoding="utf-8")
        (root / "a/.gitignore").write_text("skip\n", encoding="utf-8")
        watch, follower = begin()
        put(root, "late/node_modules/z/z.js", "late/d.md")
        follower.until_in_step()
        assert sorted(inotify(watch)._folders) == ["", ".pcp", "a", "a/b", "late"]

    def test_many_folders_take_one_instance_and_no_thread_each(self, root: Path, begin: Begin) -> None:
        """The system allows 128 instances for all programs of a person."""
        for number in range(500):
            (root / f"folder-{number}").mkdir()
        before = threading.active_count()
        watch, follower = begin()
        assert threading.active_count() == before + 2
        assert len(inotify(watch)._folders) == 501
        put(root, "folder-499/a.md")
        follower.until_in_step()

    def test_folders_that_went_leave_no_watch(self, root: Path, begin: Begin) -> None:
        """By removal, by moving out, by becoming ignored: the system's number is not used up."""
        put(root, "a/b/c.md", "d/e/f.md", "g/h.md")
        watch, follower = begin()
        (root / "a").rename(root.with_name("outside"))
        for path in ("d/e/f.md", "d/e", "d"):
            (root / path).unlink() if path.endswith(".md") else (root / path).rmdir()
        follower.until(lambda: not follower.differences() and sorted(inotify(watch)._folders) == ["", "g"])
        (root / ".gitignore").write_text("g/\n", encoding="utf-8")
        follower.until(lambda: not follower.differences() and len(inotify(watch)._folders) == 1)
        reader = inotify(watch)._reader
        assert reader is not None
        assert len(reader._watch_for_wd) == 1

    def test_overflow_is_told_as_everything_and_leaves_no_gap(self, root: Path, begin: Begin) -> None:
        """The reader is held up while more happens than the queue holds; afterwards every folder is watched."""
        put(root, "a.md", "b.md", "gone/x.md")
        watch, follower = begin()
        most = int(LIMIT.read_text(encoding="ascii"))
        with watch._pending._news:
            # Alternating names, as the kernel folds equal events that follow each other; and more than the reader
            # may have taken before it was held up.
            for number in range(most + 5000):
                os.close(os.open(root / ("a.md" if number % 2 else "b.md"), os.O_WRONLY))
            put(root, *(f"new/deep/{number}.md" for number in range(100)))
            (root / "gone").rename(root / "moved")
        follower.until_in_step()
        assert len(follower.known) == 103
        assert any(dirty.everything and "overflowed" in dirty.reason for dirty in follower.told)
        told = len(follower.told)
        put(root, "new/deep/later.md", "moved/later.md")
        follower.until_in_step()
        assert not any(dirty.everything for dirty in follower.told[told:])

    @pytest.mark.parametrize(
        ("number", "setting"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
    )
    def test_at_a_limit_of_the_system_the_vault_is_polled(
        self, root: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch, number: int, setting: str
    ) -> None:
        """Never a failed start: the notice names the setting, and changes are seen all the same."""

        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(
            InotifyFD, "add_callback" if number == errno.ENOSPC else "_create_inotify_fd", refuse
        )
        watch, follower = begin()
        assert watch.mode == "polling"
        assert watch.notice is not None
        assert f"fs.inotify.{setting}" in watch.notice
        put(root, "deep/a.md")
        follower.until_in_step()
        assert watch.alive()

    def test_a_limit_reached_later_changes_to_polling_too(
        self, root: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With everything told, since some of it was missed."""
        watch, follower = begin()

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(InotifyFD, "add_callback", refuse)
        put(root, "new/a.md")
        follower.until(lambda: any(dirty.everything for dirty in follower.told))
        follower.until_in_step()
        assert watch.mode == "polling"
        put(root, "new/b.md")
        follower.until_in_step()

    def test_a_dead_reader_is_noticed_and_replaced(self, root: Path, begin: Begin) -> None:
        """What it missed is found by the scan that is asked for."""
        watch, follower = begin()
        reader = inotify(watch)._reader
        assert reader is not None
        reader.stop()
        reader.join()
        put(root, "missed.md")
        assert not watch.alive()
        assert "thread" in watch.trouble()
        assert watch.heal()
        assert watch.alive()
        follower.until_in_step()
        assert any(dirty.everything and "thread" in dirty.reason for dirty in follower.told)
        put(root, "seen.md")
        follower.until_in_step()

    def test_a_closed_folder_stops_nothing(self, unprivileged: Path) -> None:
        """It is not watched, as it cannot be read; the others are."""
        put(unprivileged, "closed/a.md", "open/b.md")
        (unprivileged / "closed").chmod(0)
        heard = threading.Event()
        watch = Watch(unprivileged, Ignore.load(unprivileged), lambda _: heard.set())
        try:
            watch.start()
            assert sorted(inotify(watch)._folders) == ["", "open"]
            put(unprivileged, "open/c.md")
            assert heard.wait(PATIENCE_S)
            assert watch.alive()
        finally:
            stopped(watch)
            (unprivileged / "closed").chmod(0o700)


@pytest.mark.parametrize("poll", [False, True])
@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_a_root_that_vanishes_is_noticed_and_healed_when_it_is_back(
    root: Path, begin: Begin, how: str, poll: bool
) -> None:
    """Healing is refused while there is none; a folder at its place is watched anew, with everything told."""
    put(root, "a.md")
    watch, follower = begin(poll=poll)
    (root / "a.md").unlink() if how == "removed" else root.rename(root.with_name("moved"))
    if how == "removed":
        root.rmdir()
    if how != "replaced":
        assert not watch.alive()
        assert str(root) in watch.trouble()
        assert not watch.heal()
        assert watch.notice is not None
        assert "not noticed" in watch.notice
    root.mkdir()
    put(root, "b.md")
    assert not watch.alive()
    assert watch.heal()
    assert watch.alive()
    assert watch.notice is None
    follower.until(lambda: list(follower.known) == ["b.md"])
    put(root, "deep/c.md")
    follower.until_in_step()


def test_a_network_mount_is_polled(root: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of other machines never arrive there."""
    monkeypatch.setattr(watch_module, "network_filesystem", lambda _: "nfs4")
    watch, follower = begin()
    assert watch.mode == "polling"
    assert watch.notice is not None
    assert "nfs4" in watch.notice
    put(root, "deep/a.md")
    follower.until_in_step()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_fails_is_noticed_and_healed(root: Path) -> None:
    """The thread that delivers ends with it, and is replaced."""
    told: list[Dirty] = []
    failed, healed = threading.Event(), threading.Event()

    def fail_once(dirty: Dirty) -> None:
        told.append(dirty)
        if not failed.is_set():
            failed.set()
            raise ValueError("the first time")
        healed.set()

    watch = Watch(root, Ignore.load(root), fail_once)
    try:
        watch.start()
        thread = watch._thread
        assert thread is not None
        put(root, "a.md")
        thread.join(PATIENCE_S)
        assert watch.trouble() == "the watcher's thread has ended"
        assert watch.heal()
        assert healed.wait(PATIENCE_S)
        assert told[1].everything
        assert watch.alive()
    finally:
        stopped(watch)


@pytest.mark.parametrize("poll", [False, True])
def test_what_happens_while_somebody_is_busy_comes_in_one_piece(root: Path, poll: bool) -> None:
    """A slow consumer holds nothing up, and is never called twice at a time."""
    busy, go_on, told = threading.Event(), threading.Event(), []

    def slow(dirty: Dirty) -> None:
        told.append(dirty)
        if dirty.files & {"first.md"}:
            busy.set()
            assert go_on.wait(PATIENCE_S)
        if "last.md" in {name for each in told for name in each.files}:
            done.set()

    done = threading.Event()
    watch = Watch(root, Ignore.load(root), slow, poll=poll, poll_s=0.02)
    try:
        watch.start()
        put(root, "first.md")
        assert busy.wait(PATIENCE_S)
        names = [f"{number}.md" for number in range(300)]
        put(root, *names, "last.md")
        go_on.set()
        assert done.wait(PATIENCE_S)
        assert {name for each in told for name in each.files} >= set(names)
        assert len(told) < 100
    finally:
        go_on.set()
        stopped(watch)


def test_new_rules_are_followed_when_they_are_handed_over(root: Path, begin: Begin) -> None:
    """From any thread; everything is told, as files come and go without having changed."""
    put(root, "a/b.md")
    (root / ".gitignore").write_text("a/\n", encoding="utf-8")
    watch, follower = begin()
    assert "a/b.md" not in follower.known
    (root / ".gitignore").write_text("", encoding="utf-8")
    watch.use(Ignore.load(root))
    follower.until_in_step()
    assert any(dirty.everything for dirty in follower.told)
    put(root, "a/c.md")
    follower.until_in_step()


def test_stopping_twice_or_before_the_start_is_fine(root: Path) -> None:
    """And nothing is alive afterwards."""
    watch = Watch(root, Ignore.load(root), lambda _: None)
    stopped(watch)
    assert not watch.alive()
    watch.start()
    stopped(watch)
    stopped(watch)
    assert not watch.alive()


def test_polling_takes_a_folder_that_cannot_be_listed_for_unknown(unprivileged: Path) -> None:
    """Its pages are not told as gone; when it is open again, what changed in it is told."""
    put(unprivileged, "closed/a.md", "closed/b.md")
    told: set[str] = set()
    heard = threading.Condition()

    def hear(dirty: Dirty) -> None:
        with heard:
            told.update(dirty.files)
            heard.notify_all()

    watch = Watch(unprivileged, Ignore.load(unprivileged), hear, poll=True, poll_s=0.01, grace_s=0.01)
    try:
        watch.start()
        (unprivileged / "closed").chmod(0)
        put(unprivileged, "c.md")
        with heard:
            assert heard.wait_for(lambda: "c.md" in told, PATIENCE_S)
        put(unprivileged, "d.md")
        with heard:
            assert heard.wait_for(lambda: "d.md" in told, PATIENCE_S)
        assert told == {"c.md", "d.md"}
        (unprivileged / "closed").chmod(0o700)
        (unprivileged / "closed/a.md").unlink()
        with heard:
            assert heard.wait_for(lambda: "closed/a.md" in told, PATIENCE_S)
        assert "closed/b.md" not in told
    finally:
        stopped(watch)
        (unprivileged / "closed").chmod(0o700)

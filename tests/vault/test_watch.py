"""The contract of watching, the same by inotify, by watchdog's observer and by polling.

Whoever follows the dirty names alone knows in the end what is on the disk, and never saw a save as a deletion.
"""

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pcpd.vault import watch as watch_module
from pcpd.vault.ignore import Ignore
from pcpd.vault.observed import ObservedSource
from pcpd.vault.pending import Pending
from pcpd.vault.source import Source
from pcpd.vault.watch import Watch
from tests.vault.follower import Follower, stopped

# watchdog's inotify emitter, which only stands in for other systems here, warns of folders that it watches twice.
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")

Begin = Callable[..., Follower]

WAYS = ["events", "observer", "polling"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How is watched."""
    way: str = request.param
    if way == "observer":

        def observer(root: Path, ignore: Ignore, pending: Pending) -> Source:
            return ObservedSource(root, pending)

        monkeypatch.setattr(watch_module, "_events", observer)
    return way


@pytest.fixture
def begin(root: Path, way: str) -> Iterator[Begin]:
    """Starts to watch and to follow what is there by now; what goes away is told soon, unless asked otherwise."""
    watches = []

    def start(grace_s: float = 0.05) -> Follower:
        follower = Follower(root)
        watch = Watch(root, Ignore.load(root), follower, poll=way == "polling", poll_s=0.02, grace_s=grace_s)
        watches.append(watch)
        watch.start()
        assert watch.alive()
        assert (watch.mode, watch.notice) == ("polling" if way == "polling" else "events", None)
        return follower

    yield start
    for watch in watches:
        stopped(watch)


def save_in_place(path: Path, text: str) -> None:
    """Obsidian, VS Code: truncate and write."""
    path.write_text(text, encoding="utf-8")


def save_by_rename(path: Path, text: str) -> None:
    """Atomic saving: a temporary file, renamed over the page."""
    other = path.with_name(f"{path.name}.tmp")
    other.write_text(text, encoding="utf-8")
    other.replace(path)


def save_by_backup(path: Path, text: str) -> None:
    """The old file becomes the backup, and a new one is written."""
    if path.exists():
        path.replace(path.with_name(path.name + "~"))
    path.write_text(text, encoding="utf-8")


def save_by_delete(path: Path, text: str) -> None:
    """The old file is deleted, and a new one is made."""
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


SAVES = [save_in_place, save_by_rename, save_by_backup, save_by_delete]


@pytest.mark.parametrize("save", SAVES)
def test_of_ten_saves_the_last_version_is_known_and_none_is_a_deletion(
    root: Path, begin: Begin, save: Callable[[Path, str], None]
) -> None:
    """However an editor saves; and its temporary and backup files are never pages."""
    (root / "deep").mkdir()
    page = root / "deep/plan.md"
    page.write_text("first", encoding="utf-8")
    follower = begin(grace_s=30.0)
    for number in range(10):
        save(page, f"version {number} " + "x" * number * 1000)
        if number == 5:
            follower.until_in_step()
    follower.until_in_step()
    assert follower.known["deep/plan.md"].startswith(b"version 9")
    assert follower.lost == set()
    assert follower.names == {"deep/plan.md"}


def test_files_that_come_go_and_move_are_followed(root: Path, begin: Begin) -> None:
    """Creation, deletion, renames within and between folders, an exchange of two, an empty file."""
    for name in ("a", "b"):
        (root / name).mkdir()
    (root / "a/old.md").write_text("1", encoding="utf-8")
    (root / "a/gone.md").write_text("2", encoding="utf-8")
    follower = begin()
    (root / "a/new.md").write_text("3", encoding="utf-8")
    (root / "a/empty.md").touch()
    (root / "a/gone.md").unlink()
    (root / "a/old.md").rename(root / "b/old.md")
    (root / "a/new.md").rename(root / "a/New.md")
    follower.until_in_step()
    assert sorted(follower.known) == ["a/New.md", "a/empty.md", "b/old.md"]


def test_a_folder_created_and_filled_at_once_is_seen_whole(root: Path, begin: Begin) -> None:
    """Its first files are there before it can be watched; and later ones are seen too."""
    follower = begin()
    for number in range(20):
        deep = root / f"new-{number}" / "a" / "b"
        deep.mkdir(parents=True)
        for name in ("one.md", "a.md"):
            (deep / name).write_text(name, encoding="utf-8")
            (deep.parent / name).write_text(name, encoding="utf-8")
    follower.until_in_step()
    assert len(follower.known) == 80
    (root / "new-3/a/b/later.md").write_text("later", encoding="utf-8")
    follower.until_in_step()
    assert "new-3/a/b/later.md" in follower.known


def test_folders_that_move_in_within_and_out_are_followed(root: Path, tmp_path: Path, begin: Begin) -> None:
    """With what is in them, and with what is saved there afterwards, under the new path."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/a.md").write_text("a", encoding="utf-8")
    follower = begin()
    outside.rename(root / "in")
    follower.until_in_step()
    (root / "in/deep/b.md").write_text("b", encoding="utf-8")
    follower.until_in_step()
    (root / "in").rename(root / "within")
    follower.until_in_step()
    assert sorted(follower.known) == ["within/deep/a.md", "within/deep/b.md"]
    (root / "within/deep/b.md").write_text("b again", encoding="utf-8")
    follower.until_in_step()
    assert follower.known["within/deep/b.md"] == b"b again"
    (root / "within").rename(outside)
    follower.until_in_step()
    assert follower.known == {}
    (outside / "deep/a.md").write_text("not ours any more", encoding="utf-8")
    (root / "last.md").write_text("last", encoding="utf-8")
    follower.until_in_step()
    assert follower.known == {"last.md": b"last"}


def test_two_folders_that_swap_their_names_are_followed(root: Path, begin: Begin) -> None:
    """Each page is known under the path that it has now, and so are later saves."""
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / f"{name}.md").write_text(name, encoding="utf-8")
    follower = begin()
    (root / "a").rename(root / "c")
    (root / "b").rename(root / "a")
    (root / "c").rename(root / "b")
    follower.until_in_step()
    (root / "b/a.md").write_text("a again", encoding="utf-8")
    follower.until_in_step()
    assert follower.known == {"a/b.md": b"b", "b/a.md": b"a again"}


def test_what_is_renamed_to_and_from_ignored_names_comes_and_goes(root: Path, begin: Begin) -> None:
    """Files and whole folders; what is saved inside afterwards counts, or does not."""
    (root / ".gitignore").write_text("build/\n*.log\n", encoding="utf-8")
    (root / "build").mkdir()
    (root / "build/a.md").write_text("a", encoding="utf-8")
    (root / "x.log").write_text("x", encoding="utf-8")
    follower = begin()
    (root / "build").rename(root / "notes")
    (root / "x.log").rename(root / "x.md")
    follower.until_in_step()
    assert sorted(follower.known) == [".gitignore", "notes/a.md", "x.md"]
    (root / "notes/b.md").write_text("b", encoding="utf-8")
    follower.until_in_step()
    (root / "notes").rename(root / "build")
    (root / "x.md").rename(root / "x.log")
    follower.until_in_step()
    assert list(follower.known) == [".gitignore"]
    told = len(follower.told)
    (root / "build/c.md").write_text("c", encoding="utf-8")
    (root / "y.md").write_text("y", encoding="utf-8")
    follower.until(lambda: "y.md" in follower.known)
    assert not [name for dirty in follower.told[told:] for name in dirty.files if name.startswith("build")]


@pytest.mark.parametrize("source", [".gitignore", ".pcpignore", "deep/.gitignore"])
def test_a_changed_ignore_rule_takes_effect_both_ways(root: Path, begin: Begin, source: str) -> None:
    """Without a restart: everything is told, ignored folders are left and let-in ones are watched."""
    (root / "deep/build").mkdir(parents=True)
    (root / "deep/build/a.md").write_text("a", encoding="utf-8")
    (root / "deep/b.log").write_text("b", encoding="utf-8")
    follower = begin()
    assert sorted(follower.known) == ["deep/b.log", "deep/build/a.md"]
    (root / source).write_text("build/\n*.log\n", encoding="utf-8")
    follower.until_in_step()
    follower.until(lambda: any(dirty.everything and "ignore" in dirty.reason for dirty in follower.told))
    assert list(follower.known) == [source]
    (root / source).unlink()
    follower.until_in_step()
    assert sorted(follower.known) == ["deep/b.log", "deep/build/a.md"]
    (root / "deep/build/a.md").write_text("a again", encoding="utf-8")
    follower.until_in_step()


def test_links_made_from_outside_count_as_what_they_are(root: Path, begin: Begin) -> None:
    """A hard link is a file that nobody closed; a page that becomes a symbolic link is no page any more."""
    (root / "a.md").write_text("a", encoding="utf-8")
    (root / "b.md").write_text("b", encoding="utf-8")
    follower = begin()
    os.link(root / "a.md", root / "hard.md")
    (root / "b.md").unlink()
    (root / "b.md").symlink_to("a.md")
    follower.until_in_step()
    assert sorted(follower.known) == ["a.md", "hard.md"]


def test_names_that_nothing_can_store_are_never_told(root: Path, begin: Begin) -> None:
    """Bytes that are not UTF-8 are left to the scan, which shows them; a line break in a name is fine."""
    follower = begin()
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("latin-1")
        Path(os.fsdecode(os.fsencode(root) + b"/d\xff")).mkdir()
    except OSError:
        pass  # a file system that refuses them can have none
    (root / "two\nlines.md").write_text("two", encoding="utf-8")
    follower.until_in_step()
    for dirty in follower.told:
        assert all(name.encode() for name in dirty.files | dirty.folders)


@pytest.mark.parametrize("seed", range(3))
def test_any_history_ends_in_step(root: Path, begin: Begin, seed: int, soak: int) -> None:
    """Files and folders made, saved, renamed, swapped and removed at random, in bursts."""
    follower = begin()
    chance = random.Random(seed)  # noqa: S311 - a test's dice
    for _ in range(8 * soak):
        for _ in range(chance.randrange(1, 12)):
            _something(root, chance)
        follower.until_in_step()


def test_files_of_other_processes_are_seen(root: Path, begin: Begin) -> None:
    """A checkout with plain tools: extract, copy, move, remove."""
    follower = begin()
    script = "mkdir -p a/b; for i in 1 2 3 4 5; do echo $i > a/b/$i.md; done; cp -r a c; mv c/b d; rm -r a"
    subprocess.run(["sh", "-c", script], cwd=root, check=True)
    follower.until_in_step()
    assert sorted(follower.known) == [f"d/{number}.md" for number in range(1, 6)]


def _something(root: Path, chance: random.Random) -> None:
    """One random act of a person, on names that collide often."""
    names = ["a", "b", "c.md", "d.md", "e.tmp", "build"]
    places = [root, *(path for path in root.rglob("*") if path.is_dir())]
    path = chance.choice(places) / chance.choice(names)
    other = chance.choice(places) / chance.choice(names)
    try:
        match chance.randrange(6):
            case 0:
                path.mkdir()
            case 1 | 2:
                path.write_text(str(chance.random()), encoding="utf-8")
            case 3:
                path.rename(other)
            case 4:
                path.unlink() if path.is_file() else path.rmdir()
            case _:
                chance.choice(SAVES)(path, str(chance.random()))
    except OSError:
        pass

"""Killed at any step, the next start completes the commit: all or nothing, never doubled, no lock left."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.history.killed import changes
from tests.history.people import History, Opener, Person


@pytest.fixture
def prepared(person: Person, open_history: Opener) -> History:
    """A vault with a first commit, changed on disk since."""
    history = open_history(person.folder, create=True)
    history.save(("page.md", b"one\n"), ("gone.md", b"gone\n"), ("staged.md", b"one\n"), message="first")
    person.write("staged.md", "staged\n")
    person.git("add", "staged.md")
    person.write("staged.md", "one\n")
    history.put("page.md", b"two\n")
    history.put("new.md", b"new\n")
    history.put("gone.md", None)
    for number in range(30):
        history.put(f"n/{number}.md", b"many %d\n" % number)
    return history


@pytest.mark.parametrize("size", ["few", "many"])
def test_a_commit_that_was_killed_is_completed_by_doing_it_again(
    prepared: History, person: Person, open_history: Opener, size: str, soak: int
) -> None:
    """At every effect on the disk in a long run, at some of them in a short one."""
    prepared.repository.close()
    before = person.folder.parent / "before"
    person.folder.rename(before)
    _copy(before, person.folder)
    effects = int(_run(person, 0, size).stdout)
    assert effects > 10
    stride = 1 if soak > 1 else max(1, effects // 6)
    for step in range(1, effects + 1, stride):
        shutil.rmtree(person.folder)
        _copy(before, person.folder)
        assert _run(person, step, size).returncode == -9
        person.git("fsck", "--strict")
        assert person.git("log", "--format=%s").splitlines() in (["first"], ["changed", "first"])
        _complete(open_history(person.folder), size)
        _check(person, size)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _run(person: Person, step: int, size: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("killed.py")
    return subprocess.run(
        [sys.executable, str(script), str(person.folder), str(step), size],
        env={**person.env, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True, text=True,
    )  # fmt: skip


def _complete(history: History, size: str) -> None:
    """What the next owner does: the same again."""
    history.commit(*changes(history.root, size), message="changed")
    assert history.repository.state().unsettled == 0


def _check(person: Person, size: str) -> None:
    """The commit is there once, nothing else of the person's changed, and nothing is left lying about."""
    assert person.git("log", "--format=%s").splitlines() == ["changed", "first"]
    assert person.git("show", "HEAD:page.md") == "two\n"
    assert "gone.md" not in person.git("ls-tree", "--name-only", "HEAD")
    assert person.status() == ("MM staged.md\n?? n/\n" if size == "few" else "MM staged.md\n")
    assert not list((person.folder / ".git").rglob("*.lock"))
    assert [path.name for path in (person.folder / ".git" / "pcpd" / "ctx_1_a").rglob("*")] == ["locks"]

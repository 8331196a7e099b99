"""A person's git beside pcpd: locks, operations under way, odd repositories. Nothing is lost, and all is said."""

import os
import subprocess
from collections.abc import Callable

import pygit2
import pytest

from pcpd.memory import commits, read, upkeep, versions
from pcpd.memory.doctor import doctor
from tests.hazards.conftest import Asked, git
from tests.vaults import Opened
from tests.waiting import until

SAM = ("-c", "user.name=Sam", "-c", "user.email=sam@example.org")


@pytest.fixture
def adopted(make_opened: Callable[..., Opened]) -> Opened:
    """A folder with a repository of the person's, not open yet: `boiler.md` and `other.md` on `main`."""
    opened = make_opened("adopted", ahead_s=3600, quiet_s=0.05)
    opened.save("boiler.md", "zyxquartz\n")
    opened.save("other.md", "zyxother\n")
    git(opened.root, "init", "-q", "-b", "main")
    git(opened.root, "add", "-A")
    git(opened.root, *SAM, "commit", "-qm", "mine")
    return opened


def test_a_lock_that_stays_is_told_with_advice_and_all_is_committed_once_it_is_gone(
    adopted: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never removed; saves wait, and none of the last versions is lost."""
    monkeypatch.setattr(commits, "TELL_S", 0.1)
    opened = adopted.open()
    ask = Asked(opened)
    ask.commit_all()
    file = opened.root / ".git/refs/heads/main.lock"
    file.touch()
    opened.save("boiler.md", "zyxsecond\n")
    until(lambda: ask.found("zyxsecond"))
    until(lambda: ask.notice("commits"))
    assert f"{file} is held for" in ask.notice("commits")
    assert "when no git is running, remove it" in ask.notice("commits")
    assert file.exists()
    assert git(opened.root, "show", "HEAD:boiler.md") == "zyxquartz\n"
    file.unlink()
    ask.commit_all()
    until(lambda: ask.notice("commits") == "")
    assert git(opened.root, "show", "HEAD:boiler.md") == "zyxsecond\n"
    opened.failures.clear()


def test_an_index_lock_does_not_hold_history_up_and_is_told(adopted: Opened) -> None:
    """The commit is made, the person's index entry follows when the lock is gone, and `status` says it is there."""
    opened = adopted.open()
    ask = Asked(opened)
    ask.commit_all()
    lock = opened.root / ".git/index.lock"
    lock.touch()
    opened.save("boiler.md", "zyxsecond\n")
    until(lambda: ask.found("zyxsecond"))
    until(lambda: ask.status()["history"]["locked"])  # type: ignore[index]
    until(lambda: git(opened.root, "show", "HEAD:boiler.md") == "zyxsecond\n")
    assert lock.exists()
    lock.unlink()
    until(lambda: git(opened.root, "--no-optional-locks", "status", "--porcelain", "--", "boiler.md") == "")
    opened.failures.clear()


def test_a_merge_under_way_is_named_and_left_alone_and_versions_land_afterwards(adopted: Opened) -> None:
    """Markers are shown as unresolved and found; nothing of the merge is committed for the person."""
    root = adopted.root
    git(root, "checkout", "-qb", "side")
    adopted.save("boiler.md", "zyxside\n")
    git(root, *SAM, "commit", "-qam", "side")
    git(root, "checkout", "-q", "main")
    adopted.save("boiler.md", "zyxmain\n")
    git(root, *SAM, "commit", "-qam", "main")
    opened = adopted.open()
    ask = Asked(opened)
    until(lambda: ask.found("zyxmain"))
    ask.commit_all()
    head = git(root, "rev-parse", "HEAD")
    subprocess.run(["git", "-C", str(root), *SAM, "merge", "-q", "side"], capture_output=True, check=False)
    until(lambda: ask.found("zyxside") == ["boiler"])
    assert ask.status()["history"]["operation"] == "merge"  # type: ignore[index]
    problems = {each["file"]: each["code"] for each in doctor(opened.memory)["problems"]}
    assert problems == {"boiler.md": "page.conflict"}
    opened.save("other.md", "zyxmeanwhile\n")
    until(lambda: ask.found("zyxmeanwhile"))
    ask.commit_all()
    assert git(root, "rev-parse", "HEAD") == head
    assert (root / ".git/MERGE_HEAD").exists()
    opened.save("boiler.md", "zyxboth\n")
    git(root, "add", "boiler.md")
    git(root, *SAM, "commit", "-qm", "merged")
    until(lambda: git(root, "show", "HEAD:other.md") == "zyxmeanwhile\n")
    assert git(root, "show", "HEAD:boiler.md") == "zyxboth\n"
    assert ask.status()["history"]["operation"] == ""  # type: ignore[index]
    opened.failures.clear()


def test_a_detached_head_and_a_switched_branch_are_seen_and_left_as_they_are(adopted: Opened) -> None:
    """The index follows what is on disk; the branch is never moved by pcpd."""
    root = adopted.root
    git(root, "checkout", "-qb", "side")
    adopted.save("side.md", "zyxside\n")
    git(root, "add", "-A")
    git(root, *SAM, "commit", "-qm", "side")
    git(root, "checkout", "-q", "main")
    opened = adopted.open()
    ask = Asked(opened)
    ask.commit_all()
    git(root, "checkout", "-q", "side")
    until(lambda: ask.found("zyxside") == ["side"])
    git(root, "checkout", "-q", "--detach", "main")
    until(lambda: ask.found("zyxside") == [])
    assert ask.status()["history"]["detached"] is True  # type: ignore[index]
    opened.save("boiler.md", "zyxdetached\n")
    until(lambda: ask.found("zyxdetached"))
    ask.commit_all()
    assert git(root, "show", "main:boiler.md") == "zyxquartz\n"
    assert "side.md" in git(root, "ls-tree", "--name-only", "side")
    git(root, "stash", "-q")
    git(root, "checkout", "-q", "main")
    until(lambda: ask.status()["history"]["detached"] is False)  # type: ignore[index]
    opened.failures.clear()


def test_pages_of_a_nested_clone_are_found_and_said_to_have_no_history_here(
    opened: Opened, ask: Asked
) -> None:
    """It is never added as a link of the vault's repository."""
    nested = opened.root / "nested"
    git(opened.base, "init", "-q", str(nested))
    opened.save("nested/page.md", "zyxnested\n")
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxnested") == ["nested/page"])
    ask.commit_all()
    assert git(opened.root, "ls-tree", "-r", "--name-only", "HEAD").split() == [
        ".pcp/context.yaml",
        "boiler.md",
    ]
    assert "nested/page.md" in ask.notice("refused")


def test_a_broken_git_folder_is_said_and_pages_are_served(make_opened: Callable[..., Opened]) -> None:
    """No history, in plain words; nothing of the folder is changed."""
    opened = make_opened()
    opened.save(".git/noise", "x")
    opened.save("boiler.md", "zyxquartz\n")
    opened.open()
    ask = Asked(opened)
    assert ask.found("zyxquartz") == ["boiler"]
    assert "no history is kept" in ask.notice("history")
    assert ask.status()["history"]["kept"] is False  # type: ignore[index]
    assert [path.name for path in (opened.root / ".git").iterdir()] == ["noise"]


def test_files_that_are_absent_by_design_are_not_deletions(adopted: Opened) -> None:
    """A sparse checkout leaves `closed/` out: no commit removes it, not with an index that is made anew either."""
    root = adopted.root
    adopted.save("closed/a.md", "zyxa\n")
    adopted.save("open/b.md", "zyxb\n")
    git(root, "add", "-A")
    git(root, *SAM, "commit", "-qm", "more")
    git(root, "sparse-checkout", "set", "open")
    assert not (root / "closed").exists()
    opened = adopted.open()
    ask = Asked(opened)
    opened.save("open/b.md", "zyxchanged\n")
    until(lambda: ask.found("zyxchanged"))
    ask.commit_all()
    upkeep.rebuild(opened.memory)
    ask.commit_all()
    assert "closed/a.md" in git(root, "ls-tree", "-r", "--name-only", "HEAD")
    assert git(root, "show", "HEAD:open/b.md") == "zyxchanged\n"


def test_a_shallow_clone_is_named_and_goes_on(adopted: Opened, make_opened: Callable[..., Opened]) -> None:
    """`status` says what is missing; saves are committed."""
    opened = make_opened("clone", ahead_s=3600, quiet_s=0.05)
    opened.base.mkdir(parents=True)
    adopted.save("boiler.md", "zyxsecond\n")
    git(adopted.root, *SAM, "commit", "-qam", "second")
    git(adopted.root, "clone", "-q", "--depth", "1", adopted.root.as_uri(), str(opened.root))
    opened.open()
    ask = Asked(opened)
    assert "shallow" in ask.status()["history"]["notice"]  # type: ignore[index]
    opened.save("new.md", "zyxnew\n")
    until(lambda: ask.found("zyxnew"))
    ask.commit_all()
    assert git(opened.root, "show", "HEAD:new.md") == "zyxnew\n"


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.autocrlf=input", "core.fileMode=false"])
def test_settings_of_line_endings_and_modes_make_no_page_look_changed(adopted: Opened, setting: str) -> None:
    """No commit, no index work; a page with CRLF goes in as it is on disk where no attribute says otherwise."""
    root = adopted.root
    adopted.save("crlf.md", b"zyxcrlf\r\nline\r\n")
    git(root, "add", "-A")
    git(root, *SAM, "commit", "-qm", "crlf")
    name, _, value = setting.partition("=")
    git(root, "config", name, value)
    (root / "boiler.md").chmod(0o755)
    opened = adopted.open()
    ask = Asked(opened)
    ask.commit_all()
    head, applied = git(root, "rev-parse", "HEAD"), opened.memory.applied
    for path in root.glob("*.md"):
        os.utime(path, (1, 1))
    assert opened.running
    opened.running.steward.scan()
    ask.commit_all()
    assert git(root, "rev-parse", "HEAD") == head
    assert opened.memory.applied == applied
    assert len(versions.log(opened.memory, opened.person, "crlf")) == 1


def test_a_vault_without_git_name_or_home_is_committed(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the name of pcpd, by an environment that has neither."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    opened = make_opened(ahead_s=3600, quiet_s=0.05).open()
    opened.save("boiler.md", "zyxquartz\n")
    ask = Asked(opened)
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    assert "pcpd" in git(opened.root, "log", "--format=%an")


def test_the_commit_of_one_page_is_the_same_work_in_any_vault(opened: Opened, ask: Asked) -> None:
    """One blob, one tree for each folder above it and one commit, however many pages lie beside."""
    for number in range(600):
        opened.save(f"f{number % 30}/p{number}.md", f"zyxquartz {number}\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").total == 600)
    ask.commit_all()
    before = loose_objects(opened)
    opened.save("f7/p7.md", "zyxchanged\n")
    until(lambda: ask.found("zyxchanged"))
    ask.commit_all()
    assert loose_objects(opened) - before == 4


def loose_objects(opened: Opened) -> int:
    """How many objects lie in files of their own."""
    return int(git(opened.root, "count-objects").split()[0])


def test_a_configuration_that_git_cannot_read_is_told_and_pages_are_served(
    opened: Opened, ask: Asked
) -> None:
    """`status` answers, and says why no history is kept meanwhile."""
    opened.save("boiler.md", "zyxquartz\n")
    until(lambda: ask.found("zyxquartz"))
    ask.commit_all()
    config = opened.root / ".git/config"
    good = config.read_bytes()
    config.write_bytes(good + b"[broken\n")
    until(lambda: ask.status()["history"]["kept"] is False)  # type: ignore[index]
    assert "config" in str(ask.status()["history"])
    assert ask.found("zyxquartz") == ["boiler"]
    config.write_bytes(good)
    opened.save("new.md", "zyxnew\n")
    until(lambda: ask.found("zyxnew"))
    ask.commit_all()
    assert git(opened.root, "show", "HEAD:new.md") == "zyxnew\n"
    opened.failures.clear()


def test_a_repository_that_cannot_be_made_is_told_and_pages_are_served(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where git's configuration in the home may not be read."""

    def refuse(*_: object, **__: object) -> None:
        raise pygit2.GitError("failed to stat '/home/sam/.gitconfig'")

    monkeypatch.setattr("pygit2.init_repository", refuse)
    opened = make_opened()
    opened.save("boiler.md", "zyxquartz\n")
    opened.open()
    assert "/home/sam/.gitconfig" in Asked(opened).notice("history")
    assert Asked(opened).found("zyxquartz") == ["boiler"]
    assert not (opened.root / ".git").exists()

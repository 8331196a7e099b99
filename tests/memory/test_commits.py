"""What comes to rest is committed, whenever the owner is killed; large and ignored files are told."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pcpd.errors import Broken, Unavailable
from pcpd.index import outbox
from pcpd.memory import read, upkeep, versions, write
from pcpd.memory.commits import TOPIC
from pcpd.memory.doctor import status
from pcpd.memory.memory import ATTACHMENT_LIMIT
from pcpd.pages.edits import Edit
from pcpd.vault.files import FileBytes, Files
from tests.vaults import Opened
from tests.waiting import until

KILLED = """
import os, signal, sys
from pathlib import Path
from pcpd.pages.edits import Edit
from tests.vaults import Opened
from pcpd.history.repository import Repository
from pcpd.index import outbox
from pcpd.memory import commits, reconcile

steps = 0
def step(*_):
    global steps
    steps += 1
    if steps == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

def counted(owner, name):
    plain = getattr(owner, name)
    def instead(*args, **kwargs):
        step()
        answer = plain(*args, **kwargs)
        step()
        return answer
    setattr(owner, name, instead)

for owner, name in ((Repository, "build"), (Repository, "publish"), (outbox, "clear"), (outbox, "done"),
                    (reconcile, "apply"), (outbox, "mark"), (Repository, "store")):
    counted(owner, name)
opened = Opened(Path(sys.argv[1]), ahead_s=3600).open()
opened.running.committer.flush()
from pcpd.memory import write
from pcpd.pages.authorship import Proposed
write.write_page(opened.memory, opened.person, "act", Proposed("by an act\\n"))
opened.running.committer.flush()
print("untouched", flush=True)
os._exit(0)
"""


def tracked(opened: Opened) -> dict[str, str]:
    """The files of HEAD and what each holds."""
    git = ["git", "-C", str(opened.root)]
    names = subprocess.run(
        [*git, "ls-tree", "-rz", "--name-only", "HEAD"], capture_output=True, check=False
    ).stdout
    return {
        name: subprocess.run(
            [*git, "show", f"HEAD:{name}"], capture_output=True, text=True, check=True
        ).stdout
        for name in names.decode().split("\0")
        if name
    }


def test_after_a_kill_at_any_step_the_next_start_completes_the_commit(
    make_opened: Callable[..., Opened], soak: int
) -> None:
    """Killed at step 1, 2, 3 … until a run finishes untouched: every version on disk is in HEAD, once."""
    root = Path(__file__).resolve().parent.parent.parent
    # The short form kills at every fourth step, the long one (scripts/soak) at every one.
    for step in range(1, 400, 4 if soak == 1 else 1):
        opened = make_opened(f"step{step}", ahead_s=3600, quiet_s=0)
        opened.root.mkdir(parents=True)
        (opened.root / "saved.md").write_text("by an editor\n")
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(opened.base), str(step)],
            cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode in {-signal.SIGKILL, 0}, run.stderr
        opened.open()
        until(partial(_is_quiet, opened))
        head = tracked(opened)
        assert head["saved.md"] == "by an editor\n"
        assert ("act.md" in head) == (opened.root / "act.md").exists()
        assert not subprocess.run(
            ["git", "-C", str(opened.root), "status", "--porcelain"], capture_output=True, check=True
        ).stdout
        found = versions.log(opened.memory, opened.person, "saved")
        assert len(found) == 1
        opened.close()
        if run.stdout == "untouched\n":
            assert step > 10
            return
    pytest.fail("no run ever finished")


def test_a_flush_commits_what_is_not_quiet_yet(make_opened: Callable[..., Opened]) -> None:
    """SIGTERM does not leave the last save to the next start."""
    opened = make_opened(ahead_s=3600).open()
    opened.save("note.md", "the last words\n")
    until(lambda: read.search(opened.memory, opened.person, "words").results)
    opened.close()
    assert tracked(opened)["note.md"] == "the last words\n"


def test_attachments_are_versioned_up_to_a_size_and_larger_ones_are_told(opened: Opened) -> None:
    """10 MiB by default; `status` names what is left out."""
    opened.save("small.png", b"\x89PNG" + bytes(100))
    opened.save("large.bin", bytes(ATTACHMENT_LIMIT + 1))
    until(lambda: status(opened.memory)["left_out"])
    until(lambda: "small.png" in _names(opened))
    assert "large.bin" not in _names(opened)
    assert [name for name, _ in status(opened.memory)["left_out"]] == ["large.bin"]


def test_of_dot_files_only_four_names_are_versioned(opened: Opened) -> None:
    """`.obsidian` and `.trash` are the person's own business."""
    for file in (".obsidian/app.json", ".trash/old.md", ".env", ".gitignore", ".pcpignore", ".gitattributes"):
        opened.save(file, "x\n")
    until(lambda: ".gitattributes" in _names(opened))
    assert {name for name in _names(opened) if name.startswith(".")} == {
        ".pcp/context.yaml", ".gitignore", ".pcpignore", ".gitattributes",
    }  # fmt: skip


def test_an_adopted_repository_gets_what_differs_and_no_more(make_opened: Callable[..., Opened]) -> None:
    """A folder with a history of its own: unchanged pages make no commit, changed and new ones one."""
    opened = make_opened("adopted")
    opened.root.mkdir(parents=True)
    git = ["git", "-C", str(opened.root), "-c", "user.name=Sam", "-c", "user.email=sam@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    (opened.root / "old.md").write_text("old\n")
    (opened.root / "changed.md").write_text("before\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "mine"], check=True)
    (opened.root / "changed.md").write_text("after\n")
    (opened.root / "new.md").write_text("new\n")
    opened.open()
    until(lambda: tracked(opened).get("new.md") == "new\n" and tracked(opened)["changed.md"] == "after\n")
    assert len(versions.log(opened.memory, opened.person, "old")) == 1
    assert len(versions.log(opened.memory, opened.person, None)) == 2


def test_deletions_that_happened_while_no_owner_ran_and_the_index_was_lost_are_committed(
    opened: Opened,
) -> None:
    """Delete every database: a rescan sees that HEAD has a page that the disk has not."""
    for n in range(12):
        opened.save(f"n{n}.md", f"{n}\n")
    until(lambda: len([name for name in _names(opened) if name.endswith(".md")]) == 12)
    opened.close()
    (opened.root / "n0.md").unlink()
    for file in (opened.base / "state" / "v").glob("index*"):
        file.unlink()
    opened.open()
    until(lambda: "n0.md" not in _names(opened))


def test_an_empty_clone_does_not_commit_the_deletion_of_all(make_opened: Callable[..., Opened]) -> None:
    """HEAD has pages, the disk has none, and the index is new: that waits for a person."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    for n in range(12):
        opened.save(f"n{n}.md", f"{n}\n")
    until(lambda: len([name for name in _names(opened) if name.endswith(".md")]) == 12)
    opened.close()
    for file in [*opened.root.glob("*.md"), *(opened.base / "state" / "v").glob("index*")]:
        file.unlink()
    opened.open()
    until(lambda: status(opened.memory)["lost"] == 12)
    upkeep.full_scan(opened.memory)
    opened.running.committer.flush()  # type: ignore[union-attr]
    assert len([name for name in _names(opened) if name.endswith(".md")]) == 12


def test_a_file_that_cannot_be_read_keeps_no_other_from_its_commit(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on waiting, `status` says why, and it is committed once it can be read again."""
    opened = make_opened(ahead_s=3600, quiet_s=0.2).open()
    plain = Files.read

    def refusing(files: Files, file: str, limit: int) -> FileBytes:
        if file == "closed.md" and threading.current_thread().name == "commits":
            raise Broken("vault.unreadable", "cannot read closed.md: Permission denied")
        return plain(files, file, limit)

    monkeypatch.setattr(Files, "read", refusing)
    opened.save("closed.md", "closed\n")
    opened.save("open.md", "open\n")
    until(lambda: "open.md" in _names(opened))
    until(lambda: "cannot read closed.md" in opened.memory.health.notices.get(TOPIC, ""))
    assert "closed.md" not in _names(opened)
    assert status(opened.memory)["history"]["waiting"] == 1
    monkeypatch.undo()
    until(lambda: "closed.md" in _names(opened))
    until(lambda: TOPIC not in opened.memory.health.notices)
    opened.failures.clear()


def test_conversations_wait_longer_than_pages(make_opened: Callable[..., Opened]) -> None:
    """A page beside it is committed; the conversation when it has been quiet for a minute, or at the end."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    opened.save("talk.md", "<!-- pcp:message id=1 -->\nHello.\n")
    opened.save("page.md", "a page\n")
    until(lambda: "page.md" in _names(opened))
    until(lambda: read.search(opened.memory, opened.person, "hello").total == 1)
    until(lambda: status(opened.memory)["history"]["waiting"] == 1)
    assert "talk.md" not in _names(opened)
    opened.ahead_s += 61
    opened.save("another.md", "another page\n")
    until(lambda: "another.md" in _names(opened))
    until(lambda: "talk.md" in _names(opened))
    opened.save("talk.md", "<!-- pcp:message id=1 -->\nHello again.\n")
    until(lambda: read.search(opened.memory, opened.person, "again").total == 1)
    opened.close()
    assert "again" in tracked(opened)["talk.md"]


def test_the_committing_thread_lives_on_when_the_index_cannot_be_asked(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reader busy for ten seconds, say: what waits is committed later."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    asked = threading.Event()

    def busy(*_: object) -> bool:
        asked.set()
        raise Unavailable("index.busy", "every reader of the index is busy")

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "is_waiting", busy)
        opened.save("one.md", "one\n")
        until(asked.is_set)
    opened.save("two.md", "two\n")
    until(lambda: {"one.md", "two.md"} <= set(_names(opened)))
    opened.failures.clear()


def test_without_history_nobody_wakes_for_what_waits(make_opened: Callable[..., Opened]) -> None:
    """A broken `.git`: versions wait without end, and an idle owner sleeps all the same."""
    opened = make_opened(quiet_s=0)
    opened.root.mkdir(parents=True)
    (opened.root / ".git").write_text("no repository\n")
    (opened.root / "note.md").write_text("note\n")
    opened.open()
    assert opened.memory.history is None
    until(lambda: opened.running.committer._pause_s is None)  # type: ignore[union-attr]
    assert status(opened.memory)["history"]["waiting"] > 0


def test_the_log_of_the_index_is_emptied_when_nothing_is_left_to_do(
    make_opened: Callable[..., Opened],
) -> None:
    """SQLite is told not to do it in the way of a save, so somebody must, or it grows with every save."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    index = opened.memory.index
    for round_ in range(30):
        opened.save("note.md", f"{round_} " + "many words " * 20_000)
        until(partial(_is_found, opened, str(round_)))
    until(lambda: index.wal_bytes() <= 1024 * 1024 and index.path.stat().st_size > 200_000)


def _names(opened: Opened) -> list[str]:
    git = ["git", "-C", str(opened.root), "ls-tree", "-rz", "--name-only", "HEAD"]
    return subprocess.run(git, capture_output=True, check=False).stdout.decode().split("\0")


def _is_quiet(opened: Opened) -> bool:
    return bool(status(opened.memory)["history"]["waiting"] == 0)


def test_an_act_whose_branch_was_left_before_its_commit_is_kept_beside_the_other_branch(
    make_opened: Callable[..., Opened],
) -> None:
    """The other branch keeps its own file; the act's version stands in the history that `log` shows."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    opened.save("note.md", "first\n")
    until(lambda: "note.md" in _names(opened))
    until(partial(_is_quiet, opened))
    opened.close()
    opened.open(scan=False)
    write.edit_page(opened.memory, opened.person, "note", [Edit("append", value="by an act\n")])
    git = ["git", "-C", str(opened.root)]
    subprocess.run([*git, "checkout", "-q", "-f", "-b", "other"], check=True)
    assert (opened.root / "note.md").read_text() == "first\n"
    opened.running.committer.flush()  # type: ignore[union-attr]
    assert tracked(opened)["note.md"] == "first\n"
    everywhere = subprocess.run([*git, "log", "--all", "-p"], capture_output=True, text=True, check=True)
    assert "+by an act" in everywhere.stdout


def _is_found(opened: Opened, words: str) -> bool:
    return read.search(opened.memory, opened.person, words).total == 1


def test_files_that_git_refused_are_told_after_a_restart_and_committed_once_it_takes_them(
    make_opened: Callable[..., Opened],
) -> None:
    """A filter that fails: the version waits, over a restart too, and goes in when the filter is mended."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    git = ["git", "-C", str(opened.root), "config"]
    subprocess.run([*git, "filter.broken.clean", "exit 3"], check=True)
    subprocess.run([*git, "filter.broken.required", "true"], check=True)
    opened.save(".gitattributes", "secret.md filter=broken\n")
    opened.save("secret.md", "hidden\n")
    until(partial(_is_told, opened, "refused"))
    opened.restart()
    until(partial(_is_told, opened, "refused"))
    assert "secret.md" not in _names(opened)
    opened.close()
    subprocess.run([*git, "filter.broken.clean", "cat"], check=True)
    opened.open()
    until(lambda: "secret.md" in _names(opened))
    until(lambda: not _is_told(opened, "refused"))


def _is_told(opened: Opened, topic: str) -> bool:
    return topic in {notice["topic"] for notice in status(opened.memory)["notices"]}

"""The editors of people, as real programs: what they save is known, and nothing else is ever a page.

Each edits `plan.md` several times, with its own idea of swap, lock and backup files; a follower of the watcher must
know the last version, and never have seen the page away.
"""

import os
import pty
import select
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pcpd.vault.ignore import Ignore
from pcpd.vault.watch import Watch
from tests.vault.follower import PATIENCE_S, Follower, stopped

ROUNDS = 3
Edit = Callable[[Path, str], None]


@pytest.fixture(params=[False, True], ids=["events", "polling"])
def follower(root: Path, request: pytest.FixtureRequest) -> Iterator[Follower]:
    """Follows a vault with one page and a neighbour."""
    (root / "plan.md").write_text("# Plan\n\nfirst line\n", encoding="utf-8")
    (root / "other.md").write_text("other\n", encoding="utf-8")
    follower = Follower(root)
    watch = Watch(root, Ignore.load(root), follower, poll=request.param, poll_s=0.02, grace_s=30.0)
    watch.start()
    yield follower
    stopped(watch)


def holds(follower: Follower, edit: Edit) -> None:
    """Edits the page some rounds; the last two follow each other closely."""
    page = follower.root / "plan.md"
    for number in range(ROUNDS):
        edit(page, f"round {number}")
        assert f"round {number}" in page.read_text(encoding="utf-8")
        if number == 0:
            follower.until(lambda: b"round 0" in follower.known["plan.md"])
    follower.until(lambda: follower.known["plan.md"] == page.read_bytes())
    assert follower.lost == set()
    assert {name for name in follower.known if name.endswith((".md", "~", "#")) or "plan" in name} == {
        "plan.md",
        "other.md",
    }
    assert {name for name in follower.names if "plan" in name} == {"plan.md"}


def run(*command: str | Path) -> None:
    """Runs an editor that needs no terminal."""
    subprocess.run(
        [str(part) for part in command], check=True, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=PATIENCE_S,
    )  # fmt: skip


def type_into(command: list[str | Path], keys: list[bytes]) -> None:
    """Runs an editor in a terminal, and types each piece once the screen is at rest."""
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [str(part) for part in command], stdin=end, stdout=end, stderr=end, start_new_session=True
    ) as program:
        os.close(end)
        try:
            for piece in keys:
                _read_until_rest(terminal)
                os.write(terminal, piece)
            _read_to_end(terminal)
        finally:
            os.close(terminal)
    assert program.returncode == 0


def _read_until_rest(terminal: int) -> None:
    """Reads what the program draws, until it has drawn something and waits for a key."""
    seen = False
    while select.select([terminal], [], [], 0.05 if seen else PATIENCE_S)[0]:
        os.read(terminal, 65536)
        seen = True


def _read_to_end(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        return  # how a terminal on Linux says that nobody is there any more


@pytest.mark.needs("vim")
@pytest.mark.parametrize("how", ["backupcopy=yes", "backupcopy=no", "backupcopy=no backup", "nowritebackup"])
def test_vim(follower: Follower, how: str) -> None:
    """In place, by renaming the old file away, with a backup that stays, with swap files throughout."""

    def edit(page: Path, text: str) -> None:
        run("vim", "-u", "NONE", "-i", "NONE", "-es", "-c", f"set swapfile {how}", "-c", f"normal Go{text}", "-c", "w",
            "-c", f"normal Go{text} again", "-c", "wq", page)  # fmt: skip

    holds(follower, edit)


@pytest.mark.needs("nano")
@pytest.mark.parametrize("backup", [False, True])
def test_nano(follower: Follower, backup: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place, with its lock files, and with a backup if asked."""
    monkeypatch.setenv("TERM", "xterm")

    def edit(page: Path, text: str) -> None:
        options = ["--backup"] if backup else []
        type_into(
            ["nano", "--ignorercfiles", "--locking", *options, page],
            [f"{text} ".encode(), b"\x0f", b"\r", b"\x18"],  # Ctrl-O, Enter, Ctrl-X
        )

    holds(follower, edit)


@pytest.mark.needs("emacs")
@pytest.mark.parametrize("by_copying", ["nil", "t"])
def test_emacs(follower: Follower, by_copying: str) -> None:
    """By renaming the old file to the backup or by copying it, with lock links and an auto-save file."""

    def edit(page: Path, text: str) -> None:
        program = f"""(progn
            (setq backup-by-copying {by_copying} create-lockfiles t)
            (find-file "{page}") (goto-char (point-max)) (insert "{text}\\n") (do-auto-save) (save-buffer)
            (insert "{text} again\\n") (set-buffer-modified-p t) (save-buffer))"""
        run("emacs", "-Q", "--batch", "--eval", program)

    holds(follower, edit)


@pytest.mark.needs("sed")
@pytest.mark.parametrize("ending", ["", "~"])
def test_sed_in_place(follower: Follower, ending: str) -> None:
    """A new file, renamed over the old one, with a backup if asked."""

    def edit(page: Path, text: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".sed") as script:
            script.write(f"s/.* line/{text} line/")
            script.flush()
            run("sed", f"-i{ending}", "-f", script.name, page)

    holds(follower, edit)


def test_obsidian(follower: Follower) -> None:
    """Truncates the file and writes it, now and then twice within a moment."""

    def edit(page: Path, text: str) -> None:
        for again in range(2):
            page.write_text(f"# Plan\n\n{text} {again}\n", encoding="utf-8")

    holds(follower, edit)


def test_visual_studio_code(follower: Follower) -> None:
    """Opens for writing, truncates, writes and flushes to the disk; a hot-exit copy lies elsewhere."""

    def edit(page: Path, text: str) -> None:
        handle = os.open(page, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"# Plan\n\n{text}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    holds(follower, edit)


def test_ten_saves_in_a_row_by_different_editors(follower: Follower) -> None:
    """A person with two windows: the last one counts."""
    page = follower.root / "plan.md"
    for number in range(10):
        text = f"save {number}\n"
        if number % 3 == 0:
            page.write_text(text, encoding="utf-8")
        elif number % 3 == 1:
            (follower.root / ".plan.md.tmp").write_text(text, encoding="utf-8")
            (follower.root / ".plan.md.tmp").replace(page)
        else:
            page.replace(follower.root / "plan.md~")
            page.write_text(text, encoding="utf-8")
    follower.until(lambda: follower.known["plan.md"] == b"save 9\n")
    assert follower.lost == set()

"""Promise 4: events are hints, the scan is the proof. After anything, the index equals a fresh rebuild."""

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pcpd.index import pages
from pcpd.memory import doctor, upkeep
from pcpd.vault.scan import scan
from tests.vaults import Opened
from tests.waiting import until

if TYPE_CHECKING:
    from tests.conftest import World

NAMES = ("Boiler", "boiler", "Wärmepumpe", "知识", "a b", "x.y", "😀", "-dash", "note")
FOLDERS = ("", "house/", "house/cellar/", "Reise/2026/")
HISTORIES, STEPS = 6, 40


class History:
    """One random history of a vault: what a person, their editor and their git do, in any order."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.draw = random.Random(seed)  # noqa: S311 - histories that can be repeated
        self.done: list[str] = []

    def step(self) -> None:
        """Does one thing, whatever it is possible now."""
        acts = [self.save] * 3 + [self.overwrite, self.rename, self.case_rename, self.delete]
        acts += [self.move_folder, self.drop_folder, self.burst, self.ignore, self.attach, self.commit]
        act = self.draw.choice([*acts, self.checkout])
        self.done.append(act.__name__)
        act()

    def pages(self) -> list[Path]:
        """The pages that are there now, sorted."""
        return sorted(path for path in self.root.rglob("*.md") if ".git" not in path.parts)

    def some(self) -> Path | None:
        """One page, or None where there is none."""
        present = self.pages()
        return self.draw.choice(present) if present else None

    def text(self) -> str:
        """A page's text, with and without front matter, sometimes broken, with links."""
        head = self.draw.choice(
            ("", "---\ntitle: T\ntags: [a, b]\n---\n", "---\ntitle: [\n---\n", "\ufeff---\nx: 1\n---\r\n")
        )
        links = " ".join(f"[[{self.draw.choice(NAMES)}]]" for _ in range(self.draw.randrange(3)))
        return f"{head}# H{self.draw.randrange(9)}\nword{self.draw.randrange(50)} {links}\n"

    def path(self) -> Path:
        """A path for a page, new or taken."""
        path = self.root / (self.draw.choice(FOLDERS) + self.draw.choice(NAMES) + ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def save(self) -> None:
        """Saves by rename."""
        path = self.path()
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(self.text(), encoding="utf-8")
        temporary.replace(path)

    def overwrite(self) -> None:
        """Saves in place."""
        if path := self.some():
            path.write_text(self.text(), encoding="utf-8")

    def rename(self) -> None:
        """Renames a page, maybe over another."""
        if path := self.some():
            path.replace(self.path())

    def case_rename(self) -> None:
        """Changes a name's case only."""
        if path := self.some():
            path.replace(path.with_name(path.name.swapcase().replace(".MD", ".md")))

    def delete(self) -> None:
        """Deletes a page."""
        if path := self.some():
            path.unlink()

    def move_folder(self) -> None:
        """Moves a folder with all that is in it."""
        source, target = self.root / "house", self.root / f"moved{self.draw.randrange(3)}"
        if source.is_dir() and not target.exists():
            source.rename(target)

    def drop_folder(self) -> None:
        """Removes a folder with all that is in it."""
        shutil.rmtree(self.root / f"moved{self.draw.randrange(3)}", ignore_errors=True)

    def burst(self) -> None:
        """Writes many pages at once."""
        for n in range(self.draw.randrange(60)):
            (self.root / f"burst{n}.md").write_text(self.text(), encoding="utf-8")

    def ignore(self) -> None:
        """Changes what is ignored."""
        self.root.joinpath(".pcpignore").write_text(
            self.draw.choice(("", "house/\n", "burst1*\n")), encoding="utf-8"
        )

    def attach(self) -> None:
        """Adds a picture."""
        self.root.joinpath(f"p{self.draw.randrange(3)}.png").write_bytes(self.draw.randbytes(30))

    def commit(self) -> None:
        """Commits with git by hand."""
        self.git("add", "-A")
        self.git("commit", "-qm", "by hand")

    def checkout(self) -> None:
        """Goes to another branch, or back."""
        self.git(
            "checkout", "-q", "-f", "-B", f"b{self.draw.randrange(2)}", self.draw.choice(("HEAD", "HEAD~1"))
        )

    def git(self, *arguments: str) -> None:
        """Runs git as the person would; that it may fail is part of the history."""
        subprocess.run(
            ["git", "-C", str(self.root), *arguments], capture_output=True, check=False, timeout=60
        )


def is_in_step(opened: Opened) -> bool:
    """Tells whether index, rebuild and disk agree, and nothing is held back."""
    if opened.memory.losses.held:
        upkeep.accept(opened.memory)
    if doctor.compare(opened.memory):
        return False
    listing = scan(opened.root, opened.memory.ignore)
    with opened.memory.index.reader() as conn:
        return pages.known(conn).keys() == listing.files.keys()


@pytest.mark.parametrize("number", range(HISTORIES))
def test_after_a_random_history_seen_by_events_the_index_equals_a_rebuild(
    opened: Opened, number: int, soak: int
) -> None:
    """Edits, renames, bursts, checkouts and rules in any order; no scan but those that the events ask for."""
    history = History(opened.root, seed=number)
    for _ in range(STEPS * soak):
        history.step()
    until(lambda: is_in_step(opened), f"in step after {history.done}")


@pytest.mark.parametrize("number", range(2))
def test_after_kills_and_restarts_the_index_equals_a_rebuild(
    world: "World", make_opened: Callable[..., Opened], number: int, soak: int
) -> None:
    """An owner that is killed at any moment, while things change with and without it."""
    opened = make_opened("killed")
    world.pcpd("init", opened.root)
    history = History(opened.root, seed=1000 + number)
    for _ in range(3 * soak):
        owner = world.start("--vault", opened.root, "run")
        assert owner.stderr is not None
        assert owner.stderr.readline().startswith("ready ")
        for _ in range(STEPS // 3):
            history.step()
        os.kill(owner.pid, signal.SIGKILL)
        owner.communicate()
        for _ in range(history.draw.randrange(4)):
            history.step()
    opened.open()
    until(lambda: is_in_step(opened), f"in step after {history.done}")

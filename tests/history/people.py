"""A person with git of their own, and pcpd's history with short words for tests."""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pcpd.history.repository import Repository
from pcpd.history.versions import Change, Committed

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = 3600.0


@dataclass
class Clock:
    """Wall-clock time, an hour ahead: whatever was just done in git is long over. Tests set `ahead` back."""

    ahead: float = HOUR

    def __call__(self) -> float:
        """Gives seconds."""
        return time.time() + self.ahead


@dataclass
class Person:
    """Somebody at a shell in a folder, with a home of their own."""

    folder: Path
    env: Mapping[str, str]

    def git(self, *arguments: str, check: bool = True, stdin: str = "") -> str:
        """Runs git and gives its output."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder, env=dict(self.env), input=stdin, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"git {arguments}: {done.stderr}")
        return done.stdout

    def write(self, file: str, data: bytes | str) -> Path:
        """Saves a file."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def commit(self, file: str, data: bytes | str, message: str = "by hand") -> str:
        """Saves and commits a file; gives the commit."""
        self.write(file, data)
        self.git("add", "--", file)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def status(self) -> str:
        """Gives `git status --short`, empty when clean."""
        return self.git("status", "--short")

    def at(self, folder: Path) -> "Person":
        """The same person in another folder."""
        return Person(folder, self.env)


@dataclass
class History:
    """pcpd's history of a vault, with short words for tests."""

    root: Path
    repository: Repository
    clock: Clock = field(default_factory=Clock)

    def save(
        self, *files: tuple[str, bytes | None], message: str = "pages changed", **options: object
    ) -> Committed:
        """Puts files on disk (None: removes them) and commits them as they are."""
        return self.commit(*(self.put(file, data) for file, data in files), message=message, **options)

    def put(self, file: str, data: bytes | None) -> Change:
        """Puts a file on disk, and gives the change."""
        path = self.root / file
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return Change(file, data=data)

    def commit(self, *changes: Change, message: str = "pages changed", **options: object) -> Committed:
        """Commits."""
        return self.repository.commit(changes, message=message, now=NOW, **options)  # type: ignore[arg-type]


Opener = Callable[..., History]

"""A person with git of their own, a vault, and pcpd's history over it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pcpd.history.repository import Repository
from tests.history.people import Clock, History, Opener, Person


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    """An environment with a home, a name, and no settings of the machine."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Sam\n\temail = sam@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n'
    )
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
    }


@pytest.fixture
def person(tmp_path: Path, env: Mapping[str, str]) -> Person:
    """A person in the vault's folder."""
    folder = tmp_path / "vault"
    folder.mkdir()
    return Person(folder, env)


@pytest.fixture
def open_history(env: Mapping[str, str]) -> Iterator[Opener]:
    """Opens the history of a folder; closed at the end."""
    opened: list[Repository] = []

    def opener(
        root: Path, *, create: bool = False, environment: Mapping[str, str] | None = None, clock: Clock | None = None,
        device: str = "dev1",
    ) -> History:  # fmt: skip
        clock = clock or Clock()
        repository = Repository.open(
            root,
            context_id="ctx_1_a",
            device=device,
            create=create,
            environment=environment or env,
            clock=clock,
        )
        opened.append(repository)
        return History(root, repository, clock)

    yield opener
    for repository in opened:
        repository.close()


@pytest.fixture
def own(person: Person, open_history: Opener) -> History:
    """The history of a vault whose repository pcpd made."""
    return open_history(person.folder, create=True)


@pytest.fixture
def adopted(person: Person, open_history: Opener) -> History:
    """The history of a vault that was the person's repository, with one page in it."""
    person.git("init", "-q")
    person.commit("page.md", "one\n")
    return open_history(person.folder)

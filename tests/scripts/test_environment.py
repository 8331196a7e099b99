"""The checkout's own Python environment is made once, and made again when what it holds has changed."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import environment  # noqa: E402


class Checkout:
    """A checkout whose `venv` and `pip` only note what they were asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lock = folder / "requirements.lock"
        self.calls: list[str] = []
        self.folder = folder
        self.fails = ""
        (folder / "pyproject.toml").write_text("[project]\n")
        self.write_lock("click==8.1", "pytest==8.3")
        monkeypatch.setattr(environment, "ROOT", folder)
        monkeypatch.setattr(environment, "LOCK", self.lock)
        monkeypatch.setattr(environment, "_make", self._make)
        monkeypatch.setattr(environment, "_pip", self._pip)

    def write_lock(self, runtime: str, development: str) -> None:
        """Puts one package into each section."""
        marks = environment.RUNTIME_MARK, environment.DEVELOPMENT_MARK
        self.lock.write_text(f"{marks[0]}\n{runtime}\n{marks[1]}\n{development}\n")

    def ready(self, *, development: bool = False) -> list[str]:
        """Sets up and gives what was called for it."""
        self.calls.clear()
        environment.ready(development=development)
        return list(self.calls)

    def _make(self, folder: Path) -> None:
        self.calls.append("venv")
        for old in folder.glob("installed-*"):
            old.unlink()
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()

    def _pip(self, _folder: Path, *what: str) -> None:
        self.calls.append("own" if "--editable" in what else Path(what[-1]).read_text().splitlines()[-1])
        if self.calls[-1] == self.fails:
            raise environment.SetUpError("no network")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout that was never set up."""
    return Checkout(tmp_path, monkeypatch)


def test_first_start_installs_what_pcpd_runs_on_and_nothing_else(checkout: Checkout) -> None:
    """Development packages are not for those who only run it."""
    assert checkout.ready() == ["venv", "click==8.1", "own"]


def test_second_start_calls_nothing(checkout: Checkout) -> None:
    """So it works offline, and takes no time."""
    checkout.ready()
    assert checkout.ready() == []


def test_tests_add_their_packages_to_what_is_there(checkout: Checkout) -> None:
    """`scripts/test` after `scripts/run` installs the rest alone, and takes nothing away from it."""
    checkout.ready()
    assert checkout.ready(development=True) == ["pytest==8.3"]
    assert checkout.ready(development=True) == []
    assert checkout.ready() == []


def test_changed_lock_is_installed_anew(checkout: Checkout) -> None:
    """After a pull, the next start has what the lock says now."""
    checkout.ready(development=True)
    checkout.write_lock("click==8.2", "pytest==8.3")
    assert checkout.ready(development=True) == ["venv", "click==8.2", "own", "pytest==8.3"]


def test_changed_metadata_of_our_own_is_installed_anew(checkout: Checkout) -> None:
    """A new command in pyproject.toml would be missing else."""
    checkout.ready()
    (checkout.folder / "pyproject.toml").write_text("[project]\n# changed\n")
    assert checkout.ready() == ["venv", "click==8.1", "own"]


def test_half_done_installation_is_done_again(checkout: Checkout) -> None:
    """Nothing is remembered before all of it is there."""
    checkout.fails = "own"
    with pytest.raises(environment.SetUpError):
        checkout.ready()
    checkout.fails = ""
    assert checkout.ready() == ["venv", "click==8.1", "own"]


def test_environment_whose_python_is_gone_is_made_anew(checkout: Checkout) -> None:
    """An upgraded system takes the old Python away and leaves a dead link."""
    checkout.ready()
    (checkout.folder / ".venv" / "bin" / "python").unlink()
    assert checkout.ready() == ["venv", "click==8.1", "own"]

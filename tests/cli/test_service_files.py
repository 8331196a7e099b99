"""What a system is given to start an owner at login."""

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from pcpd.cli import service_files

ROOT = Path(__file__).resolve().parents[2]
ODD = ["plain", "with space", "100%f of $HOME", 'a "quoted" name', "back\\slash", "Ordner mit ü", "a;b#c"]


def verify(unit: Path, home: Path) -> str:
    """What systemd-analyze has to say about a user unit; nothing when it is well."""
    env = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", unit], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def program_in(folder: Path) -> Path:
    """Something that can be started, standing for pcpd."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "pcpd"
    program.symlink_to(shutil.which("true") or "/bin/true")
    return program


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("name", ODD)
def test_unit_of_any_path_is_one_that_systemd_takes(tmp_path: Path, name: str) -> None:
    """Spaces, quotes, specifiers and variables in a folder's name are just a name."""
    unit = tmp_path / "pcpd-vault.service"
    program = program_in(tmp_path / name.replace('"', "").replace("\\", "") / "bin")
    folders = {"XDG_STATE_HOME": str(tmp_path / name / "state")}
    unit.write_text(service_files.systemd_unit(program, tmp_path / name, folders), encoding="utf-8")
    assert verify(unit, tmp_path) == ""


@pytest.mark.needs("systemd-analyze")
def test_unit_in_the_checkout_works_by_itself(tmp_path: Path) -> None:
    """It names the program where pipx puts it, and takes the vault from its instance name."""
    program_in(tmp_path / ".local" / "bin")
    unit = tmp_path / "pcpd@tmp-vault.service"
    shutil.copy(ROOT / "systemd" / service_files.UNIT, unit)
    assert verify(unit, tmp_path) == ""


@pytest.mark.needs("systemd-analyze")
def test_unit_with_a_missing_program_is_reported(tmp_path: Path) -> None:
    """The check above can fail."""
    unit = tmp_path / "pcpd-vault.service"
    unit.write_text(service_files.systemd_unit(tmp_path / "gone", tmp_path), encoding="utf-8")
    assert "gone" in verify(unit, tmp_path)


def test_unit_doubles_what_systemd_would_expand() -> None:
    """`%` is a specifier everywhere, `$` a variable in arguments alone."""
    unit = service_files.systemd_unit(Path("/o%t/$p/pcpd"), Path("/v%f/$HOME"))
    assert 'ExecStart="/o%%t/$p/pcpd" --vault "/v%%f/$$HOME" run\n' in unit
    assert 'Description=pcpd serves the vault "/v%%f/$HOME"\n' in unit


@pytest.mark.parametrize("name", ODD)
def test_agent_carries_any_path_as_it_is(name: str) -> None:
    """A property list knows neither variables nor quoting."""
    vault = Path("/Users/you") / name
    agent = plistlib.loads(service_files.launchd_agent("org.pcpd.x", Path("/b/pcpd"), vault, Path("/l/log")))
    assert agent["ProgramArguments"] == ["/b/pcpd", "--vault", str(vault), "run"]
    assert agent["Label"] == "org.pcpd.x"
    assert agent["RunAtLoad"] is True


def test_agent_in_the_checkout_is_a_property_list() -> None:
    """It starts with the person's login and again after a failure."""
    agent = plistlib.loads((ROOT / "launchd" / service_files.AGENT).read_bytes())
    assert agent["ProgramArguments"][1:] == ["--vault", "/Users/you/Vault", "run"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_paths_that_a_unit_cannot_hold_are_refused() -> None:
    """A line break would begin a setting of its own."""
    for vault in (Path("relative"), Path("/a\nExecStartPre=/bin/x")):
        with pytest.raises(ValueError, match="not an absolute path"):
            service_files.systemd_unit(Path("/bin/pcpd"), vault)
    with pytest.raises(ValueError, match="quotes or backslashes"):
        service_files.systemd_unit(Path('/a"b/pcpd'), Path("/v"))

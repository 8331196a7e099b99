"""The command service, on a machine whose systemd is only played."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pcpd.cli import service
from pcpd.errors import Broken
from pcpd.settings import Settings, load
from tests.cli.conftest import Pcpd
from tests.client.conftest import Scene


@pytest.fixture
def system(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Plays `systemctl` by a shell script; gives the file where its calls are noted."""
    calls = tmp_path / "calls"
    calls.write_text("")
    program = tmp_path / "bin" / "pcpd"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def play(script: str) -> Path:
        systemctl = program.parent / "systemctl"
        systemctl.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\n{script}\n')
        systemctl.chmod(0o700)
        return calls

    return play


def unit_file(scene: Scene) -> Path:
    """The one unit that is installed."""
    (found,) = (Path(scene.env["XDG_CONFIG_HOME"]) / "systemd" / "user").glob("pcpd-*.service")
    return found


def test_install_writes_the_unit_and_starts_it(
    scene: Scene, pcpd: Pcpd, system: Callable[[str], Path]
) -> None:
    """With absolute paths; done when the owner answers."""
    calls = system("exit 0")
    scene.owner()
    done = pcpd("service", "install")
    assert done.status == 0
    assert "loginctl enable-linger" in done.err  # without it, it ends at logout
    unit = unit_file(scene)
    text = unit.read_text()
    assert f'--vault "{scene.root}" run' in text
    for name in (
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
    ):  # else owner and commands would look in different places
        assert f'"{name}={scene.env[name]}"' in text
    assert calls.read_text().splitlines() == ["--user daemon-reload", f"--user enable --now {unit.name}"]
    told = pcpd("service", "status", "--json").json()
    assert (told["installed"], told["owner"]["ready"]) == (True, True)


def test_uninstall_leaves_nothing_of_the_service(
    scene: Scene, pcpd: Pcpd, system: Callable[[str], Path]
) -> None:
    """And the vault as it is; a second time is no error."""
    calls = system("exit 0")
    before = sorted(scene.root.rglob("*"))
    assert pcpd("service", "install", "--no-start").status == 0
    name = unit_file(scene).name
    assert pcpd("service", "uninstall", "--json").json()["removed"] is True
    assert f"--user disable --now {name}" in calls.read_text()
    assert not list(Path(scene.env["XDG_CONFIG_HOME"]).rglob("*.service"))
    assert sorted(scene.root.rglob("*")) == before
    assert pcpd("service", "uninstall").status == 0


def test_system_that_does_not_start_it_is_quoted(
    scene: Scene, pcpd: Pcpd, system: Callable[[str], Path]
) -> None:
    """The unit is there; what failed is told, with status 1."""
    system('echo "Failed to connect to bus" >&2; exit 1')
    done = pcpd("service", "install")
    assert done.status == 1
    assert "Failed to connect to bus" in done.err
    assert unit_file(scene).exists()


def test_machine_without_systemd_is_told_so(
    pcpd: Pcpd, system: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sentence, not as an exception."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(service, "try_as_service", lambda *_: None)
    done = pcpd("service", "install")
    assert done.status == 1
    assert "systemctl" in done.err


def test_service_owner_that_does_not_come_is_told(
    pcpd: Pcpd, system: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd may be content while the owner fails."""
    system("exit 0")
    monkeypatch.setattr(service, "START_S", 0.05)
    done = pcpd("service", "install")
    assert done.status == 1
    assert "No owner answers" in done.err


def test_what_the_service_could_not_do_is_named_before_anything_is_written(
    unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it at once: a vault that cannot be written to, state that cannot be kept, a git that is not found."""
    vault = unprivileged / "vault"
    (vault / ".pcp").mkdir(parents=True)
    (vault / ".pcp" / "context.yaml").write_text("id: x\n")
    (vault / ".pcp").chmod(0o500)
    settings = Settings(state_base=vault / ".pcp" / "state", config_base=vault, socket_bases=())
    monkeypatch.setattr(service, "SERVICE_PATH", "/nowhere")
    with pytest.raises(Broken) as caught:
        service.try_as_service(vault, settings, {})
    for said in ("write to the vault", "write its state", "find git"):
        assert said in caught.value.message


def test_vaults_of_one_name_have_services_of_their_own(
    scene: Scene, system: Callable[[str], Path], tmp_path: Path
) -> None:
    """The unit's name has letters that systemd takes, whatever the vault is called."""
    settings = load(scene.env)
    names = {service.unit_of(tmp_path / part / "Mein %Vault ü", settings, scene.env).name for part in "ab"}
    assert len(names) == 2
    assert all(name.startswith("pcpd-mein-vault") and name.isascii() and " " not in name for name in names)


def test_launchd_gets_an_agent(
    scene: Scene,
    pcpd: Pcpd,
    system: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """On macOS, with the same words."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(service, "try_as_service", lambda *_: None)
    unit = service.unit_of(scene.root, load(scene.env), scene.env)
    assert unit.file.parent == tmp_path / "Library" / "LaunchAgents"
    assert str(scene.root).encode() in unit.text
    assert unit.log
    assert unit.start[-1][:2] == ("launchctl", "bootstrap")
    assert pcpd("service", "install", "--no-start").status == 0
    unit.log.write_text("what the owner said\n")
    assert pcpd("service", "uninstall").status == 0
    assert not unit.file.exists()
    assert not unit.log.exists()


def test_pcpd_that_is_no_command_cannot_be_a_service(
    pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`python -m pcpd` in a checkout has no path that stays."""
    monkeypatch.setattr(sys, "argv", ["/x/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert pcpd("service", "install").status == 4

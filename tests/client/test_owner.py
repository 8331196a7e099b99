"""How clients find the owner of a vault, and start one."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pcpd import __version__
from pcpd.client import launch, owner, wire
from pcpd.client.owner import Start, ensure_owner, find, hand_over, is_older
from pcpd.errors import Broken, Conflict, Denied, Invalid, PcpError, Unavailable
from pcpd.gate import peer
from pcpd.settings import SOCKET, Settings, load
from tests.client.conftest import Scene
from tests.client.fake_owner import FakeOwner
from tests.waiting import until


class Time:
    """A clock that only sleeping moves, and what is to happen when it does."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.then: list[Callable[[], object]] = []

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Moves the clock, and lets the next thing happen."""
        self.now += seconds
        if self.then:
            self.then.pop(0)()


class Child:
    """A started owner, of which nothing but its end is seen."""

    def __init__(self, status: int | None) -> None:
        self.status = status

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self.status


@pytest.fixture
def place(world: Any, make_vault: Callable[[str], Path]) -> tuple[Path, Settings]:
    """A vault that nobody is starting an owner for."""
    return make_vault("vault"), load(world.env)


def ensure(root: Path, settings: Settings, time: Time, **how: bool) -> owner.Owner:
    """What a client does, with the time in our hands."""
    return ensure_owner(root, settings, {}, clock=time, sleep=time.sleep, **how)


def starts(monkeypatch: pytest.MonkeyPatch, statuses: list[int | None], said: str = "") -> list[Path]:
    """Makes starting an owner yield processes that end so."""
    begun: list[Path] = []

    def start(root: Path, log: Path, environ: Mapping[str, str]) -> Child:
        begun.append(root)
        log.write_text(said)
        return Child(statuses.pop(0) if len(statuses) > 1 else statuses[0])

    monkeypatch.setattr(launch, "start", start)
    return begun


def test_nobody_is_found_where_there_is_no_socket(scene: Scene) -> None:
    """A vault that was never served has no socket's folder even."""
    assert find(scene.root, scene.settings) is None


def test_socket_of_a_killed_owner_is_nobody(scene: Scene) -> None:
    """The kernel refuses the connection; the file stays until the next owner comes."""
    scene.owner().kill()
    assert (scene.settings.socket_folder(scene.root) / SOCKET).exists()
    assert find(scene.root, scene.settings) is None


def test_owner_is_found_by_any_path(scene: Scene, world: Any) -> None:
    """A link to the vault leads to the same owner; a copy of the vault does not."""
    scene.owner()
    link = world.home / "link"
    link.symlink_to(scene.root)
    copy = world.home / "copy"
    copy.mkdir()
    assert find(link, scene.settings)
    assert find(copy, scene.settings) is None


def test_owner_is_found_by_a_client_without_runtime_folder(scene: Scene) -> None:
    """An owner that had none serves in the state folder, where all clients look too."""
    without = load({**scene.env, "XDG_RUNTIME_DIR": ""})
    played = FakeOwner(without.socket_folder(scene.root))
    assert find(scene.root, scene.settings)
    played.kill()


def test_deep_homes_have_sockets_too(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is too long for a socket gives way to a short one."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(deep))
    settings = load({"XDG_RUNTIME_DIR": str(deep)})
    folder = settings.socket_folder(scene.root)
    made = FakeOwner(folder)
    assert find(scene.root, settings)
    made.kill()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def test_foreign_folder_is_passed_over(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stranger puts where our sockets could be is not talked to."""
    scene.owner()
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert find(scene.root, scene.settings) is None


def test_foreign_process_is_not_talked_to(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells who listens."""
    scene.owner()
    monkeypatch.setattr(peer, "peer_uid", lambda link: 4_000_000)
    with pytest.raises(Denied) as caught:
        find(scene.root, scene.settings)
    assert caught.value.code == "owner.foreign"


def test_kernel_tells_who_is_at_the_other_end() -> None:
    """Both ends of this pair are ours."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer.peer_uid(ours) == os.getuid()


def test_private_folder_is_never_a_strangers(
    world: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A link, and a folder of somebody else, are refused; one that others may enter is closed."""
    settings = load(world.env)
    root = tmp_path / "vault"
    root.mkdir()
    folder = settings.socket_folder(root)
    folder.chmod(0o777)
    assert settings.socket_folder(root).stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(Broken) as caught:
        settings.socket_folder(root)
    assert caught.value.code == "settings.not-private"
    folder.unlink()
    settings.socket_folder(root)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    with pytest.raises(Broken):
        settings.socket_folder(root)


def test_owner_that_does_not_answer_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process still has its socket."""
    monkeypatch.setattr(owner, "ANSWER_S", 0.05)
    path = scene.settings.socket_folder(scene.root) / SOCKET
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(path))
        stopped.listen()
        with pytest.raises(Unavailable) as caught:
            find(scene.root, scene.settings)
    assert caught.value.code == "owner.silent"
    assert str(path) in caught.value.message


def test_client_waits_until_the_vault_is_read(scene: Scene) -> None:
    """Requests before that would see half a vault; `status` asks anyway."""
    reading = scene.owner(is_ready=False)
    time = Time()
    assert not ensure(scene.root, scene.settings, time, wait_ready=False).is_ready
    time.then = [lambda: None, lambda: setattr(reading, "is_ready", True)]
    assert ensure(scene.root, scene.settings, time).is_ready


def test_owner_is_started_once_however_many_clients_wait(
    place: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for its socket."""
    begun = starts(monkeypatch, [None])
    time = Time()
    clients = [Start(*place, {}, time) for _ in range(5)]
    for _ in range(3):
        assert [client.step() for client in clients] == [None] * 5
    assert len(begun) == 1
    playing = FakeOwner(place[1].socket_folder(place[0]))
    assert all(client.step() for client in clients)
    playing.kill()


def test_client_whose_owner_lost_the_lock_goes_to_the_other_one(
    place: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two owners that start together: the kernel decides, both clients are served."""
    begun = starts(monkeypatch, [3])
    time, made = Time(), []
    time.then += [lambda: None] * 5
    time.then += [lambda: made.append(FakeOwner(place[1].socket_folder(place[0])))]
    assert ensure(*place, time)
    assert len(begun) == 1
    made[0].kill()


def test_taken_lock_without_a_socket_is_named_with_the_folders_looked_in(
    place: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner runs with another HOME or runtime folder, or somebody removed its socket."""
    starts(monkeypatch, [3])
    with pytest.raises(Unavailable) as caught:
        ensure(*place, Time())
    assert caught.value.code == "owner.unreachable"
    for folder in place[1].socket_folders(place[0]):
        assert str(folder) in caught.value.message


def test_owner_that_never_listens_is_an_error(
    place: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names its log."""
    starts(monkeypatch, [None])
    with pytest.raises(Unavailable) as caught:
        ensure(*place, Time())
    assert caught.value.code == "owner.slow"
    assert "start.log" in caught.value.hint


@pytest.mark.parametrize(
    ("status", "said", "failure"),
    [
        (1, '{"error": {"code": "context.bad", "message": "line 3", "hint": "h"}}\n', (Broken, "context.bad")),
        (6, 'noise\n{"error": {"code": "vault.copies", "message": "m"}}\nready\n', (Conflict, "vault.copies")),
        (1, "Traceback\nMemoryError\n", (Broken, "owner.failed")),
        (-9, "", (Broken, "owner.failed")),
        (1, '{"error": []}\n[]\n7\n', (Broken, "owner.failed")),
    ],
)  # fmt: skip
def test_what_a_started_owner_failed_with_is_what_the_client_fails_with(
    place: tuple[Path, Settings],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    said: str,
    failure: tuple[type[PcpError], str],
) -> None:
    """In its own words, where it left some."""
    starts(monkeypatch, [status], said)
    with pytest.raises(failure[0]) as caught:
        ensure(*place, Time())
    assert caught.value.code == failure[1]


def test_older_owner_hands_over(scene: Scene) -> None:
    """The first exchange carries the version; the next owner is the newer program's."""
    old = scene.owner(version="0.0.1", gives_way=True)
    time, made = Time(), []
    time.then = [lambda: None, old.kill, lambda: made.append(scene.owner())]
    assert ensure(scene.root, scene.settings, time).version == __version__
    (asked,) = [each for each in old.asked if each.route == "handover"]
    assert asked.json() == {"version": __version__}


def test_older_owner_that_stays_is_used(scene: Scene) -> None:
    """One that does not know of handing over is better than none."""
    scene.owner(version="0.0.1", gives_way=False)
    assert ensure(scene.root, scene.settings, Time()).version == "0.0.1"


def test_newer_owner_is_used_as_it_is(scene: Scene) -> None:
    """The routes' version says what both understand."""
    newer = scene.owner(version="99.0")
    assert ensure(scene.root, scene.settings, Time()).version == "99.0"
    assert not hand_over(owner.Owner(newer.folder, 1, "99.0", "v", is_ready=True))


def test_versions_are_compared_as_numbers() -> None:
    """0.10 comes after 0.9; what is no version is left alone."""
    assert is_older("0.9.9", "0.10.0")
    assert not is_older("0.10.0", "0.9.9")
    assert not is_older("1.0", "1.0")
    assert not is_older("", "1.0")
    assert not is_older("dev", "1.0")


def test_started_owner_gets_neither_token_nor_git_variables() -> None:
    """The first is a secret of one agent; the second (inside git hooks) would lead its git astray."""
    kept = launch.environment(
        {
            "PCPD_TOKEN": "t",
            "PCPD_VAULT": "v",
            "GIT_DIR": "/x",
            "GIT_INDEX_FILE": "i",
            "HOME": "/h",
            "PCPD_PORT": "1",
        }
    )
    assert not {name for name in kept if name.startswith("GIT_") or name in {"PCPD_TOKEN", "PCPD_VAULT"}}
    assert (kept["HOME"], kept["PCPD_PORT"]) == ("/h", "1")


@pytest.fixture
def idle_owner(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator["subprocess.Popen[bytes]"]:
    """A started process that stays, instead of an owner."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(script))
    before, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)  # as a client whose stdin is a pipe
    child = launch.start(tmp_path, tmp_path / "start.log", {**world.env})
    os.dup2(before, 0)
    for each in (before, reader, writer):
        os.close(each)
    yield child
    child.kill()
    child.wait()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc, which is not installed here")
def test_started_owner_holds_nothing_of_its_client(
    idle_owner: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """Not its terminal, its pipes, its folder nor its process group."""
    process = Path(f"/proc/{idle_owner.pid}")

    def held() -> set[str]:
        try:
            return {str(each.readlink()) for each in (process / "fd").iterdir()}
        except FileNotFoundError:  # it is still beginning
            return set()

    until(lambda: held() == {"/dev/null", str(tmp_path / "start.log")}, "it holds its log and nothing else")
    assert str((process / "cwd").readlink()) == "/"
    assert os.getsid(idle_owner.pid) == idle_owner.pid != os.getsid(0)


def test_log_of_a_start_is_never_written_through_a_link(world: Any, tmp_path: Path) -> None:
    """Not even in a folder that is ours."""
    (tmp_path / "start.log").symlink_to(tmp_path / "other")
    with pytest.raises(Broken) as caught:
        launch.start(tmp_path, tmp_path / "start.log", world.env)
    assert caught.value.code == "owner.failed"
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\n\r\nnot json",
        b"HTTP/1.1 500 x\r\n\r\n{}",
        b"\xff\xff",
    ],
)
def test_what_is_no_owner_is_nobody(scene: Scene, answer: bytes) -> None:
    """Whatever else listens there, the client does not take it for an owner."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with theirs:
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        if answer:
            assert wire.ask(ours, "GET", "health") == {}
        else:
            with pytest.raises(ConnectionResetError):
                wire.ask(ours, "GET", "health")


def test_settings_name_every_fault_at_once(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File and environment are both read, and the environment counts more."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "pcpd").mkdir()
    file = tmp_path / "pcpd" / "config.toml"
    file.write_text('port = 70000\nporte = 1\nwatch = "never"\npoll_s = true\nlog_level = 3\n')
    with pytest.raises(Exception, match="porte is no setting") as caught:
        load({"PCPD_COMMIT_QUIET_S": "soon"})
    for name in ("port must", "watch must", "poll_s must", "log_level must", "PCPD_COMMIT_QUIET_S"):
        assert name in str(caught.value)
    file.write_text("port = 70\ncommit_quiet_s = 1\n")
    made = load({"PCPD_PORT": "71"})
    assert (made.port, made.commit_quiet_s, made.sources["port"]) == (71, 1.0, "PCPD_PORT")
    file.write_text("port =")
    with pytest.raises(Exception, match="is not TOML"):
        load({})


def test_failure_codes_cover_every_exit_status(tmp_path: Path) -> None:
    """An owner's exit status is the class of the client's error."""
    log = tmp_path / "log"
    log.write_text(json.dumps({"error": {"code": "a.b", "message": "m", "hint": "h"}}))
    kinds = [type(launch.failure(status, log)) for status in range(1, 7)]
    assert len(set(kinds)) == 6
    assert Invalid not in kinds

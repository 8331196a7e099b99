"""A service with a poor environment, a taken port, a log that must not grow, servers whose client is gone."""

import json
import logging
import logging.handlers
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pcpd import journal
from tests.hazards.conftest import git
from tests.service.conftest import GENEROUS_S, Machine, gone
from tests.waiting import until

CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
print(server.pid, flush=True)
sys.stdin.read()
"""


def started(machine: Machine, *arguments: str, **env: str) -> "subprocess.Popen[str]":
    """Starts an owner with just this environment; gives it when it is ready."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "pcpd", "--vault", str(machine.vault), "run", *arguments],
        env={"PYTHONPATH": machine.env["PYTHONPATH"], **env}, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    machine.owners.append(owner)
    assert owner.stderr
    line = owner.stderr.readline()
    assert line.startswith("ready "), line + owner.stderr.read()
    return owner


def test_an_owner_needs_no_path_and_no_locale(machine: Machine) -> None:
    """Names beyond ASCII are read and committed all the same, by a system that gives HOME alone."""
    owner = started(machine, HOME=machine.env["HOME"])
    (machine.vault / "京都.md").write_text("zyxkyoto 京都\n", encoding="utf-8")
    same = {name: value for name, value in machine.env.items() if not name.startswith("XDG_")}
    command = [sys.executable, "-m", "pcpd", "--vault", str(machine.vault)]

    def asked(*arguments: str) -> object:
        done = subprocess.run([*command, *arguments, "--json"], env=same, capture_output=True, check=True)
        return json.loads(done.stdout)

    until(lambda: "京都" in json.dumps(asked("search", "京都"), ensure_ascii=False))
    until(lambda: '"rev"' in json.dumps(asked("log", "京都")))
    owner.terminate()
    assert owner.wait(GENEROUS_S) == 0
    assert "京都.md" in git(machine.vault, "-c", "core.quotePath=false", "ls-files")


def test_an_owner_needs_no_home(machine: Machine) -> None:
    """It works in the folders that it is told."""
    places = {name: value for name, value in machine.env.items() if name.startswith("XDG_")}
    owner = started(machine, **places)
    (machine.vault / "new.md").write_text("zyxnew\n")
    until(lambda: machine.json("search", "zyxnew")["total"] == 1)
    assert machine.owner_pid() == owner.pid


def test_a_taken_port_is_named_and_the_rest_goes_on(machine: Machine) -> None:
    """Another free one is used, and `status` says so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        owner = started(machine, "--port", str(port), **machine.env)
        told = machine.json("status")
        assert told["owner"]["pid"] == owner.pid
        assert f"port {port} is taken" in json.dumps(told["notices"])
        assert not told["owner"]["url"].endswith(f":{port}")
        assert machine.json("search", "boiler")["total"] == 1


def test_a_stdio_server_ends_with_its_client(machine: Machine) -> None:
    """Closed input ends it, also while no owner runs; so does the death of the client."""
    command = [sys.executable, "-m", "pcpd", "--vault", str(machine.vault), "mcp", "--principal", "agent:c"]
    for end in ("closed", "killed"):
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, *command],
            env=dict(machine.env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert client.stdout
        assert client.stdin
        server = int(client.stdout.readline())
        if end == "closed":
            client.stdin.close()
        else:
            client.kill()
        client.wait(GENEROUS_S)
        client.stdout.close()
        with suppress(OSError):
            client.stdin.close()
        until(lambda server=server: gone(server))  # type: ignore[misc]


@pytest.fixture
def journaled(tmp_path: Path) -> Iterator[Callable[[float], list[str]]]:
    """Opens the log in a folder under a clock that is given each time; gives its lines."""
    now = [0.0]
    log = logging.getLogger("pcpd")
    before = (list(log.handlers), log.level, log.propagate)
    journal.open_in(tmp_path / "log", "info", lambda: now[0])

    def lines(at: float) -> list[str]:
        now[0] = at
        return [
            line for file in sorted((tmp_path / "log").iterdir()) for line in file.read_text().splitlines()
        ]

    yield lines
    for handler in log.handlers:
        handler.close()
    log.handlers, log.level, log.propagate = before


def test_repeated_errors_are_counted_and_not_repeated(journaled: Callable[[float], list[str]]) -> None:
    """The same error a thousand times is one line, and after an hour one more that tells the number."""
    log = logging.getLogger("pcpd")
    for _ in range(1_000):
        log.error("%s: %s", "index.full", "the disk is full")
        log.info("ready")
    log.error("another one")
    lines = journaled(journal.AGAIN_S + 1)
    assert sum("the disk is full" in line for line in lines) == 1
    assert sum("another one" in line for line in lines) == 1
    log.error("%s: %s", "index.full", "the disk is full")
    assert "(999 more times since it was last said)" in journaled(0)[-1]


def test_many_different_errors_take_no_memory_without_end(journaled: Callable[[float], list[str]]) -> None:
    """What is remembered of them has a bound."""
    log = logging.getLogger("pcpd")
    for number in range(3 * journal.MOST_KNOWN):
        log.error("error %d", number)
    handler = next(each for each in log.handlers if isinstance(each, logging.handlers.RotatingFileHandler))
    (repeats,) = handler.filters
    assert len(repeats._known) <= journal.MOST_KNOWN  # type: ignore[union-attr]
    assert len(journaled(0)) == 3 * journal.MOST_KNOWN


def test_the_log_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is said, four files of bounded size stay."""
    log = logging.getLogger("pcpd")
    before = (list(log.handlers), log.level, log.propagate)
    monkeypatch.setattr(journal, "FILE_BYTES", 10_000)
    journal.open_in(tmp_path / "log", "info", lambda: 0.0)
    try:
        for number in range(2_000):
            log.info("a line of some length, number %d", number)
    finally:
        for handler in log.handlers:
            handler.close()
        log.handlers, log.level, log.propagate = before
    files = sorted((tmp_path / "log").iterdir())
    assert [file.name for file in files] == ["pcpd.log", "pcpd.log.1", "pcpd.log.2", "pcpd.log.3"]
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_the_owners_log_is_that_one(machine: Machine) -> None:
    """In the state folder, for its owner alone; it says when the owner was ready."""
    machine.run()
    (file,) = Path(machine.env["XDG_STATE_HOME"]).rglob("pcpd.log")
    assert "ready at http://127.0.0.1:" in file.read_text()
    assert file.parent.stat().st_mode & 0o077 == 0

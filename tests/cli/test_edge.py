"""What is common to all commands: the vault, the two outputs, exit status, help, and the ways a call can end."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from pcpd import errors
from pcpd.cli.main import COMMANDS, cli
from tests.cli.conftest import Pcpd
from tests.client.conftest import Scene
from tests.client.fake_owner import Asked, Reply, ok, problem

EMPTY = {"results": [], "pages": [], "total": 0, "cursor": None}
HEAVY = {"rich", "yaml", "ruamel", "sqlite3", "fastapi", "mcp", "pygit2", "asyncio", "subprocess", "difflib"}


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with its words."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner
            yield from leaves(inner, (*path, name))
    if path and (not isinstance(command, click.Group) or command.invoke_without_command):
        yield path, command


def options(command: click.Command) -> list[click.Option]:
    """A command's options."""
    return [each for each in command.params if isinstance(each, click.Option)]


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (503, 3), (404, 4), (403, 5), (409, 6), (422, 1), (500, 1)]
)
def test_exit_status_is_the_class_of_the_error(scene: Scene, pcpd: Pcpd, status: int, code: int) -> None:
    """Words and hint go to stderr, nothing to stdout."""
    scene.owner(http=lambda asked: problem(status, "a.b", "it is so", "do that"))
    done = pcpd("read", "x")
    assert (done.status, done.out) == (code, b"")
    assert done.err == "error: it is so\nhint: do that\n"


def test_error_in_json_is_one_document_on_stderr(scene: Scene, pcpd: Pcpd) -> None:
    """Stdout holds results alone, also when a script reads it."""
    scene.owner(http=lambda asked: problem(409, "page.stale", "it is so", "do that", {"version": "v"}))
    done = pcpd("read", "x", "--json")
    assert (done.status, done.out) == (6, b"")
    said = {"code": "page.stale", "message": "it is so", "hint": "do that", "details": {"version": "v"}}
    assert json.loads(done.err) == {"error": said}


@pytest.mark.parametrize(
    "arguments", [("read",), ("--nonsense",), ("list", "--limit", "0"), ("mcp", "nonsense")]
)
def test_wrong_usage_is_status_2(pcpd: Pcpd, arguments: tuple[str, ...]) -> None:
    """With a hint to the help of the command that was meant, as text and as JSON."""
    assert pcpd(*arguments).status == 2
    assert json.loads(pcpd(*arguments, "--json").err)["error"]["code"] == "cli.usage"


@pytest.mark.parametrize("group", ["token", "service"])
def test_group_without_a_command_says_one_line(pcpd: Pcpd, group: str) -> None:
    """Its whole help is no error message."""
    said = f"error: Missing command.\nhint: `pcpd {group} --help` lists them\n"
    assert pcpd(group).err == said


def test_near_command_is_named(pcpd: Pcpd) -> None:
    """A slip of the finger is not a riddle."""
    assert "Did you mean search" in pcpd("serach", "x").err


def test_fault_of_ours_is_told_as_one(pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, and how to get one."""
    monkeypatch.setattr("pcpd.cli.invocation.Invocation.root", lambda self: 1 // 0)
    done = pcpd("read", "x")
    assert done.status == 1
    assert "ZeroDivisionError" in done.err
    assert "PCPD_DEBUG=1" in done.err
    assert "Traceback" not in done.err


def test_each_class_of_errors_has_a_status() -> None:
    """A new class must not end as a mere failure by oversight."""
    from pcpd.cli.errors import EXIT

    classes = {
        each for each in vars(errors).values() if isinstance(each, type) and each is not errors.PcpError
    }
    assert {each for each in classes if issubclass(each, errors.PcpError)} == set(EXIT)


def test_vault_is_named_before_the_command_or_after_it(
    scene: Scene, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And outranks PCPD_VAULT."""
    scene.owner(http=lambda asked: ok(EMPTY))
    monkeypatch.setenv("PCPD_VAULT", "/nowhere")
    assert pcpd("list").status == 4
    assert pcpd("--vault", str(scene.root), "list").status == 0
    assert pcpd("list", "--vault", str(scene.root)).status == 0
    assert pcpd("--json", "list", "--vault", str(scene.root)).json() == EMPTY


def test_vault_around_the_current_folder_is_found(
    scene: Scene, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any depth; outside there is none, and the hint says how to make one."""
    scene.owner(http=lambda asked: ok(EMPTY))
    monkeypatch.delenv("PCPD_VAULT")
    deep = scene.root / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert pcpd("list").status == 0
    monkeypatch.chdir("/")
    done = pcpd("list")
    assert done.status == 4
    assert "pcpd init" in done.err


def test_home_sign_is_understood_where_no_shell_expands_it(
    scene: Scene, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP clients start commands without a shell."""
    scene.owner(http=lambda asked: ok(EMPTY))
    monkeypatch.setenv("PCPD_VAULT", f"~/{scene.root.name}")
    assert pcpd("list").status == 0


def test_every_command_says_what_it_does() -> None:
    """First line an imperative without a full stop, the rest sentences; every option has its help."""
    found = dict(leaves(cli))
    assert {path[0] for path in found} == set(COMMANDS)
    for path, command in found.items():
        first = (command.help or "").split("\n\n")[0]
        assert first, path
        assert first[0].isupper(), path
        assert not first.endswith("."), path
        assert command.short_help, path
        for option in options(command):
            assert option.help, (path, option.name)
            assert option.help.endswith("."), (path, option.name)


def test_every_command_takes_json_and_vault() -> None:
    """A contract with scripts."""
    for path, command in leaves(cli):
        assert {"--json", "--vault"} <= {name for option in options(command) for name in option.opts}, path


def test_help_of_every_command_can_be_shown(pcpd: Pcpd) -> None:
    """Without a vault, and without an owner."""
    for path, _ in leaves(cli):
        done = pcpd(*path, "--help")
        assert (done.status, done.err) == (0, "")
        assert "--json" in done.text


def test_a_search_loads_only_what_it_needs(scene: Scene) -> None:
    """Start-up is most of what a command costs."""
    scene.owner(http=lambda asked: ok(EMPTY))
    code = (
        "import sys; from pcpd.cli.main import run\nrun(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--vault", os.fspath(scene.root), "search", "x"],
        env=dict(scene.env), capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert not {name.partition(".")[0] for name in done.stderr.split()} & HEAVY


def start(scene: Scene, *arguments: str, **streams: Any) -> "subprocess.Popen[bytes]":
    """Starts pcpd on the scene's vault."""
    command = [sys.executable, "-m", "pcpd", "--vault", os.fspath(scene.root), *arguments]
    return subprocess.Popen(
        command, env={**scene.env, "TERM": "xterm"}, **{"stdin": subprocess.DEVNULL, **streams}
    )


def test_closed_pipe_ends_quietly(scene: Scene) -> None:
    """`pcpd list | head -1` is no error."""
    row = {"path": "p" * 200, "title": "t", "type": "semantic", "updated": "2026"}
    scene.owner(http=lambda asked: ok({**EMPTY, "pages": [row] * 5000, "total": 5000}))
    process = start(scene, "list", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.close()
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")


def test_interrupt_ends_the_wait_with_130(scene: Scene) -> None:
    """However long the owner takes; no traceback."""
    asked, done = threading.Event(), threading.Event()

    def never(request: Asked) -> Reply:
        asked.set()
        done.wait(30)
        return ok({})

    scene.owner(http=never)
    process = start(scene, "rebuild", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert asked.wait(30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    done.set()
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


def terminal(scene: Scene, *arguments: str, **environment: str) -> tuple[int, bytes]:
    """Runs pcpd at a terminal; gives its status and all that it showed."""
    ours, theirs = pty.openpty()
    env = {**scene.env, "TERM": "xterm", "COLUMNS": "120", **environment}
    command = [sys.executable, "-m", "pcpd", "--vault", os.fspath(scene.root), *arguments]
    process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end has closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(30), shown


HIT = {
    "path": "a/b",
    "title": "A \x1b[31m[bold]title[/bold]",
    "type": "semantic",
    "snippet": "one\ntwo",
    "score": 1.0,
}


def test_terminal_gets_colours_and_what_pages_say_cannot_steer_it(scene: Scene) -> None:
    """A title is text: neither escape sequences nor rich's markup."""
    page = {"path": HIT["path"], "title": HIT["title"], "type": "semantic", "updated": "2026"}
    scene.owner(http=lambda asked: ok({**EMPTY, "results": [HIT], "pages": [page], "total": 1}))
    for arguments in (("search", "x"), ("list",)):
        status, shown = terminal(scene, *arguments)
        assert status == 0
        assert b"\x1b[" in shown
        assert b"\\x1b[31m[bold]title[/bold]" in shown


def test_no_color_is_honoured(scene: Scene) -> None:
    """https://no-color.org"""
    scene.owner(http=lambda asked: ok({**EMPTY, "results": [HIT], "total": 1}))
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert b"\x1b[" not in terminal(scene, "search", "x", **environment)[1]


def test_long_work_is_shown_at_a_terminal(scene: Scene) -> None:
    """How far the owner is comes from its route `work`."""
    glances = threading.Semaphore(0)

    def answer(asked: Asked) -> Reply:
        for _ in range(3):
            assert glances.acquire(timeout=30)
        return ok({"pages": 7})

    owner = scene.owner(http=answer)
    plain = owner.answer

    def counted(asked: Asked) -> Reply:
        if asked.route != "work":
            return plain(asked)
        glances.release()
        return ok({"work": {"what": "indexing", "done": 3, "total": 7}})

    owner.answer = counted  # type: ignore[method-assign]
    status, shown = terminal(scene, "rebuild")
    assert status == 0
    assert b"indexing" in shown
    assert b"3/7" in shown
    assert b"Rebuilt the index of 7 pages." in shown


def test_editor_changes_a_copy_and_its_text_is_never_lost(scene: Scene, tmp_path: Path) -> None:
    """What it saved is written if the page is still what it was; else it is kept, and its place is named."""
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nprintf "more\\n" >> "$1"\n')
    editor.chmod(0o700)
    written: list[Asked] = []

    def answer(asked: Asked) -> Reply:
        if asked.method == "GET":
            return ok(b"text\r\n", {"ETag": '"v1"'})
        written.append(asked)
        if len(written) == 1:
            return ok({"path": "a", "outcome": "replaced", "version": "v2"})
        return problem(409, "page.stale", "it has changed", "look")

    scene.owner(http=answer)
    environment = {"EDITOR": f"'{editor}'", "TMPDIR": str(tmp_path)}
    assert terminal(scene, "edit", "notes/a", **environment)[0] == 0
    assert (written[0].body, written[0].headers["if-match"]) == (b"text\r\nmore\n", '"v1"')
    assert not list(tmp_path.glob("pcpd-edit-*"))
    status, shown = terminal(scene, "edit", "notes/a", **environment)
    assert status == 6
    (kept,) = tmp_path.glob("pcpd-edit-*/a.md")
    assert kept.read_bytes() == b"text\r\nmore\n"
    assert str(kept).encode() in shown.replace(b"\r\n", b"")

"""Runs the git program: GitPython's runner, with a clean environment, a time limit, and nothing of the person's.

No hook, signing, editor, pager, prompt, network or automatic packing can come in; what the caller's environment
says of repositories (`GIT_DIR`, `GIT_INDEX_FILE`, …) is dropped. The directory is named outright, so that git
asks neither who owns it nor where it begins. GitPython is imported at the first call, because importing it
already runs git.
"""

import contextlib
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import IO, TYPE_CHECKING, Any

from pcpd.errors import Broken, Unavailable
from pcpd.history.blobs import absent
from pcpd.history.layout import Layout
from pcpd.history.versions import EMAIL, NAME, Locked

if TYPE_CHECKING:
    from git.cmd import Git

SHORT_S = 60
LONG_S = 900
OLDEST = (2, 25)
_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
_KEPT = (
    "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
_SETTINGS = (
    "core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false", "commit.gpgSign=false",
    "tag.gpgSign=false", "log.showSignature=false", "core.fsmonitor=false", "core.pager=cat",
    "color.ui=false", "core.quotePath=false", "core.safecrlf=false",
    "diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.renames=true", "log.mailmap=false",
    "i18n.logOutputEncoding=utf-8", "fastimport.unpackLimit=1", "advice.detachedHead=false",
)  # fmt: skip
_LOCK = re.compile(r"[Uu]nable to (?:create|lock)[^']*'([^']+\.lock)'")


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of git left: its status, standard output, and standard error as text."""

    status: int
    out: bytes
    err: str


class Program:
    """The git program for one repository. Thread-safe: each call is a process of its own."""

    def __init__(self, layout: Layout, environment: Mapping[str, str]) -> None:
        self._layout = layout
        self._path = environment.get("PATH") or _PATH
        self._environment = {name: environment[name] for name in _KEPT if environment.get(name)}
        self._git = shutil.which("git", path=self._path)
        self._runner: Git | None = None
        self._version: tuple[int, ...] | None = None
        self._guard = threading.Lock()
        self._running: list[Any] = []
        self._closed = False

    @property
    def problem(self) -> str:
        """Says why the program cannot be used, or nothing."""
        if self._git is None:
            return "the git program is not installed, or not on the PATH"
        if self.version < OLDEST:
            return (
                f"git {'.'.join(map(str, self.version))} is too old; {'.'.join(map(str, OLDEST))} is needed"
            )
        return ""

    @property
    def version(self) -> tuple[int, ...]:
        """The program's version, or an empty tuple where it does not run."""
        if self._version is None:
            self._version = self._ask_version()
        return self._version

    @property
    def prefix(self) -> Path | None:
        """Where the program was installed, such as `/usr`."""
        return Path(self._git).resolve().parent.parent if self._git else None

    def run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        index: Path | None = None,
        limit_s: float = SHORT_S,
        settings: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
        accept: Sequence[int] = (0,),
    ) -> Output:
        """Runs `git arguments` in the work tree and gives what it said.

        Raises Locked when a lock is in the way, Unavailable (`history.git-missing`, `history.git-timeout`),
        and Broken (`history.git-failed`) for any other status than those accepted.
        """
        command = self._command(arguments, settings, self._variables(index, extra or {}))
        with _as_file(stdin) as stream, self._started(command, stream, limit_s) as process:
            out, err = process.communicate()
            status = process.returncode
        text = err.decode(errors="replace")
        if status not in accept:
            raise failure(arguments[0], status, text, limit_s)
        return Output(status, out, text)

    @contextlib.contextmanager
    def feeding(self, *arguments: str, limit_s: float = LONG_S) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Runs `git arguments` and gives its standard input and output, to be written and read meanwhile.

        Leaving the scope closes the input and waits. Raises as `run` does; leaving by an exception kills it.
        """
        command = self._command(arguments, (), self._variables(None, {}))
        with self._started(command, PIPE, limit_s) as process:
            try:
                yield process.stdin, process.stdout
                process.stdin.close()
            except BrokenPipeError:
                pass  # its status and standard error tell why
            said = process.stderr.read()  # `--quiet` keeps it shorter than a pipe holds
            status = process.wait()
        if status:
            raise failure(arguments[0], status, said.decode(errors="replace"), limit_s)

    def close(self) -> None:
        """Ends the runs under way, with whatever they started, and begins no more."""
        with self._guard:
            self._closed = True
            for process in self._running:
                _end(process)

    @contextlib.contextmanager
    def _started(self, command: list[str], stdin: IO[bytes] | int | None, limit_s: float) -> Iterator[Any]:
        """Starts git in a process group of its own: a filter that hangs is ended with it, not only git."""
        self._check()
        execute: Any = self._git_runner().execute  # its overloads know no options of a process
        with self._guard:
            if self._closed:
                raise Unavailable("owner.closing", "the owner is ending", hint="try again in a moment")
            running = execute(command, istream=stdin, as_process=True, start_new_session=True)
            process = running.proc
            self._running.append(process)
        timer = threading.Timer(limit_s, _end, (process,))
        timer.daemon = True
        timer.start()
        try:
            yield process
        except BaseException:
            _end(process)
            raise
        finally:
            timer.cancel()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()
            with self._guard:
                self._running.remove(process)

    def _command(
        self, arguments: Sequence[str], settings: Sequence[str], env: Mapping[str, str]
    ) -> list[str]:
        # `env -i`: GitPython adds to the environment of this process, and cannot take GIT_* out of it.
        pairs = [f"{name}={value}" for name, value in env.items()]
        flags = [part for setting in (*_SETTINGS, *self._durable(), *settings) for part in ("-c", setting)]
        return ["/usr/bin/env", "-i", *pairs, str(self._git), *flags, *arguments]

    def _durable(self) -> tuple[str, ...]:
        if self.version < (2, 36):
            return ("core.fsyncObjectFiles=true",)
        return ("core.fsync=objects,reference,index",)

    def _variables(self, index: Path | None, extra: Mapping[str, str]) -> dict[str, str]:
        layout = self._layout
        return {
            **self._environment,
            "PATH": self._path,
            "LC_ALL": "C",
            "GIT_DIR": str(layout.gitdir),
            "GIT_WORK_TREE": str(layout.workdir),
            "GIT_INDEX_FILE": str(index or layout.index),
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",  # for a git that does not know the line above
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_EDITOR": ":",
            "GIT_PAGER": "cat",
            "GIT_AUTHOR_NAME": NAME,
            "GIT_AUTHOR_EMAIL": EMAIL,
            "GIT_COMMITTER_NAME": NAME,
            "GIT_COMMITTER_EMAIL": EMAIL,
            **extra,
        }

    def _check(self) -> None:
        if self.problem:
            raise _missing(self.problem)

    def _git_runner(self) -> "Git":
        if self._git is None:
            raise _missing(self.problem)
        if self._runner is None:
            try:
                from git.cmd import Git
            except ImportError as error:  # GitPython refuses to be imported where it finds no git
                raise _missing(str(error).partition("\n")[0]) from error
            self._runner = Git(str(self._layout.workdir))
        return self._runner

    def _ask_version(self) -> tuple[int, ...]:
        if self._git is None:
            return ()
        out = self._git_runner().execute(
            ["/usr/bin/env", "-i", f"PATH={self._path}", "LC_ALL=C", self._git, "version"],
            with_exceptions=False,
            kill_after_timeout=SHORT_S,
        )
        found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", str(out))
        return tuple(int(part) for part in found.groups() if part) if found else ()


def failure(command: str, status: int, stderr: str, limit_s: float) -> Exception:
    """Gives the exception for a run of git that failed."""
    lock = _LOCK.search(stderr)
    if lock:
        return Locked(lock[1])
    if status < 0:
        return Unavailable(
            "history.git-timeout",
            f"`git {command}` was ended after {limit_s:g} s without an answer",
            hint="look at the disk, at filters in .gitattributes, and at other git processes",
        )
    if "promisor remote" in stderr or re.search(r"transport '.*' not allowed", stderr):
        return absent("that is asked for")
    reason = next((line for line in stderr.splitlines() if line.strip()), f"status {status}")
    return Broken(
        "history.git-failed",
        f"`git {command}` failed: {reason}",
        hint="`git fsck` in the vault tells whether the repository is whole",
    )


def _missing(reason: str) -> Unavailable:
    return Unavailable(
        "history.git-missing", f"history needs git: {reason}", hint="install git 2.25 or newer"
    )


def _end(process: Any) -> None:
    """Kills a run with its whole group. It was not waited for yet, so that its number is still its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _as_file(data: bytes | None) -> Iterator[IO[bytes] | None]:
    """Gives `data` as a file: GitPython hands its input to the process, and writes nothing into it."""
    if data is None:
        yield None
        return
    with tempfile.TemporaryFile() as stream:
        stream.write(data)
        stream.seek(0)
        yield stream

"""Environment and configuration file, read once: which folders are whose, and what the person may tune.

Folders follow the platform (`platformdirs`, which honours the XDG variables on Linux). What a vault owns on
this device lies in folders named by its context id (`folders_for`). Sockets lie in a folder named by the root
folder's device and inode (`socket_folders`), so that owner and clients agree on it by any path, without
reading the vault, and a copied vault can never be mistaken for its original. Source: pages.md §1;
architecture.md, *The owner*.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from pcpd.errors import Broken, Usage

SOCKET = "socket"
MCP_SOCKET = "mcp.sock"
SOCKET_PATH_BYTES = 103  # macOS keeps 104 bytes with the closing NUL, Linux 108
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a vault's things lie on this device: `state` (databases, log), `config` (access.yaml)."""

    state: Path
    config: Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What was decided before the run. `sources` tells for each name where its value comes from.

    `port`: of HTTP on localhost; another one is taken where it is in use, and 0 means any. `attachment_limit`:
    bytes above which an attachment is not versioned. `commit_quiet_s`, `commit_longest_s`: pages are committed
    when quiet that long, and after the longest wait at most. `watch`: `auto` (events where the system gives
    them) or `polling`, every `poll_s` seconds. `log_level`: least level that the owner's log takes.
    `quota_…`: what each agent may have within an hour, 0 for no limit.
    `environment`: what programs that the owner starts (git) may see; it holds no setting or token of ours.
    """

    state_base: Path
    config_base: Path
    socket_bases: tuple[Path, ...]
    port: int = 7717
    attachment_limit: int = 10 * MIB
    commit_quiet_s: float = 2.0
    commit_longest_s: float = 30.0
    watch: str = "auto"
    poll_s: float = 2.0
    log_level: str = "info"
    quota_writes: int = 2_000
    quota_proposals: int = 500
    quota_bytes: int = 256 * MIB
    sources: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def folders_for(self, name: str) -> Folders:
        """Gives the folders of the vault called `name`: its context id, for a copy with a suffix."""
        return Folders(state=self.state_base / name, config=self.config_base / name)

    def socket_folders(self, root: Path) -> tuple[Path, ...]:
        """Gives the folders where the sockets of the vault at `root` can lie; the owner takes the first.

        Clients look in all, since an owner may run with another environment. Raises OSError when the root
        cannot be looked at.
        """
        found = root.stat()
        name = f"{found.st_dev:x}-{found.st_ino:x}"
        fitting = [base / name for base in self.socket_bases if _fits(base / name)]
        return tuple(fitting)

    def socket_folder(self, root: Path) -> Path:
        """Gives the folder where the owner of the vault at `root` puts its sockets, made and private.

        Raises Broken (`settings.not-private`) when somebody else could reach into it.
        """
        folder = self.socket_folders(root)[0]
        for each in (folder.parent, folder):
            make_private(each)
        return folder

    @property
    def config_file(self) -> Path:
        """The configuration file, which need not exist."""
        return self.config_base / "config.toml"


def load(environ: Mapping[str, str]) -> Settings:
    """Reads environment and configuration file; the environment outranks the file.

    Raises Usage (`settings.invalid`) that names every bad key at once, Broken (`settings.no-home`).
    """
    import platformdirs

    state = _absolute(Path(platformdirs.user_state_dir("pcpd", appauthor=False)))
    config = _absolute(Path(platformdirs.user_config_dir("pcpd", appauthor=False)))
    values, sources = _tuned(config / "config.toml", environ)
    return Settings(
        state_base=state,
        config_base=config,
        socket_bases=_socket_bases(state, environ),
        sources=sources,
        environment={name: value for name, value in environ.items() if not name.startswith("PCPD_")},
        **values,  # type: ignore[arg-type] # each was checked against its default's type
    )


def make_private(folder: Path) -> None:
    """Makes `folder` (0700, with its parents) unless it is there; raises Broken unless only we may enter.

    A link, a stranger's folder or one that others may write to is refused: whoever could put a socket there
    would be taken for the owner.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Broken(
            "settings.not-private",
            f"{folder} is not a folder of yours, so pcpd cannot trust what is in it",
            hint="remove it, or set XDG_RUNTIME_DIR to a folder of your own",
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _fits(folder: Path) -> bool:
    """Tells whether a socket's whole path fits what the system takes."""
    return len(os.fsencode(folder / MCP_SOCKET)) <= SOCKET_PATH_BYTES


def _absolute(folder: Path) -> Path:
    """Gives `folder`, unless there is no home that it could be in."""
    if folder.is_absolute():
        return folder
    raise Broken("settings.no-home", "no home folder is known for this user", hint="set HOME and try again")


def _socket_bases(state: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Gives where socket folders can be: the runtime folder where there is one, the state folder, then /tmp.

    The last one is short on every system, for homes whose paths are too long for a socket.
    """
    runtime = [Path(environ.get("XDG_RUNTIME_DIR", "")), Path(f"/run/user/{os.getuid()}")]
    bases = [folder / "pcpd" for folder in runtime if _is_ours(folder)]
    return (*dict.fromkeys(bases), state / "run", _temporary(environ) / f"pcpd-{os.getuid()}")


def _temporary(environ: Mapping[str, str]) -> Path:
    """Gives the folder for temporary files, never a deep one."""
    given = Path(environ.get("TMPDIR", ""))
    is_short = len(os.fsencode(given)) <= SOCKET_PATH_BYTES // 2
    return given if given.is_absolute() and given.is_dir() and is_short else Path("/tmp")  # noqa: S108


def _is_ours(folder: Path) -> bool:
    """Tells whether `folder` is an absolute path to a folder that this user owns and can write to."""
    try:
        found = folder.stat()
    except OSError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder.is_absolute() and mine and os.access(folder, os.W_OK | os.X_OK)


_QUOTA = "a number, 0 or more"
# Every name a person may set: what its values must be, in words and as a test.
_RULES: Mapping[str, tuple[str, Callable[[float | str], bool]]] = {
    "port": ("a port, 0 to 65535", lambda value: value in range(65536)),
    "attachment_limit": ("a number of bytes, 0 or more", lambda value: value in range(2**63)),
    "commit_quiet_s": ("seconds, 0 to 3600", lambda value: 0 <= float(value) <= 3600),
    "commit_longest_s": ("seconds, 0 to 3600", lambda value: 0 <= float(value) <= 3600),
    "watch": ("auto or polling", lambda value: value in {"auto", "polling"}),
    "poll_s": ("seconds, 0.1 to 3600", lambda value: 0.1 <= float(value) <= 3600),
    "log_level": (
        "debug, info, warning or error",
        lambda value: value in {"debug", "info", "warning", "error"},
    ),
    "quota_writes": (_QUOTA, lambda value: value in range(2**63)),
    "quota_proposals": (_QUOTA, lambda value: value in range(2**63)),
    "quota_bytes": (_QUOTA, lambda value: value in range(2**63)),
}


def _tuned(file: Path, environ: Mapping[str, str]) -> tuple[dict[str, object], dict[str, str]]:
    """Gives what file and environment set, and where each name's value comes from."""
    values: dict[str, object] = {}
    sources = dict.fromkeys(_RULES, "default")
    problems: list[str] = []
    written = _read(file)
    problems += [f"{file}: {name} is no setting" for name in written if name not in _RULES]
    defaults = {each.name: each.default for each in fields(Settings)}
    for name, (wanted, fits) in _RULES.items():
        variable = f"PCPD_{name.upper()}"
        given, source = written.get(name), str(file)
        if environ.get(variable):
            given, source = environ[variable], variable
        if given is None:
            continue
        value = _as(given, defaults[name], from_text=source == variable)
        if value is None or not fits(value):
            problems.append(f"{source}: {name} must be {wanted}, found {given!r}")
            continue
        values[name], sources[name] = value, source
    if problems:
        raise Usage("settings.invalid", "; ".join(problems), hint="`pcpd config --help` lists the settings")
    return values, sources


def _read(file: Path) -> dict[str, object]:
    """Reads the configuration file; a missing one is empty."""
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Broken("settings.unreadable", f"cannot read {file}: {error.strerror}") from error
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except ValueError as error:
        raise Usage("settings.invalid", f"{file} is not TOML: {error}", hint="correct the line") from error


def _as(given: object, default: object, *, from_text: bool) -> float | str | None:
    """Gives `given` in the type of `default`, or None where it is of another kind."""
    if isinstance(default, str):
        return given if isinstance(given, str) else None
    kind = int if isinstance(default, int) else float
    if from_text:
        try:
            return kind(str(given))
        except ValueError:
            return None
    if isinstance(given, bool) or not isinstance(given, int | float) or type(given) not in {int, kind}:
        return None
    return kind(given)

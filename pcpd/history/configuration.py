"""What the person's git configuration says, read again when its files change. Only what this room needs."""

from collections.abc import Mapping
from pathlib import Path

from pcpd.history.layout import Layout
from pcpd.history.program import Program


class Configuration:
    """The values git itself would see, the last one of each key. Keys are lowercase, but for their middle part."""

    def __init__(self, layout: Layout, program: Program, environment: Mapping[str, str]) -> None:
        self._program = program
        home = environment.get("HOME")
        xdg = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else None)
        self.attributes = Path(xdg) / "git" / "attributes" if xdg else None
        places = [
            layout.commondir / "config",
            layout.gitdir / "config.worktree",
            Path(home) / ".gitconfig" if home else None,
            Path(xdg) / "git" / "config" if xdg else None,
            *(
                Path(environment[name])
                for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
                if environment.get(name)
            ),
            Path("/etc/gitconfig"),
        ]
        self._places = [place for place in places if place is not None]
        self._stamp: tuple[object, ...] | None = None
        self._values: dict[str, str] = {}
        self._own: frozenset[str] = frozenset()

    def get(self, key: str) -> str | None:
        """Gives the value of a key such as `core.autocrlf` or `filter.lfs.clean`."""
        self._refresh()
        return self._values.get(key)

    def is_set_by_repository(self, key: str) -> bool:
        """Tells whether the repository's own file sets `key`."""
        self._refresh()
        return key in self._own

    def any_set(self, prefix: str, suffix: str) -> bool:
        """Tells whether some key that begins and ends so is true."""
        self._refresh()
        return any(
            key.startswith(prefix)
            and key.endswith(suffix)
            and value.lower() not in {"false", "no", "off", "0"}
            for key, value in self._values.items()
        )

    def _refresh(self) -> None:
        stamp = tuple(stamp_of(place) for place in self._places)
        if stamp == self._stamp or self._program.problem:
            return
        self._values = _parsed(self._program.run("config", "--list", "-z", "--includes").out)
        self._own = frozenset(
            _parsed(self._program.run("config", "--list", "-z", "--local", "--includes").out)
        )
        self._stamp = stamp


def stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Gives what changes when a file changes, or None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _parsed(out: bytes) -> dict[str, str]:
    values = {}
    for entry in out.decode(errors="replace").split("\0"):
        key, equals, value = entry.partition("\n")
        if key:
            values[key] = value if equals else "true"
    return values

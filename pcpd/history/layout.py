"""Finds the repository that keeps a vault's history, or makes one; says where its parts lie.

A repository at the vault's root is `own` when pcpd made it, else `adopted`; one whose root is above the vault
is `above`, and gets a branch of its own (architecture.md, *Commits*).
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pygit2

from pcpd.errors import Broken, NotFound
from pcpd.history.versions import Kind

_MADE = "pcpd.made"
ATTRIBUTES = b"# Written by pcpd: what is committed is what is on disk, byte for byte.\n* -text\n"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things lie. `prefix` leads from the repository's root to the vault's, empty or ending in `/`."""

    root: Path
    workdir: Path
    gitdir: Path
    commondir: Path
    prefix: str
    kind: Kind

    @property
    def index(self) -> Path:
        """The person's index."""
        return self.gitdir / "index"


def find(root: Path) -> Layout | None:
    """Gives the layout of the repository at `root` or above it, or None.

    Raises Broken (`history.broken`) when `root` has a `.git` that is no repository.
    """
    root = root.resolve()
    for folder in (root, *root.parents):
        dot_git = folder / ".git"
        if not dot_git.exists() and not dot_git.is_symlink():
            continue
        gitdir = _gitdir(dot_git)
        if gitdir is not None:
            return _layout(root, folder, gitdir)
        if folder == root:
            raise Broken(
                "history.broken",
                f"{dot_git} is there, but is no working git repository, so that no history is kept",
                hint="repair it, or move it away and start again",
            )
    return None


def make(root: Path, context_id: str) -> Layout:
    """Makes a repository at `root`, whole or not at all, and gives its layout."""
    root = root.resolve()
    scratch = Path(tempfile.mkdtemp(prefix=".pcpd-init-", dir=root))
    try:
        repository = pygit2.init_repository(str(scratch), initial_head="main")
        repository.config[_MADE] = context_id
        gitdir = scratch / ".git"
        (gitdir / "info").mkdir(exist_ok=True)
        (gitdir / "info" / "attributes").write_bytes(ATTRIBUTES)
        repository.free()
        gitdir.rename(root / ".git")
    except pygit2.GitError as error:
        raise Broken(
            "history.broken",
            f"git makes no repository in {root} ({error}), so that no history is kept",
            hint="see to what it names, such as a configuration in the home that cannot be read, and start again",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = find(root)
    if found is None:
        raise NotFound("history.none", f"{root} has no repository")
    return found


def _layout(root: Path, workdir: Path, gitdir: Path) -> Layout:
    common = gitdir / "commondir"
    commondir = (gitdir / common.read_text().strip()).resolve() if common.is_file() else gitdir
    _check_work_tree(gitdir, commondir, workdir)
    prefix = root.relative_to(workdir).as_posix()
    prefix = "" if prefix == "." else f"{prefix}/"
    kind: Kind = "above" if prefix else "own" if _is_made_here(commondir) else "adopted"
    return Layout(root, workdir, gitdir, commondir, prefix, kind)


def _gitdir(dot_git: Path) -> Path | None:
    """Follows a `.git` folder, link or file to the git folder, or gives None when there is none in working order."""
    try:
        if dot_git.is_file():
            text = dot_git.read_text()
            if not text.startswith("gitdir:"):
                return None
            dot_git = dot_git.parent / text.removeprefix("gitdir:").strip()
        gitdir = dot_git.resolve()
        common = gitdir / "commondir"
        commondir = gitdir / common.read_text().strip() if common.is_file() else gitdir
        is_whole = (gitdir / "HEAD").is_file() and (commondir / "objects").is_dir()
    except (OSError, UnicodeDecodeError):
        return None
    return gitdir if is_whole and (commondir / "refs").exists() else None


def _check_work_tree(gitdir: Path, commondir: Path, workdir: Path) -> None:
    """Raises Broken where the repository's own setting puts its files elsewhere (a submodule's leads here)."""
    if gitdir != commondir:
        return
    try:
        elsewhere = pygit2.Config(str(commondir / "config"))["core.worktree"]
    except (KeyError, pygit2.GitError, OSError):
        return
    if elsewhere and (gitdir / elsewhere).resolve() != workdir:
        raise Broken(
            "history.broken",
            f"the repository in {gitdir} has its work tree elsewhere ({elsewhere}), so that no history is kept",
            hint="see `git config core.worktree`",
        )


def _is_made_here(commondir: Path) -> bool:
    try:
        return _MADE in pygit2.Config(str(commondir / "config"))
    except (pygit2.GitError, OSError):
        return False

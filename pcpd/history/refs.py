"""Moves a ref by compare-and-swap, durably, without hooks, and so that a kill leaves it old or new.

Written as git writes loose refs: lock, look, log, rename. The git program would run the person's
`reference-transaction` hook or leave its lock behind when killed; libgit2 the latter. Repositories with
another ref store go through the program (`plumbing`).
"""

import re
from pathlib import Path

from pcpd.errors import Broken
from pcpd.history.layout import Layout
from pcpd.history.locks import Locks, sync_folder
from pcpd.history.versions import EMAIL, NAME, Head, Moved

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


def read(layout: Layout, ref: str) -> str | None:
    """Gives the commit that `ref` names, from its loose file or from packed-refs. None when there is none."""
    try:
        text = (layout.commondir / ref).read_text("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _packed(layout, ref)
    if text.startswith("ref:"):
        return read(layout, text.removeprefix("ref:").strip())
    return _id(text, layout.commondir / ref)


def head(layout: Layout) -> Head:
    """Gives what HEAD says now."""
    text = (layout.gitdir / "HEAD").read_text("utf-8", "replace").strip()
    if text.startswith("ref:"):
        branch = text.removeprefix("ref:").strip()
        return Head(branch, read(layout, branch))
    return Head(None, _id(text, layout.gitdir / "HEAD"))


def _id(text: str, path: Path) -> str:
    """Gives the commit that a ref's file names. Raises Broken where it names none, as after a lost power supply."""
    if _OID.fullmatch(text):
        return text
    raise Broken(
        "history.broken",
        f"{path} names no commit and no branch",
        hint="repair it: `git fsck` in the vault tells more, and `git reflog` what it named",
    )


def move(layout: Layout, locks: Locks, ref: str, *, old: str | None, new: str, log: str) -> None:
    """Sets `ref` from `old` (None: it must not exist) to `new`. `log` is the reflog's line after the ids.

    Raises Moved when it is not at `old`, Locked when somebody holds it.
    """
    _check_room(layout, ref)
    path = layout.commondir / ref
    lock = path.with_name(f"{path.name}.lock")
    with locks.hold(lock, f"{new}\n".encode()):
        if read(layout, ref) != old:
            raise Moved(ref)
        _log(layout, ref, f"{old or '0' * len(new)} {new} {log}\n")
        lock.replace(path)
    sync_folder(path.parent)


def component(text: str) -> str:
    """Gives an id as one part of a ref's name, which git takes as it is."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text) or "-"


def log_line(seconds: int, message: str) -> str:
    """Gives the end of a reflog line: who, when, what."""
    return f"{NAME} <{EMAIL}> {seconds} +0000\tcommit (pcpd): {message.splitlines()[0] if message else ''}"


def _check_room(layout: Layout, ref: str) -> None:
    """Raises Broken where a ref has the name of a folder that this one needs."""
    parts = ref.split("/")
    for length in range(3, len(parts)):
        taken = "/".join(parts[:length])
        if (layout.commondir / taken).is_file() or _packed(layout, taken):
            raise Broken(
                "history.ref-taken",
                f"{taken} is in the way of {ref}, which keeps this vault's history",
                hint=f"rename it: `git branch -m {'/'.join(parts[2:length])} <another name>`",
            )


def _log(layout: Layout, ref: str, line: str) -> None:
    """Notes a move where git keeps a log for the ref, and for HEAD when it points there."""
    logs = [layout.commondir / "logs" / ref]
    if head(layout).branch == ref:
        logs.append(layout.gitdir / "logs" / "HEAD")
    for path in logs:
        if path.exists() or (ref.startswith("refs/heads/") and _keeps_logs(layout)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(line)


def _keeps_logs(layout: Layout) -> bool:
    return (layout.gitdir / "logs" / "HEAD").exists() or layout.kind == "own"


def _packed(layout: Layout, ref: str) -> str | None:
    path: Path = layout.commondir / "packed-refs"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    wanted = ref.encode()
    for line in data.splitlines():
        oid, _, name = line.partition(b" ")
        if name == wanted:
            return oid.decode()
    return None


def has_branches(layout: Layout) -> bool:
    """Tells whether there is any branch, loose or packed."""
    heads = layout.commondir / "refs" / "heads"
    if any(path.is_file() for path in heads.rglob("*")):
        return True
    packed = layout.commondir / "packed-refs"
    return packed.is_file() and b" refs/heads/" in packed.read_bytes()

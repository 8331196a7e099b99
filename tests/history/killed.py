"""Commits in a vault and is killed just before its n-th effect on the disk. Run by test_kill.py.

Arguments: the vault, n, `few` or `many`. Ends by SIGKILL; with n = 0 it prints how many effects there are.
"""

import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from pcpd.history.repository import Repository
from pcpd.history.versions import Change

EFFECTS = {
    "fsync", "link", "replace", "rename", "unlink", "write", "create_blob", "create_commit", "git_index_write",
    "fork_exec",
}  # fmt: skip
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def changes(root: Path, size: str) -> list[Change]:
    """Gives what is on disk: the files at the root, or all of them."""
    found = [path for path in sorted(root.rglob("*.md")) if size == "many" or path.parent == root]
    return [
        *(Change(path.relative_to(root).as_posix(), data=path.read_bytes()) for path in found),
        Change("gone.md"),
    ]


def main(root: Path, last: int, size: str) -> None:
    """Commits what is on disk."""
    repository = Repository.open(
        root,
        context_id="ctx_1_a",
        device="dev1",
        create=True,
        environment=os.environ,
        clock=lambda: time.time() + 3600,
    )
    left = last

    def count(_frame: object, event: str, argument: object) -> None:
        nonlocal left
        if event == "c_call" and getattr(argument, "__name__", "") in EFFECTS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    repository.commit(changes(root, size), message="changed", now=NOW)
    sys.setprofile(None)
    sys.stdout.write(f"{-left}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

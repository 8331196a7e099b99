"""What the person has under way in their repository: a merge, a rebase, and their like."""

from pathlib import Path

from pcpd.history.layout import Layout

# In git's own order of naming (wt-status.c); the reftable store keeps only MERGE_HEAD as a file.
_MARKS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
PSEUDO_REFS = (("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert"))


def under_way(layout: Layout) -> str:
    """Names the operation in progress, or gives an empty string."""
    for mark, operation in _MARKS:
        if (layout.gitdir / mark).exists():
            is_am = (layout.gitdir / mark / "applying").exists()
            return "am" if is_am else operation
    return _sequence(layout.gitdir / "sequencer" / "todo")


def _sequence(todo: Path) -> str:
    """Names a series of picks or reverts that stands between two commits."""
    try:
        first = todo.read_text(errors="replace").lstrip()
    except OSError:
        return ""
    return "revert" if first.startswith(("revert", "r ")) else "cherry-pick"

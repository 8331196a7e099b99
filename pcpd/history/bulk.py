"""Many files in one commit: git's fast-import, which stores them in one durable pack outside this process."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import IO

from pcpd.errors import Broken
from pcpd.history.drafting import Step
from pcpd.history.program import Program
from pcpd.history.versions import EMAIL, NAME, Edit


def write(
    program: Program, steps: Iterable[Step], *, ref: str, parents: Sequence[str], message: str, now: datetime
) -> tuple[str, list[Edit]]:
    """Gives the commit with the steps made on the first of `parents`, and the edits.

    `ref` is a private one that fast-import needs; it is removed again. The caller publishes the commit.
    """
    edits: list[Edit] = []
    removed: list[Step] = []
    folders: set[str] = set()
    with program.feeding("fast-import", "--done", "--quiet", "--force") as (feed, answers):
        _begin(feed, ref, parents, message, now)
        for step in steps:
            edits.append(step.edit)
            if step.edit.new is None:
                removed.append(step)
                continue
            folders.update(_folders(step.edit.file))
            _feed(feed, step)
        for step in removed:
            if step.edit.file not in folders:  # else a folder took its place, which must stay
                _feed(feed, step)
        feed.write(b"\nget-mark :1\ndone\n")
        feed.flush()
        rev = answers.readline().decode().strip()
    program.run("update-ref", "-d", ref)
    if not rev:
        raise Broken("history.git-failed", "`git fast-import` gave no commit", hint="`git fsck` tells more")
    return rev, edits


def _begin(feed: IO[bytes], ref: str, parents: Sequence[str], message: str, now: datetime) -> None:
    text = message.encode(errors="replace")
    who = f"{NAME} <{EMAIL}> {int(now.timestamp())} +0000"
    feed.write(f"commit {ref}\nmark :1\ncommitter {who}\ndata {len(text)}\n".encode() + text + b"\n")
    for word, parent in zip(("from", *["merge"] * len(parents)), parents, strict=False):
        feed.write(f"{word} {parent}\n".encode())


def _feed(feed: IO[bytes], step: Step) -> None:
    file, new = quoted(step.edit.file), step.edit.new
    if new is None:
        feed.write(b"D %s\n" % file)
    elif step.data is None:
        feed.write(b"M %o %s %s\n" % (new.mode, new.oid.encode(), file))
    else:
        feed.write(b"M %o inline %s\ndata %d\n" % (new.mode, file, len(step.data)))
        feed.write(step.data)
        feed.write(b"\n")


def _folders(file: str) -> Iterable[str]:
    while "/" in file:
        file = file.rpartition("/")[0]
        yield file


def quoted(file: str) -> bytes:
    """Writes a path as git quotes it, so that no byte in it can be taken for a command."""
    plain = b"".join(
        bytes([byte]) if 0x20 <= byte < 0x7F and byte not in b'"\\' else b"\\%03o" % byte
        for byte in os.fsencode(file)
    )
    return b'"' + plain + b'"'

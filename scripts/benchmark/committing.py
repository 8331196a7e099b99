"""History: one page, five hundred, thirty thousand; and what a commit costs those who read meanwhile."""

import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pygit2

from benchmark.indexing import settled
from benchmark.machine import median, timed
from benchmark.person import Agent, Person
from benchmark.report import Row
from pcpd.history.gate import QUIET_S
from pcpd.history.repository import Repository
from pcpd.history.versions import Change

ROUNDS = 20
TURNS = 5
TURN_S = 4.0


def _dirty(vault: Path, files: list[str]) -> list[str]:
    """Changes files and gives them back."""
    for file in files:
        with (vault / file).open("ab") as page:
            page.write(b"\nchanged\n")
    return files


def _ours(repository: Repository, vault: Path, files: list[str]) -> None:
    changes = (Change(file, data=(vault / file).read_bytes()) for file in files)
    done = repository.commit(changes, message="bench: pages changed", now=datetime.now(UTC))
    assert done.rev, "nothing was committed"


def _libgit2(repository: pygit2.Repository, vault: Path, file: str) -> None:
    """The least: blob, the trees along the path, a commit object, the ref; nothing is fsynced."""
    oid, mode = repository.create_blob((vault / file).read_bytes()), pygit2.GIT_FILEMODE_BLOB
    head = repository.head.peel(pygit2.Commit)
    parts = file.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        tree = head.tree["/".join(parts[:depth])].id if depth else head.tree.id
        builder = repository.TreeBuilder(tree)
        builder.insert(parts[depth], oid, mode)
        oid, mode = builder.write(), pygit2.GIT_FILEMODE_TREE
    who = pygit2.Signature("bench", "bench@example.org")
    repository.create_commit("HEAD", who, who, "bench", oid, [head.id])


def _fast_import(vault: Path, files: list[str]) -> None:
    """The least for many: git fast-import of the same bytes, one commit."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=vault, capture_output=True, text=True, check=True
    ).stdout.strip()
    parts = [
        b"commit refs/heads/limit\ncommitter b <b@example.org> 0 +0000\ndata 1\nx\nfrom "
        + head.encode()
        + b"\n"
    ]
    for file in files:
        data = (vault / file).read_bytes()
        parts.append(b'M 100644 inline "%s"\ndata %d\n%s\n' % (file.encode(), len(data), data))
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=vault, input=b"".join(parts), check=True)


def commits(vault: Path, pages: int, context_id: str) -> list[Row]:
    """Times commits in a vault whose pages are all in git already."""
    files = sorted(str(file.relative_to(vault)) for file in vault.rglob("*.md") if file.name.isascii())
    raw = pygit2.Repository(str(vault))
    bare = [timed(_libgit2, raw, vault, _dirty(vault, files[n : n + 1])[0]) for n in range(ROUNDS + 2)]
    subprocess.run(["git", "-C", str(vault), "read-tree", "HEAD"], check=True)
    repository = Repository.open(
        vault, context_id=context_id, device="bench", create=False, environment=os.environ, clock=time.time
    )
    time.sleep(QUIET_S + 0.5)  # git was used a moment ago, so that pcpd would wait
    ours = [timed(_ours, repository, vault, _dirty(vault, files[n : n + 1])) for n in range(ROUNDS + 2)]
    goal = 60 if pages <= 10_000 else 120
    one, least = median(ours[2:]), median(bare[2:])
    note = "durable, entry of the index refreshed; limit: libgit2, not durable"
    rows = [Row("commit of one page", pages, one, least, "ms", f"≤ {goal} ms", one <= goal, note)]
    for count, bound in ((500, 0.4), (30_000, 12.0)):
        if count > len(files):
            continue
        some = _dirty(vault, files[-count:])
        took = timed(_ours, repository, vault, some) / 1000
        least = timed(_fast_import, vault, some) / 1000
        what = f"{count:,} pages in one commit"
        rows.append(
            Row(what, pages, took, least, "s", f"≤ {bound} s", took <= bound, "limit: git fast-import")
        )
    repository.close()
    return rows


def readers_meanwhile(person: Person, vault: Path, pages: int) -> list[Row]:
    """Searches without pause in turns with and without commits; the median of the turns' longest answers.

    Turns are equally long, as the longest of many answers grows with their number, and alternate, so that
    whatever else the machine does falls on both.
    """
    files = sorted(vault.rglob("*.md"))
    quiet, busy = [], []
    with person.owner(vault):
        agent = Agent(person, vault, "agent:bench")
        agent.search("warm up")
        settled(person, vault)
        for turn in range(TURNS):
            quiet.append(_longest(agent, TURN_S))
            _dirty(vault, [str(file.relative_to(vault)) for file in files[turn * 5 : turn * 5 + 5]])
            busy.append(_longest(agent, TURN_S))  # the commit follows two seconds after the last save
            settled(person, vault)
        agent.close()
    what = "longest search while pages are committed"
    note = f"median of {TURNS} turns; limit: nothing committed"
    ours, least = median(busy), median(quiet)
    return [Row(what, pages, ours, least, "ms", "≤ quiet + 20 ms", ours <= least + 20, note)]


def _longest(agent: Agent, seconds: float) -> float:
    longest, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        longest = max(longest, timed(agent.search, "tealharbor"))
    return longest

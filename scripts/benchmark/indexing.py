"""The index: made from nothing, found in step at a start, its size, and what it leaves alone."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmark import limits
from benchmark.machine import cpu_seconds, median, memory_mb, size_of, timed, tree_digest, until
from benchmark.person import ROOT, Person
from benchmark.report import Row
from pcpd.vault.ignore import Ignore
from pcpd.vault.scan import scan

STARTS = 5


def fts_tables() -> str:
    """Gives the SQL of pcpd's own full-text tables, which the limit script fills too."""
    schema = "\n".join(file.read_text() for file in sorted((ROOT / "pcpd/index/schema").glob("*.sql")))
    return "\n".join(re.findall(r"^CREATE VIRTUAL TABLE .*?^\);", schema, re.DOTALL | re.MULTILINE))


def limit_index(vault: Path, work: Path) -> tuple[dict[str, float], Path]:
    """Runs the limit script in a process of its own; gives its seconds and its database."""
    database = work / "limit.sqlite"
    for old in work.glob("limit.sqlite*"):
        old.unlink()
    done = subprocess.run(
        [sys.executable, limits.__file__, str(vault), str(database)],
        input=fts_tables(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout)
    return figures, database


def from_nothing(person: Person, vault: Path, pages: int, work: Path) -> list[Row]:
    """Adopts the vault and starts its first owner; CPU seconds of its process are what counts, imports too."""
    before = tree_digest(vault)
    text = size_of(vault, "*.md")
    person.pcpd("init", vault)
    shutil.rmtree(person.home / "state")  # whatever `init` has indexed already
    with person.owner(vault) as owner:
        indexed, wall = cpu_seconds(owner.pid), owner.ready_s
        settled(person, vault)
        compared = cpu_seconds(owner.pid) - indexed
        start = cpu_seconds(owner.pid)
        person.pcpd("--vault", vault, "rebuild")
        rebuilt = cpu_seconds(owner.pid) - start
        highest = memory_mb(owner.pid, "VmHWM")
    size = size_of(person.home / "state", "index-*.sqlite")
    same = tree_digest(vault) == before
    limit, _ = limit_index(vault, work)
    least = limit["cpu"]
    ours, least_page = indexed / pages * 1000, least / pages * 1000
    note = f"ready after {wall:.1f} s; rebuild {rebuilt:.1f} CPU s; comparing with HEAD later {compared:.1f} CPU s"
    return [
        Row(
            "full index from nothing, CPU",
            pages,
            indexed,
            least,
            "s",
            "≤ 2 × limit",
            indexed <= 2 * least,
            note,
        ),
        Row("index, CPU a page", pages, ours, least_page, "ms", "50,000 ≤ 1.2 × 10,000", None),
        Row("memory while indexing", pages, highest, None, "MB", "≤ 180 MB", highest <= 180),
        Row("size of the index", pages, size / text, None, "× the text", "≤ 3 ×", size <= 3 * text),
        Row("vaults changed by the first index", pages, 0 if same else 1, None, "", "0", same),
    ]


def settled(person: Person, vault: Path) -> None:
    """Waits until every version at rest is in git."""
    until(lambda: person.ask(vault, "status")["history"]["waiting"] == 0, timeout_s=600, pause_s=1)


def unchanged_start(person: Person, vault: Path, pages: int) -> list[Row]:
    """Starts owners on a vault that is in step, and compares the scan with bare scandir and stat."""
    starts = []
    for _ in range(STARTS):
        with person.owner(vault) as owner:
            starts.append(owner.ready_s)
    ignore = Ignore.load(vault)
    ours = median([timed(scan, vault, ignore) for _ in range(9)])
    bare = median([timed(limits.scan, vault) for _ in range(9)])
    ready = median(starts)
    return [
        Row("start with nothing changed, until `ready`", pages, ready, None, "s", "≤ 0.8 s", ready <= 0.8),
        Row("its scan", pages, ours, bare, "ms", "≤ 2 × limit", ours <= 2 * bare, "limit: scandir and stat"),
    ]

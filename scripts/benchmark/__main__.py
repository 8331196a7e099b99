"""Runs the benchmark: `scripts/bench [--large] [--only SUBJECT …] [--conversations FOLDER]`."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmark import clients, committing, doors, indexing, saving, searching
from benchmark.person import ROOT, Person
from benchmark.report import Row, as_json, as_table, page

SUBJECTS = ("index", "search", "save", "doors", "clients", "commit", "burst", "idle", "recall")


def main() -> int:
    """Measures what was asked for and prints a table and JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000, help="pages of the vault (default 10,000)")
    parser.add_argument("--large", action="store_true", help="also 50,000 pages")
    parser.add_argument("--files", type=int, default=50_000, help="files of the burst (default 50,000)")
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="one subject (can be repeated)")
    parser.add_argument("--seconds", type=float, default=clients.SECONDS, help="of `clients` (default 60)")
    parser.add_argument("--conversations", type=Path, help="a folder of LoCoMo conversations, for `recall`")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    parser.add_argument("--keep", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="pcpd-bench-", dir="/tmp"))
    rows: list[Row] = []
    try:
        for row in measure(options, work):
            print(f"{row.what} ({row.pages:,}): {row.ours:.4g} {row.unit}", file=sys.stderr, flush=True)
            rows.append(row)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(as_table(rows))
    print(as_json(rows))
    if options.json:
        options.json.write_text(as_json(rows), encoding="utf-8")
    if not options.keep and not options.only:
        (ROOT / "docs" / "performance.md").write_text(page(rows), encoding="utf-8")
    return 0


def measure(options: argparse.Namespace, work: Path) -> Iterable[Row]:
    """Gives the rows of every subject that was asked for, as they come."""
    wanted = set(options.only or SUBJECTS)
    for pages in [options.pages] + ([50_000] if options.large else []):
        yield from _one_size(wanted, pages, work / f"size-{pages}", options)
    if "burst" in wanted:
        yield from saving.burst(_person(work / "burst"), work / "burst" / "vault", options.files)
    if "recall" in wanted and options.conversations:
        yield from searching.recall(
            _person(work / "recall"), options.conversations.resolve(), work / "recall"
        )


def _one_size(wanted: set[str], pages: int, work: Path, options: argparse.Namespace) -> Iterable[Row]:
    if not wanted & {"index", "search", "save", "doors", "clients", "commit", "idle"}:
        return
    person, vault = _person(work), work / "vault"
    maker = [sys.executable, str(ROOT / "scripts" / "make_vault.py"), str(vault)]
    subprocess.run([*maker, "--pages", str(pages), "--seed", "7", "--git", "--quiet"], check=True)
    from_nothing = list(indexing.from_nothing(person, vault, pages, work))
    if "index" in wanted:
        yield from from_nothing
        yield from indexing.unchanged_start(person, vault, pages)
    if "search" in wanted:
        inside = searching.in_process(vault, searching.state_of(person, vault), work / "limit.sqlite", pages)
        yield from inside
        yield from searching.over_mcp(person, vault, pages, inside)
    if "save" in wanted:
        yield from saving.save_to_found(person, vault, pages, work)
    if "doors" in wanted:
        yield from doors.doors(person, vault, pages)
    if "clients" in wanted:
        yield from clients.clients(person, vault, pages, options.seconds)
    if "idle" in wanted:
        yield from saving.idle(person, vault, pages)
    if "commit" in wanted:
        yield from committing.readers_meanwhile(person, vault, pages)
        yield from committing.commits(vault, pages, searching.state_of(person, vault).name)


def _person(work: Path) -> Person:
    work.mkdir(exist_ok=True)
    home = work / "home"
    home.mkdir()
    return Person(home)


if __name__ == "__main__":
    sys.exit(main())

"""Small vaults as text, and their rows: what the tests of this room put into an index."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pcpd.index import pages
from pcpd.index.dump import Row, dump
from pcpd.index.rows import Declared, FileRow
from pcpd.index.store import Index
from pcpd.pages.changes import Stat
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath, kind_of
from pcpd.policy.decide import Facts, Slice, Visibility

MTIME_NS = 1_700_000_000_000_000_000
READ_AT_NS = MTIME_NS + 60_000_000_000


def rule(declared: Declared) -> Facts:
    """The facts under a context that is called `personal` by default."""
    return rule_of("personal", declared)


def rule_of(default: str, declared: Declared) -> Facts:
    """The facts under a context with that default partition."""
    return Facts(
        declared.path,
        declared.partition or default,
        "conversation" if declared.is_conversation else declared.type,
        declared.sensitivity,
        declared.review_state in {"proposed", "rejected"},
    )


def stat_of(text: str, mtime_ns: int = MTIME_NS) -> Stat:
    """A stat as a file of that text may have."""
    return Stat(len(text.encode()), mtime_ns, mtime_ns, 7)


def put_of(file: str, text: str, *, mtime_ns: int = MTIME_NS, default: str = "personal") -> pages.Put:
    """What reconcile would put for a file of that text."""
    data = text.encode()
    kind = kind_of(file)
    row = FileRow(file, kind, stat_of(text, mtime_ns), READ_AT_NS, hashlib.sha256(data).hexdigest())
    if kind != "page":
        return row, None, None
    page = parse(PagePath.of_file(file), data)
    return row, page, rule_of(default, Declared.of(page))


def fill(index: Index, files: Mapping[str, str]) -> None:
    """Puts files, name and text, in one transaction."""
    with index.transaction() as tx:
        pages.put_all(tx, [put_of(file, text) for file, text in files.items()])


@contextmanager
def built(folder: Path, files: Mapping[str, str]) -> Iterator[Index]:
    """A new index in that folder, with these files in it."""
    folder.mkdir(exist_ok=True)
    index = Index.open(folder)
    try:
        fill(index, files)
        yield index
    finally:
        index.close()


def rows_of(index: Index) -> list[Row]:
    """All that the index says of the vault."""
    with index.reader() as reader:
        return list(dump(reader))


def paths_of(index: Index) -> list[str]:
    """The paths of all pages, sorted."""
    with index.reader() as reader:
        return sorted(row[0] for row in reader.execute("SELECT path FROM pages"))


def sees(*partitions: str) -> Visibility:
    """What a reader of plain pages in these partitions sees."""
    return Visibility(
        slices=frozenset(
            Slice(partition, category, sensitive=False)
            for partition in partitions
            for category in ("semantic", "episodic", "procedural")
        )
    )

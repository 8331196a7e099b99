"""Puts files and pages into the index and takes them out; knows what a scan must be compared with.

Every column follows from path, bytes, stat and context.yaml alone, so that the index equals a rebuild
whatever the order of changes was. Numbers of rows are local: they leave neither this room nor the process.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pcpd.index import fulltext, links
from pcpd.index.rows import (
    Declared,
    FileRow,
    alias_values,
    file_values,
    page_values,
    problem_values,
    property_values,
    tag_values,
)
from pcpd.pages.changes import Known, Stat
from pcpd.pages.page import Page
from pcpd.pages.paths import lookup_key
from pcpd.pages.times import from_ns
from pcpd.policy.decide import Facts
from pcpd.sqlite import Reads, Transaction

Put = tuple[FileRow, Page | None, Facts | None]
"""A file to put: with its page and the page's facts, or without both."""

CHUNK = 500
"""Names in one statement: far below any limit on parameters."""

_PUT_FILE = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CLEAR = tuple(
    f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608 - names of our own tables
    for table, column in (
        ("pages", "id"),
        ("tags", "page"),
        ("aliases", "page"),
        ("properties", "page"),
        ("problems", "page"),
        ("links", "page"),
    )
)


def put_file(tx: Transaction, row: FileRow) -> None:
    """Puts a file that is no page, in place of whatever was known under its name."""
    put_all(tx, [(row, None, None)])


def put_page(tx: Transaction, row: FileRow, page: Page, facts: Facts) -> None:
    """Puts a page, in place of whatever was known under its file's name."""
    put_all(tx, [(row, page, facts)])


def put_all(tx: Transaction, puts: Sequence[Put]) -> None:
    """Puts many files and pages; where a file stands twice, the last one counts."""
    by_file = {put[0].file: put for put in puts}
    numbers = _numbers(tx, list(by_file))
    # Before the clearing: the numbers that are kept must not be given to new pages too.
    following = int(tx.execute("SELECT coalesce(max(id), 0) FROM pages").fetchone()[0])
    _clear(tx, list(numbers.values()))
    tx.executemany(_PUT_FILE, [file_values(row) for row, _, _ in by_file.values()])
    pages = []
    for file, (row, page, facts) in by_file.items():
        if page is not None and facts is not None:
            following += file not in numbers
            pages.append((numbers.get(file, following), row, page, facts))
    _insert_pages(tx, sorted(pages, key=lambda page: page[0]))


def touch(tx: Transaction, file: str, stat: Stat, read_at_ns: int) -> None:
    """Notes that a known file was read again, with that stat, and holds the bytes that are known."""
    row = file_row(tx, file)
    if row is None:
        return
    tx.execute(_PUT_FILE, file_values(FileRow(file, row.kind, stat, read_at_ns, row.version, row.note)))
    tx.executemany(
        "UPDATE pages SET updated = ?1 WHERE id = ?2 AND NOT is_dated AND updated <> ?1",
        [(from_ns(stat.mtime_ns), number) for number in _numbers(tx, [file]).values()],
    )


def remove(tx: Transaction, *files: str) -> None:
    """Forgets files, and the pages in them. Names that are not known are left alone."""
    _clear(tx, list(_numbers(tx, files).values()))
    tx.executemany("DELETE FROM files WHERE file = ?", [(file,) for file in files])


def reclass(tx: Transaction, rule: Callable[[Declared], Facts]) -> int:
    """Remakes what context.yaml decides of every page, by the rule that puts use; gives how many changed."""
    rows = tx.execute(
        "SELECT id, path, type, declared, sensitivity, review_state, is_conversation,"
        " partition, category, hidden FROM pages"
    )
    changed = []
    for number, path, type_, declared, sensitivity, review_state, is_conversation, *before in rows:
        facts = rule(Declared(path, type_, declared, sensitivity, review_state, bool(is_conversation)))
        after = [facts.partition, facts.category, int(facts.hidden)]
        if after != before:
            changed.append((*after, number))
    tx.executemany("UPDATE pages SET partition = ?, category = ?, hidden = ? WHERE id = ?", changed)
    return len(changed)


def each_known(reads: Reads) -> Iterator[tuple[str, Known]]:
    """Gives every file of the index as it was when last read, one by one: what a scan is compared with."""
    rows = reads.execute("SELECT file, size, mtime_ns, ctime_ns, inode, mode, wide, read_at_ns FROM files")
    rows.row_factory = None
    # Each start asks this of every file: making the tuples directly takes half the time of calling their types.
    new: Callable[..., Any] = tuple.__new__
    for file, size, mtime_ns, ctime_ns, inode, mode, wide, read_at_ns in rows:
        stat = json.loads(wide) if wide else (size, mtime_ns, ctime_ns, inode, mode)
        yield file, new(Known, (new(Stat, stat), read_at_ns))


def known(reads: Reads) -> dict[str, Known]:
    """Gives what `each_known` gives, all at once."""
    return dict(each_known(reads))


def known_below(reads: Reads, folder: str) -> dict[str, Known]:
    """Gives the files below one folder, as `known` does for all."""
    rows = reads.execute(
        "SELECT file FROM files WHERE file > ? AND file < ?", (f"{folder}/", f"{folder}0")
    ).fetchall()
    found = ((file, file_row(reads, file)) for (file,) in rows)
    return {file: Known(row.stat, row.read_at_ns) for file, row in found if row is not None}


def file_row(reads: Reads, file: str) -> FileRow | None:
    """Gives one file as it was when last read, or None."""
    row = reads.execute(
        "SELECT kind, size, mtime_ns, ctime_ns, inode, mode, wide, read_at_ns, lower(hex(version)), note"
        " FROM files WHERE file = ?",
        (file,),
    ).fetchone()
    if row is None:
        return None
    kind, *stat, wide, read_at_ns, version, note = row
    return FileRow(file, kind, Stat(*json.loads(wide)) if wide else Stat(*stat), read_at_ns, version, note)


def versions(reads: Reads, files: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Gives version and note, as in `FileRow`, of those of the files that are known."""
    found: dict[str, tuple[str, str]] = {}
    for chunk in chunks(files):
        marks = ", ".join("?" * len(chunk))
        for file, version, note in reads.execute(
            f"SELECT file, version, note FROM files WHERE file IN ({marks})",  # noqa: S608 - only question marks
            chunk,
        ):
            found[file] = (version.hex(), note)
    return found


def count_files(reads: Reads) -> int:
    """Gives how many files are known, pages or not."""
    return int(reads.execute("SELECT count(*) FROM files").fetchone()[0])


def meta(reads: Reads, key: str) -> str | None:
    """Gives a fact about the whole index, or None."""
    row = reads.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(tx: Transaction, key: str, value: str) -> None:
    """Notes a fact about the whole index."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cuts a long list so that one statement can take a part."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _numbers(reads: Reads, files: Sequence[str]) -> dict[str, int]:
    """Gives the numbers of the pages in these files."""
    wanted = set(files)
    found: dict[str, int] = {}
    for chunk in chunks([lookup_key(file[: -len(".md")]) for file in files if file.endswith(".md")]):
        marks = ", ".join("?" * len(chunk))
        for path, number in reads.execute(
            f"SELECT path, id FROM pages WHERE key IN ({marks})",  # noqa: S608 - only question marks
            chunk,
        ):
            if f"{path}.md" in wanted:
                found[f"{path}.md"] = number
    return found


def _clear(tx: Transaction, numbers: Sequence[int]) -> None:
    """Takes everything that hangs on these rows out of the tables of pages."""
    if not numbers:
        return
    # In order: a number below the last one makes FTS5 write out what it has gathered, as a segment of its own.
    for number in sorted(numbers):
        fulltext.remove(tx, number)
    rows = [(number,) for number in numbers]
    for statement in _CLEAR:
        tx.executemany(statement, rows)


def _insert_pages(tx: Transaction, pages: Sequence[tuple[int, FileRow, Page, Facts]]) -> None:
    tx.executemany(
        f"INSERT INTO pages VALUES ({', '.join('?' * 26)})",  # noqa: S608 - only question marks
        [page_values(*page) for page in pages],
    )
    numbered = [(number, page) for number, _, page, _ in pages]
    tx.executemany("INSERT INTO tags VALUES (?, ?, ?)", [r for n, p in numbered for r in tag_values(n, p)])
    tx.executemany(
        "INSERT INTO aliases VALUES (?, ?, ?)", [r for n, p in numbered for r in alias_values(n, p)]
    )
    tx.executemany(
        "INSERT INTO properties VALUES (?, ?, ?)", [r for n, p in numbered for r in property_values(n, p)]
    )
    tx.executemany(
        "INSERT INTO problems VALUES (?, ?, ?, ?, ?)", [r for n, p in numbered for r in problem_values(n, p)]
    )
    links.put(tx, numbered)
    fulltext.put_many(tx, numbered)

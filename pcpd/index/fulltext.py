"""The full text of pages: puts it into the index and takes it out again. Asking it is `search`'s.

The text stands once (`texts`); two contentless FTS5 tables find it (schema/002_fulltext.sql says what each is
for). A row of theirs is taken out by giving FTS5 the text that was put, so `tokens.prepared` must answer alike
at both times: `VERSION` names what that hangs on, and the index is made anew when it differs.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pcpd.index import tokens
from pcpd.pages.model import PCP_KEYS
from pcpd.pages.page import Page
from pcpd.sqlite import Reads, Transaction

VERSION = f"1-{unicodedata.unidata_version}"
"""Names the form of the rows; belongs into what `store` compares when it opens an index."""

MERGE_PAGES = 16
"""Pages of an FTS5 table that one step of merging writes: 10 to 25 ms, at the end of a large merge as well."""

_CHUNK = 500
_SEGMENTS = 8
_BULK = 50  # pages at once: a scan, not an edit
_NO_TEXT = PCP_KEYS | {"aliases", "cssclasses"}  # keys whose values are indexed elsewhere, or say nothing


def put(tx: Transaction, page_id: int, page: Page) -> None:
    """Indexes the text of a page whose row stands in `pages` and which has no text here yet."""
    put_many(tx, [(page_id, page)])


def put_many(tx: Transaction, pages: Sequence[tuple[int, Page]]) -> None:
    """Indexes the texts of many pages at once, as `put` does for one."""
    with _merging(tx, is_on=len(pages) >= _BULK):
        _put_many(tx, pages)


def _put_many(tx: Transaction, pages: Sequence[tuple[int, Page]]) -> None:
    numbers = [number for number, _ in pages]
    shown = [_columns(page) for _, page in pages]
    split = [tuple(map(tokens.prepared, columns)) for columns in shown]
    tx.executemany(
        "INSERT INTO stems (rowid, title, tags, extra, body) VALUES (?, ?, ?, ?, ?)",
        [(number, *columns) for number, columns in zip(numbers, split, strict=True)],
    )
    tx.executemany(
        "INSERT INTO words (rowid, head, body) VALUES (?, ?, ?)",
        [(number, *_words(columns)) for number, columns in zip(numbers, split, strict=True)],
    )
    sizes = _sizes(tx, numbers)
    classes = _classes(tx, numbers)
    tx.executemany(
        "INSERT INTO texts (page, title, tags, extra, body) VALUES (?, ?, ?, ?, ?)",
        [(number, *columns) for number, columns in zip(numbers, shown, strict=True)],
    )
    tx.executemany(
        "INSERT INTO lengths (page, class, tokens) VALUES (?, ?, ?)",
        [(number, classes[number], sizes[number]) for number in numbers],
    )
    for kind in set(classes.values()):
        inside = [sizes[number] for number in numbers if classes[number] == kind]
        _count(tx, kind, len(inside), sum(inside))


def remove(tx: Transaction, page_id: int) -> None:
    """Takes a page's text out; a page that has none is left alone."""
    row = tx.execute("SELECT title, tags, extra, body FROM texts WHERE page = ?", (page_id,)).fetchone()
    if row is None:
        return
    columns = tuple(map(tokens.prepared, row))
    kind, size = tx.execute("SELECT class, tokens FROM lengths WHERE page = ?", (page_id,)).fetchone()
    tx.execute("DELETE FROM lengths WHERE page = ?", (page_id,))
    _count(tx, kind, -1, -size)
    tx.execute(
        "INSERT INTO stems (stems, rowid, title, tags, extra, body) VALUES ('delete', ?, ?, ?, ?, ?)",
        (page_id, *columns),
    )
    tx.execute(
        "INSERT INTO words (words, rowid, head, body) VALUES ('delete', ?, ?, ?)", (page_id, *_words(columns))
    )
    tx.execute("DELETE FROM texts WHERE page = ?", (page_id,))


def merge_step(tx: Transaction, pages: int = MERGE_PAGES) -> bool:
    """Merges some of what single updates left behind; tells whether there may be more. For idle times.

    A step costs 10 to 25 ms, whatever the size of the index.
    """
    steps = [_merge(tx, table, pages) for table in ("stems", "words")]
    return any(steps)


def optimize(tx: Transaction) -> None:
    """Merges each table into one segment: after a rebuild. Takes about a second for 10,000 pages."""
    for table in ("stems", "words"):
        tx.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - two fixed names


def dump(conn: Reads) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Gives table and row of everything here, in an order and form that a rebuild must give as well."""
    for row in conn.execute(
        "SELECT p.path, t.title, t.tags, t.extra, t.body, l.tokens, c.partition, c.category, c.sensitivity,"
        " c.hidden FROM texts t JOIN pages p ON p.id = t.page JOIN lengths l ON l.page = t.page"
        " JOIN classes c ON c.id = l.class ORDER BY p.path"
    ):
        yield "texts", tuple(row)
    for row in conn.execute(
        "SELECT partition, category, sensitivity, hidden, pages, tokens FROM classes WHERE pages > 0"
        " ORDER BY partition, category, sensitivity, hidden"
    ):
        yield "classes", tuple(row)
    for row in conn.execute("SELECT term, doc, cnt FROM stems_terms ORDER BY term"):
        yield "stems", tuple(row)
    for row in conn.execute("SELECT term, doc, cnt FROM words_terms ORDER BY term"):
        yield "words", tuple(row)


@contextmanager
def _merging(tx: Transaction, *, is_on: bool) -> Iterator[None]:
    """Lets FTS5 merge as it goes, for bulk: a fifth more work, but 250 segments would be slow to search at
    once, and ten times dearer to merge in steps afterwards.
    """
    if is_on:
        _set_automerge(tx, _SEGMENTS)
    yield
    if is_on:
        _set_automerge(tx, 0)


def _set_automerge(tx: Transaction, segments: int) -> None:
    for table in ("stems", "words"):
        tx.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('automerge', ?)", (segments,))  # noqa: S608


def _columns(page: Page) -> tuple[str, str, str, str]:
    """Gives what is searched of a page: title; tags and aliases; file name and further keys' values; text."""
    extra = [value for key, value in page.properties if key.partition(".")[0] not in _NO_TEXT]
    if page.path.name != page.title:
        extra.insert(0, page.path.name)
    return page.title, "\n".join((*page.tags, *page.aliases)), "\n".join(extra), page.body


def _words(columns: tuple[str, ...]) -> tuple[str, str]:
    title, tags, extra, body = columns
    return f"{title}\n{tags}", f"{extra}\n{body}"


def _sizes(tx: Transaction, numbers: Sequence[int]) -> dict[int, int]:
    """Gives the tokens of each row as FTS5 counted them: its record holds one varint a column."""
    return {
        number: sum(
            _varints(tx.execute("SELECT sz FROM stems_docsize WHERE id = ?", (number,)).fetchone()[0])
        )
        for number in numbers
    }


def _count(tx: Transaction, kind: int, pages: int, size: int) -> None:
    """Adds to what a class holds.

    No trigger does this: a statement with triggers makes FTS5 write out what it has gathered, as a segment of its
    own, which costs a scan a tenth of its time.
    """
    tx.execute("UPDATE classes SET pages = pages + ?, tokens = tokens + ? WHERE id = ?", (pages, size, kind))


def _varints(record: bytes) -> Iterator[int]:
    """Reads SQLite's variable-length integers (big end first, seven bits a byte)."""
    value = 0
    for byte in record:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0


def _classes(tx: Transaction, numbers: Sequence[int]) -> dict[int, int]:
    """Gives the class of each page, made where it is new."""
    facts: dict[int, tuple[object, ...]] = {}
    for start in range(0, len(numbers), _CHUNK):
        chunk = numbers[start : start + _CHUNK]
        marks = ", ".join("?" * len(chunk))
        for number, *row in tx.execute(
            f"SELECT id, partition, category, sensitivity, hidden FROM pages WHERE id IN ({marks})",  # noqa: S608
            chunk,
        ):
            facts[number] = tuple(row)
    tx.executemany(
        "INSERT OR IGNORE INTO classes (partition, category, sensitivity, hidden) VALUES (?, ?, ?, ?)",
        list(dict.fromkeys(facts.values())),
    )
    known = {
        tuple(row): number
        for number, *row in tx.execute("SELECT id, partition, category, sensitivity, hidden FROM classes")
    }
    return {number: known[row] for number, row in facts.items()}


def _merge(tx: Transaction, table: str, pages: int) -> bool:
    before = tx.execute("SELECT total_changes()").fetchone()[0]
    tx.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
    # FTS5 writes at least two rows when it merged anything.
    return bool(tx.execute("SELECT total_changes()").fetchone()[0] - before >= 2)

"""All that the index says of the vault, in one form and order; and how two indexes differ.

For the proof that index = rebuild. Left out: the numbers of rows, the times of reading, what is owed,
and notes about the index itself.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pcpd.index import fulltext, proposals
from pcpd.sqlite import Reads

Row = tuple[str, tuple[object, ...]]
"""A table's name and the values of one of its rows, those that order the table first."""

_FILES = "SELECT file, kind, size, lower(hex(version)), note FROM files ORDER BY file"
_PAGES = """
    SELECT path, key, tail, title, own_id, type, declared, partition, category, sensitivity, hidden,
        lifecycle, review_state, updated, is_dated, recorded_at, valid_from, valid_until, expires, importance,
        confidence, origin, author, is_conversation, problems
    FROM pages ORDER BY path
"""
_OF_PAGES = {
    "tags": "t.key, t.tag",
    "aliases": "t.tail, t.alias",
    "properties": "t.key, t.value",
    "problems": "t.seq, t.code, t.message, t.line",
    "links": "t.seq, t.kind, t.target, t.tail, t.exact, t.rel, t.heading, t.alias, t.line",
}

_KEY_LENGTHS = {
    "files": 1,
    "pages": 1,
    "tags": 2,
    "aliases": 2,
    "properties": 3,
    "problems": 2,
    "links": 2,
    "proposals": 1,
    "texts": 1,
    "classes": 4,
    "stems": 1,
    "words": 1,
}
_ORDER = {table: place for place, table in enumerate(_KEY_LENGTHS)}


class Difference(NamedTuple):
    """One row that two indexes do not both have alike. `what`: `missing`, `surplus` or `different` here."""

    table: str
    name: str
    what: str


def dump(reads: Reads) -> Iterator[Row]:
    """Gives every row, table by table."""
    for table, query in (("files", _FILES), ("pages", _PAGES)):
        for row in reads.execute(query):
            yield table, tuple(row)
    for table, columns in _OF_PAGES.items():
        for row in reads.execute(
            # A row whose page is gone would be a fault: it stands under no path.
            f"SELECT coalesce(p.path, ''), {columns} FROM {table} AS t"  # noqa: S608
            " LEFT JOIN pages AS p ON p.id = t.page ORDER BY 1, 2, 3"
        ):
            yield table, tuple(row)
    yield from proposals.dump(reads)
    yield from fulltext.dump(reads)


def differences(here: Reads, rebuilt: Reads) -> Iterator[Difference]:
    """Compares an index with a rebuild of the same vault, row by row, in little memory."""
    ours, theirs = dump(here), dump(rebuilt)
    our, their = next(ours, None), next(theirs, None)
    while our is not None or their is not None:
        if our is not None and (their is None or _key(our) < _key(their)):
            yield _difference(our, "surplus")
            our = next(ours, None)
        elif their is not None and (our is None or _key(their) < _key(our)):
            yield _difference(their, "missing")
            their = next(theirs, None)
        elif our is not None:
            if our != their:
                yield _difference(our, "different")
            our, their = next(ours, None), next(theirs, None)


def _key(row: Row) -> tuple[Any, ...]:
    table, values = row
    return (_ORDER[table], *values[: _KEY_LENGTHS[table]])


def _difference(row: Row, what: str) -> Difference:
    return Difference(row[0], str(row[1][0]), what)

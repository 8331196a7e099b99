"""The tables as a whole: counts, problems, clashes, what was left out."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pcpd.index.resolve import is_storable
from pcpd.index.visible import where
from pcpd.pages.page import Problem
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pages and attachments are known, and how many pages have problems or are hidden."""

    pages: int
    attachments: int
    problems: int
    hidden: int


class Closed(NamedTuple):
    """Pages that a reader does not see; `unread` are those whose front matter cannot be read.

    The latter count as sensitive, whatever their person wrote there.
    """

    pages: int
    unread: int


class Found(NamedTuple):
    """A problem and the file that it was found in."""

    file: str
    problem: Problem


def counts(reads: Reads) -> Counts:
    """Counts pages, other files, pages with problems, and pages that are proposed or rejected.

    What begins with a dot, such as `.pcp/context.yaml`, is none of the person's files.
    """
    pages, problems, hidden = reads.execute(
        "SELECT count(*), count(CASE WHEN problems > 0 THEN 1 END), coalesce(sum(hidden), 0) FROM pages"
    ).fetchone()
    files = reads.execute(
        "SELECT count(*) - (SELECT count(*) FROM files WHERE file >= '.' AND file < '/') FROM files"
    ).fetchone()[0]
    return Counts(pages, files - pages, problems, hidden)


def by_class(reads: Reads, visible: Visibility) -> dict[tuple[str, str], int]:
    """Counts the pages that a reader may see by partition and category; those without any are left out."""
    condition, values = where(visible)
    rows = reads.execute(
        "SELECT p.partition, p.category, sum(p.pages) FROM classes AS p"  # noqa: S608
        f" WHERE {condition} AND p.pages > 0 GROUP BY 1, 2 ORDER BY 1, 2",
        values,
    )
    return {(partition, category): pages for partition, category, pages in rows}


def closed(reads: Reads, visible: Visibility) -> Closed:
    """Counts the pages that a reader does not see, and tells apart those of which nobody said that."""
    condition, values = where(visible)
    is_unread = (
        "p.sensitivity = 'sensitive' AND EXISTS"
        " (SELECT 1 FROM problems AS b WHERE b.page = p.id AND b.code LIKE 'front-matter.%')"
    )
    row = reads.execute(
        f"SELECT count(*), count(CASE WHEN {is_unread} THEN 1 END) FROM pages AS p WHERE NOT {condition}",  # noqa: S608
        values,
    ).fetchone()
    return Closed(*row)


def categories(reads: Reads, paths: Iterable[str]) -> frozenset[str]:
    """Gives the categories of the pages at these paths."""
    wanted = [path for path in paths if is_storable(path)]
    rows = reads.execute(
        "SELECT DISTINCT category FROM pages WHERE key IN (SELECT value FROM json_each(?))"
        " AND path IN (SELECT value FROM json_each(?))",
        (json.dumps([lookup_key(path) for path in wanted]), json.dumps(wanted)),
    )
    return frozenset(category for (category,) in rows)


def problems(reads: Reads) -> Iterator[Found]:
    """Gives every problem of every page, by file."""
    for file, code, message, line in reads.execute(
        "SELECT p.path || '.md', b.code, b.message, b.line FROM problems AS b JOIN pages AS p ON p.id = b.page"
        " ORDER BY 1, b.seq"
    ):
        yield Found(file, Problem(code, message, line))


def left_out(reads: Reads) -> list[tuple[str, str]]:
    """Gives the files that were not read, and why, by name."""
    rows = reads.execute("SELECT file, note FROM files WHERE note <> '' ORDER BY file")
    return [(file, note) for file, note in rows]


def clashes(reads: Reads) -> list[tuple[str, ...]]:
    """Gives the paths that differ only by case or Unicode form, and those that share an id, in groups."""
    groups: dict[tuple[str, str], list[str]] = {}
    for kind, name, path in reads.execute(
        """
        SELECT 'key', key, path FROM pages
            WHERE key IN (SELECT key FROM pages GROUP BY key HAVING count(*) > 1)
        UNION ALL
        SELECT 'own id', own_id, path FROM pages
            WHERE own_id IN (SELECT own_id FROM pages WHERE own_id IS NOT NULL GROUP BY 1 HAVING count(*) > 1)
        ORDER BY 1, 2, 3
        """
    ):
        groups.setdefault((kind, name), []).append(path)
    return [tuple(paths) for paths in groups.values()]

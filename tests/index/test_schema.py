"""The schema says of every table what a row of it is."""

import re

from pcpd import sqlite
from pcpd.index import writer

TABLE = re.compile(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", re.MULTILINE)


def tables() -> list[tuple[str, str]]:
    """Every table with the comment that stands directly above it."""
    found = []
    for _, _, script in sqlite.scripts(writer.SCHEMA):
        lines = script.splitlines()
        for place, line in enumerate(lines):
            if match := TABLE.match(line):
                above = place
                # Twins of one line each may stand under one paragraph.
                while TABLE.match(lines[above - 1]):
                    above -= 1
                number = above
                while above and lines[above - 1].startswith("--"):
                    above -= 1
                found.append((match[1], "\n".join(lines[above:number])))
    return found


def test_each_table_has_its_paragraph() -> None:
    """What a row is, who writes it or what must hold: a sentence at least, with its full stop."""
    assert len(tables()) >= 10
    for table, comment in tables():
        assert len(comment) > 60, table
        assert comment.rstrip().endswith("."), table


def test_scripts_are_numbered_without_gaps_or_twins() -> None:
    """Their order is the order in which a database is laid out."""
    numbers = [number for number, _, _ in sqlite.scripts(writer.SCHEMA)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_version_follows_from_schema_and_format() -> None:
    """Nobody has to remember to raise a number when a table changes."""
    version = writer.schema_version()
    assert 0 < version < 2**31
    assert version == writer.schema_version()

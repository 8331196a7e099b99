"""A grant as SQL answers as a grant in words, page by page."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.index.visible import EVERYTHING, where
from pcpd.policy.decide import Facts, Slice, Visibility

PARTITIONS = ("personal", "work", "semantic", "", "o'brien", "a b")
CATEGORIES = ("semantic", "episodic", "procedural", "profile", "conversation")

facts = st.builds(
    Facts,
    path=st.just("a"),
    partition=st.sampled_from(PARTITIONS),
    category=st.sampled_from(CATEGORIES),
    sensitivity=st.sampled_from(("normal", "sensitive", "secret", "")),
    hidden=st.booleans(),
)
slices = st.builds(
    Slice, st.sampled_from(PARTITIONS), st.sampled_from(CATEGORIES), st.booleans(), hidden=st.booleans()
)
visibilities = st.builds(
    Visibility, everything=st.booleans(), slices=st.frozensets(slices, max_size=12), hidden=st.booleans()
)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """A table with the columns that access depends on."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE TABLE pages (partition TEXT, category TEXT, sensitivity TEXT, hidden INTEGER)"
        )
        yield connection


def may_see(visible: Visibility, page: Facts) -> bool:
    """The rule in words: some slice covers partition and category, sensitivity, and hidden pages where asked."""
    if visible.everything:
        return visible.hidden or not page.hidden
    return any(
        (part.partition, part.category) == (page.partition, page.category)
        and (part.sensitive or page.sensitivity == "normal")
        and (not page.hidden or (part.hidden and visible.hidden))
        for part in visible.slices
    )


def sql_says(database: sqlite3.Connection, visible: Visibility, pages: list[Facts]) -> list[bool]:
    """What the condition says of each page."""
    database.execute("DELETE FROM pages")
    database.executemany(
        "INSERT INTO pages VALUES (?, ?, ?, ?)",
        [(page.partition, page.category, page.sensitivity, page.hidden) for page in pages],
    )
    condition, values = where(visible)
    rows = database.execute(f"SELECT {condition} FROM pages AS p ORDER BY rowid", values)  # noqa: S608
    return [bool(row[0]) for row in rows]


@given(visibilities, st.lists(facts, max_size=20))
def test_the_sql_and_the_words_agree(
    database: sqlite3.Connection, visible: Visibility, pages: list[Facts]
) -> None:
    """For every grant and every page; an unknown sensitivity counts as sensitive."""
    assert sql_says(database, visible, pages) == [may_see(visible, page) for page in pages]


def test_no_grant_shows_nothing(database: sqlite3.Connection) -> None:
    """The default is that nothing is there."""
    assert sql_says(database, Visibility(), [Facts("a", "personal", "semantic", "normal")]) == [False]


def test_the_person_sees_everything(database: sqlite3.Connection) -> None:
    """Also what is sensitive or waits for review."""
    assert sql_says(database, EVERYTHING, [Facts("a", "x", "y", "sensitive", hidden=True)]) == [True]


def test_thousands_of_slices_fit(database: sqlite3.Connection) -> None:
    """A long access.yaml is no error."""
    many = frozenset(Slice(f"p{n}", "semantic", n % 2 == 0) for n in range(5_000))
    found = sql_says(database, Visibility(slices=many), [Facts("a", "p4999", "semantic", "normal")])
    assert found == [True]

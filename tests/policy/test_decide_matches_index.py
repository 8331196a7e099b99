"""A grant as SQL and a grant as a decision give the same answer for every page (architecture.md, `policy/`)."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from pcpd.index.visible import where
from pcpd.policy.decide import Facts, Principal, Visibility, decide, visibility
from pcpd.policy.grants import Access
from tests.policy import worlds
from tests.policy.worlds import ALL_FACTS, NOW


@pytest.fixture(scope="module")
def pages() -> Iterator[sqlite3.Connection]:
    """A table with one page for each combination of facts."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE pages (partition TEXT, category TEXT, sensitivity TEXT, hidden INTEGER) STRICT"
    )
    connection.executemany(
        "INSERT INTO pages VALUES (?, ?, ?, ?)",
        [(page.partition, page.category, page.sensitivity, page.hidden) for page in ALL_FACTS],
    )
    yield connection
    connection.close()


def seen(pages: sqlite3.Connection, view: Visibility) -> set[Facts]:
    """Gives the pages that the index would show."""
    condition, values = where(view)
    sql = f"SELECT partition, category, sensitivity, hidden FROM pages p WHERE {condition}"  # noqa: S608
    return {
        Facts("a/page", partition, category, sensitivity, bool(hidden))
        for partition, category, sensitivity, hidden in pages.execute(sql, values)
    }


@settings(max_examples=300)
@given(access=worlds.accesses, who=worlds.principals)
def test_the_index_shows_exactly_what_may_be_read(
    pages: sqlite3.Connection, access: Access, who: Principal
) -> None:
    """For any grants, principal and page, hidden and sensitive ones too."""
    wanted = {page for page in ALL_FACTS if decide(access, who, "read", page, NOW).allowed}
    assert seen(pages, visibility(access, who, NOW)) == wanted


@given(access=worlds.accesses, who=worlds.principals)
def test_leaving_proposals_out_takes_hidden_pages_away_and_nothing_else(
    pages: sqlite3.Connection, access: Access, who: Principal
) -> None:
    """What a normal search does with what a reader may see."""
    view = visibility(access, who, NOW)
    without = Visibility(view.everything, view.slices, hidden=False)
    assert seen(pages, without) == {page for page in seen(pages, view) if not page.hidden}

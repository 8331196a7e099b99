"""Reconciling looks at what is on disk: one bad file keeps no other from the index."""

import errno
import os
from typing import Any

import pytest

from pcpd.index import listing
from pcpd.index.visible import EVERYTHING
from pcpd.memory import doctor, read, reconcile
from pcpd.memory.keeper import Urgency
from tests.vaults import Opened
from tests.waiting import until


def test_a_page_that_may_not_be_read_is_listed_with_its_problem_and_stops_no_other(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses one file of a batch: the others are found, and it is named."""
    plain = os.open

    def guarded(path: Any, *arguments: Any, **options: Any) -> int:
        if path == "locked.md":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return plain(path, *arguments, **options)

    monkeypatch.setattr(os, "open", guarded)
    files = ["a.md", "locked.md", "z.md"]
    for file in files:
        opened.save(file, "zyxquartz\n")
    reconcile.reconcile(opened.memory, files, Urgency.EVENT)
    assert read.search(opened.memory, opened.person, "zyxquartz").total == 2
    problems = doctor.doctor(opened.memory)["problems"]
    assert [(each["file"], each["code"]) for each in problems] == [("locked.md", "page.unreadable")]
    agent = opened.agent("agent:claude", "read")
    assert {row.path for row in read.list_pages(opened.memory, agent).pages} == {"a", "z"}
    monkeypatch.undo()
    opened.save("locked.md", "zyxquartz and readable\n")
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").total == 3)


def test_hidden_and_sensitive_pages_are_rows_like_others_with_their_facts(opened: Opened) -> None:
    """Facts follow from the page and the context, and are columns."""
    opened.save("a.md", "---\nreview: {state: proposed}\npartition: work\nsensitivity: sensitive\n---\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 1)
    with opened.memory.index.reader() as conn:
        (row,) = listing.listing(conn, EVERYTHING).pages
    assert (row.partition, row.sensitivity, row.hidden, row.category) == (
        "work",
        "sensitive",
        True,
        "semantic",
    )

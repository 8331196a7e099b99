"""Promise 1: the folder is the truth. Delete every database, and a rescan brings back all but credentials."""

import shutil
from typing import Any

from pcpd.index.dump import dump
from pcpd.memory import read, write
from pcpd.pages.authorship import Proposed
from tests.vaults import Opened
from tests.waiting import until

PAGES: dict[str, str | bytes] = {
    "boiler.md": "---\ntitle: Boiler\ntags: [heat]\naliases: [Kessel]\nx_mine: 012\n---\n# H\n[[pump]] [[nowhere]]\n",
    "house/pump.md": "Pump for [the boiler](../boiler.md) and [[Kessel]].\n",
    "Reise/京都.md": "京都の庭 and 知识\n",
    "broken.md": "---\ntitle: [\n---\nstill text\n",
    "latin1.md": b"caf\xe9\n",
    "talks/one.md": "---\nx_session: {mode: wild}\n---\n**user**: hello\n",
    "draft.md": "---\nreview: {state: proposed}\n---\nproposed\n",
    "picture.png": b"\x89PNG",
    "talks/_topic.md": "---\nid: top_1\n---\n",
}


def rows(opened: Opened) -> list[tuple[Any, ...]]:
    """All logical rows of the index."""
    with opened.memory.index.reader() as conn:
        return list(dump(conn))


def test_without_any_database_a_rescan_brings_everything_back(opened: Opened) -> None:
    """Pages, text, links, properties, problems, proposals: the index made anew equals the one that was lost."""
    for file, text in PAGES.items():
        opened.save(file, text)
    agent = opened.agent("agent:claude", "read", "write")
    until(lambda: read.search(opened.memory, opened.person, "庭").results)
    until(lambda: read.list_pages(opened.memory, opened.person).total == 7)
    write.write_page(opened.memory, agent, "notes/new", Proposed("Written by an agent on [[boiler]]."))
    before = rows(opened)
    opened.close()
    shutil.rmtree(opened.base / "state")
    opened.open()
    assert rows(opened) == before
    assert len(before) > 30


def test_what_is_lost_with_the_databases_is_access_not_content(opened: Opened) -> None:
    """Grants lie in the configuration, tokens in the ledger: without the ledger, nobody gets in by an old token."""
    from pcpd.ledger import tokens
    from pcpd.memory import consent

    made = str(consent.create_token(opened.memory, "agent:claude")["token"])
    assert tokens.verify(opened.memory.ledger, made) == "agent:claude"
    opened.close()
    shutil.rmtree(opened.base / "state")
    opened.open()
    assert tokens.verify(opened.memory.ledger, made) is None

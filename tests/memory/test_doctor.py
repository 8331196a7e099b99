"""The doctor proves the index against the files; what an act came to is written down, whatever it came to."""

from collections.abc import Callable

import pytest

from pcpd.index import search as full_text
from pcpd.ledger import audit
from pcpd.memory import read, reconcile, write
from pcpd.memory.doctor import compare
from pcpd.memory.keeper import Urgency
from pcpd.pages.authorship import Proposed
from tests.vaults import Opened


def test_what_a_scan_holds_is_no_difference(make_opened: Callable[..., Opened]) -> None:
    """A scan under way keeps its rows in an open transaction, which readers do not see yet."""
    opened = make_opened(poll_s=3600).open()
    opened.save("note.md", "zyxquartz\n")
    held = reconcile.apply_on_keeper(opened.memory, [reconcile.look(opened.memory, "note.md")], Urgency.SCAN)
    assert held.put == 1
    assert compare(opened.memory) == []


def test_a_check_that_was_killed_leaves_no_text_behind(opened: Opened) -> None:
    """Its rebuild lies in the state folder, and goes at the next start."""
    left = opened.base / "state" / "v" / "doctor-killed"
    left.mkdir()
    (left / "index-1.sqlite").write_bytes(b"the text of all pages")
    opened.restart()
    assert not left.exists()


def test_one_call_leaves_one_row(opened: Opened) -> None:
    """Asking for a page's links is one act, though it looks at the page first."""
    agent = opened.agent("agent:claude", "read", "write")
    write.write_page(opened.memory, agent, "note", Proposed("see [[other]]\n"))
    read.links(opened.memory, agent, "note")
    assert [row.action for row in audit.rows(opened.memory.ledger)] == ["page_links", "write_page"]


def test_a_fault_of_ours_is_no_success_in_the_audit_trail(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody foresaw it, and the row says so."""
    agent = opened.agent("agent:claude", "read")

    def faulty(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(full_text, "search", faulty)
    with pytest.raises(RuntimeError):
        read.search(opened.memory, agent, "anything")
    assert [row.outcome for row in audit.rows(opened.memory.ledger)] == ["owner.fault"]

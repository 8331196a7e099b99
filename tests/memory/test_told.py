"""What cannot be found or versioned is named in `status`: nothing of a person's is passed over in silence."""

import os
import subprocess
from collections.abc import Callable

import pytest

from pcpd.errors import Conflict, Denied, PcpError
from pcpd.memory import write
from pcpd.memory.doctor import compare, status
from pcpd.pages.authorship import Proposed
from pcpd.pages.page import SIZE_LIMIT
from tests.vaults import Opened
from tests.waiting import until


def _notice(opened: Opened, topic: str) -> str:
    return "".join(each["text"] for each in status(opened.memory)["notices"] if each["topic"] == topic)


def _scan(opened: Opened) -> None:
    assert opened.running
    opened.running.steward.scan()


def test_names_that_are_not_utf8_are_told_until_they_are_changed(opened: Opened) -> None:
    """A page and a folder of an old system; the bytes stand as escapes."""
    root = os.fsencode(opened.root)
    try:
        os.makedirs(root + b"/d\xfcr/in")  # noqa: PTH103 - a name in bytes
    except OSError:
        pytest.skip("this file system takes no such names")
    with open(root + b"/\xe9t\xe9.md", "wb") as file:  # noqa: PTH123
        file.write(b"zyxsummer")
    _scan(opened)
    assert "2 files or folders are not UTF-8" in _notice(opened, "names")
    assert "\\xe9t\\xe9.md" in _notice(opened, "names")
    os.rename(root + b"/\xe9t\xe9.md", root + b"/ete.md")  # noqa: PTH104
    os.rename(root + b"/d\xfcr", root + b"/duer")  # noqa: PTH104
    _scan(opened)
    assert not _notice(opened, "names")


def test_folders_with_a_repository_of_their_own_are_told(opened: Opened) -> None:
    """A clone, a work tree's file, a broken one: pages are found, versions are theirs."""
    opened.save("clone/a.md", "zyxclone\n")
    subprocess.run(["git", "init", "-q", opened.root / "clone"], check=True)
    opened.save("tree/b.md", "zyxtree\n")
    opened.save("tree/.git", "gitdir: /nowhere\n")
    _scan(opened)
    assert "2 folders have a repository of their own (clone, tree)" in _notice(opened, "repositories")


def test_a_page_that_is_too_large_for_history_is_told(opened: Opened) -> None:
    """Its beginning is searchable; that no version of it is kept must not be silence."""
    opened.save("large.md", b"x " * (SIZE_LIMIT // 2) + b"y")
    until(lambda: status(opened.memory)["left_out"] == [("large.md", "too-large")])
    assert compare(opened.memory) == []
    opened.save("large.md", "now it is small\n")
    until(lambda: not status(opened.memory)["left_out"])
    assert opened.memory.history
    until(lambda: opened.memory.history and "large.md" in opened.memory.history.head_files())


def test_pages_are_versioned_whatever_the_limit_of_attachments_is(
    make_opened: Callable[..., Opened],
) -> None:
    """It is for other files: a page is a page up to 10 MiB."""
    opened = make_opened(ahead_s=3600).open()
    opened.memory.attachment_limit = 10
    opened.save("page.md", "more than ten bytes\n")
    opened.save("other.png", "more than ten bytes\n")
    until(lambda: opened.memory.history and "page.md" in opened.memory.history.head_files())
    until(lambda: status(opened.memory)["left_out"] == [("other.png", "too-large")])


def test_a_write_based_on_a_page_that_is_gone_is_stale(opened: Opened) -> None:
    """Else an agent brings back what the person removed meanwhile; without a version it makes a page."""
    agent = opened.agent("agent:claude", "read", "write")
    made = write.write_page(opened.memory, agent, "note", Proposed("text"))
    write.remove_page(opened.memory, opened.person, "note")
    with pytest.raises(Conflict) as stale:
        write.write_page(opened.memory, agent, "note", Proposed("more"), if_version=made.version)
    assert stale.value.code == "page.stale"
    assert not (opened.root / "note.md").exists()
    assert write.write_page(opened.memory, agent, "note", Proposed("more")).outcome == "created"


def test_who_may_not_write_learns_nothing_from_a_version(opened: Opened) -> None:
    """A page outside the grant and no page at all are refused alike."""
    agent = opened.agent("agent:reader", "read")
    write.write_page(opened.memory, opened.person, "hidden", Proposed("---\npartition: work\n---\n"))
    said: list[PcpError] = []
    for path in ("hidden", "absent"):
        with pytest.raises(Denied) as denied:
            write.write_page(opened.memory, agent, path, Proposed("x"), if_version="0" * 64)
        said.append(denied.value)
    assert (said[0].code, said[0].message, said[0].hint) == (said[1].code, said[1].message, said[1].hint)

"""A vault that suddenly looks empty is never taken for deletion; ordinary deletions pass."""

import shutil
import subprocess
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pcpd.memory import read, reconcile, upkeep
from pcpd.memory.doctor import status
from pcpd.memory.keeper import Urgency
from pcpd.memory.losses import is_mass
from tests.vaults import Opened
from tests.waiting import until


def fill(opened: Opened, count: int) -> None:
    """Writes pages and waits until all are found and committed."""
    for n in range(count):
        opened.save(f"notes/n{n}.md", f"zyxquartz {n}\n")
    until(lambda: found(opened) == count)
    until(lambda: status(opened.memory)["history"]["waiting"] == 0)


def found(opened: Opened) -> int:
    """How many of the pages a search finds."""
    return read.search(opened.memory, opened.person, "zyxquartz").total


def head_files(opened: Opened) -> int:
    """How many of the pages HEAD has."""
    listed = subprocess.run(
        ["git", "-C", str(opened.root), "ls-tree", "-r", "--name-only", "HEAD", "notes"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return len(listed.stdout.split())


def test_a_page_that_is_deleted_is_gone_from_search_and_from_the_next_commit(opened: Opened) -> None:
    """One of many: no question is asked."""
    fill(opened, 12)
    (opened.root / "notes/n0.md").unlink()
    until(lambda: found(opened) == 11)
    until(lambda: head_files(opened) == 11)


def test_a_mass_loss_waits_for_the_person_in_index_and_history(opened: Opened) -> None:
    """All pages vanish at once: they stay searchable and committed, and `status` says so, until accepted."""
    fill(opened, 15)
    shutil.rmtree(opened.root / "notes")
    until(lambda: status(opened.memory)["lost"])
    upkeep.full_scan(opened.memory)
    assert found(opened) + 15 - status(opened.memory)["lost"] >= 15 - 10
    assert any(notice["topic"] == "loss" for notice in status(opened.memory)["notices"])
    opened.running.committer.flush()  # type: ignore[union-attr]
    assert head_files(opened) >= 5
    upkeep.accept(opened.memory)
    until(lambda: found(opened) == 0)
    until(lambda: head_files(opened) == 0)


def test_a_loss_of_many_is_judged_as_one_however_it_is_told(make_opened: Callable[..., Opened]) -> None:
    """By a scan, by the end of a folder, or file by file: no part of it passes as an ordinary deletion."""
    opened = make_opened(ahead_s=3600, poll_s=3600).open()
    memory = opened.memory
    files = {f"notes/n{number}.md" for number in range(300)}
    for file in files:
        opened.save(file, "zyxquartz\n")
    upkeep.full_scan(memory)
    opened.running.committer.flush()  # type: ignore[union-attr]
    (opened.root / "notes").rename(opened.base / "elsewhere")
    ways: tuple[Callable[[], reconcile.Reconciled], ...] = (
        lambda: reconcile.reconcile(memory, files, Urgency.EVENT, gone=frozenset(files)),
        lambda: upkeep.folder_scan(memory, "notes"),
        lambda: upkeep.full_scan(memory),
    )
    for tell in ways:
        assert tell().held == 300
        assert status(memory)["lost"] == found(opened) == 300
    assert upkeep.accept(memory) == {"accepted": 300, "removed": 300}
    assert (status(memory)["lost"], found(opened)) == (0, 0)
    assert status(memory)["index"]["in_step"]


def test_pages_that_come_back_are_no_loss_any_more(opened: Opened) -> None:
    """A disk that was unplugged and plugged in again leaves nothing to accept."""
    fill(opened, 15)
    (opened.root / "notes").rename(opened.base / "elsewhere")
    until(lambda: status(opened.memory)["lost"])
    (opened.base / "elsewhere").rename(opened.root / "notes")
    until(lambda: not status(opened.memory)["lost"])
    until(lambda: found(opened) == 15)


def test_a_loss_that_head_shares_is_a_deletion(opened: Opened) -> None:
    """`git rm` and a commit by hand, or another branch: the person has said so already."""
    fill(opened, 15)
    git = ["git", "-C", str(opened.root), "-c", "user.name=Sam", "-c", "user.email=sam@example.org"]
    subprocess.run([*git, "rm", "-rq", "notes"], check=True)
    subprocess.run([*git, "commit", "-qm", "all gone"], check=True)
    until(lambda: (upkeep.full_scan(opened.memory), found(opened) == 0)[1])
    assert not status(opened.memory)["lost"]


def test_a_vault_whose_root_vanished_keeps_its_index(opened: Opened) -> None:
    """Unmounted, renamed or replaced: said in `status`, nothing removed; back again: in step again."""
    fill(opened, 3)
    opened.root.rename(opened.base / "away")
    opened.running.steward.scan()  # type: ignore[union-attr]
    assert any(notice["topic"] == "vault" for notice in status(opened.memory)["notices"])
    assert found(opened) == 3
    (opened.base / "away").rename(opened.root)
    # The watcher may have seen its folder go, and is started anew by the steward's own thread.
    opened.running.steward.request_scan("it is back")  # type: ignore[union-attr]
    until(lambda: status(opened.memory)["index"]["in_step"])


@given(st.integers(0, 200), st.integers(0, 200))
def test_losing_everything_is_always_a_mass_loss_and_one_page_never(lost: int, known: int) -> None:
    """Whatever the size of the vault, but for a vault of one page."""
    assert is_mass(lost, lost) == (lost >= 2)
    assert not is_mass(1, max(known, 2))
    assert not (is_mass(lost, known) and lost < min(10, known))

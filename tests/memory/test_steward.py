"""The steward: what the watcher misses is found by a scan, and what is wrong with watching is said and mended."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pcpd.errors import Unavailable
from pcpd.memory import doctor, read, reconcile
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.memory.steward import GAP_S, Beat
from tests.vaults import Opened
from tests.waiting import until


def found(opened: Opened, word: str) -> int:
    """How many pages hold a word."""
    return read.search(opened.memory, opened.person, word).total


def test_a_dead_watcher_is_said_at_once_and_mended_by_the_heartbeat(opened: Opened) -> None:
    """`status` is not green while changes go unnoticed; afterwards everything is found again."""
    steward = opened.running.steward  # type: ignore[union-attr]
    steward._watch.stop()
    assert not doctor.status(opened.memory)["index"]["in_step"]
    assert any(notice["topic"] == "watcher" for notice in doctor.status(opened.memory)["notices"])
    opened.save("missed.md", "zyxquartz\n")
    steward.request_scan("the heartbeat came")
    until(lambda: found(opened, "zyxquartz") == 1)
    until(lambda: doctor.status(opened.memory)["index"]["in_step"])
    opened.save("seen.md", "tealharbor\n")
    until(lambda: found(opened, "tealharbor") == 1)


def test_a_fault_in_one_change_does_not_end_watching(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher's thread lives on, and a scan brings in what failed."""
    failed = threading.Event()
    plain = reconcile.reconcile

    def faulty(*arguments: object, **options: object) -> object:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a fault of ours")
        return plain(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(reconcile, "reconcile", faulty)
    opened.save("note.md", "zyxquartz\n")
    until(lambda: found(opened, "zyxquartz") == 1)
    assert [error.code for error in opened.failures] == ["owner.fault"]
    opened.failures.clear()


def test_an_owner_that_ends_waits_for_no_scan(
    make_opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan of many files ends at its next slice; the next start brings in the rest."""
    opened = make_opened().open(scan=False)
    for number in range(1_000):
        (opened.root / f"n{number}.md").write_text("zyxquartz\n")
    steward = opened.running.steward  # type: ignore[union-attr]
    looked: list[str] = []
    begun, go_on = threading.Event(), threading.Event()
    plain = reconcile.look

    def slow(memory: Memory, file: str) -> reconcile.Finding:
        looked.append(file)
        begun.set()
        assert go_on.wait(30)
        return plain(memory, file)

    with monkeypatch.context() as patch, ThreadPoolExecutor() as pool:
        patch.setattr(reconcile, "look", slow)
        scanned = pool.submit(steward.scan)
        assert begun.wait(30)
        steward.close()
        go_on.set()
        with pytest.raises(Unavailable):
            scanned.result(30)
    assert len(looked) < 1_000
    opened.restart()
    assert found(opened, "zyxquartz") == 1_000


def test_changed_ignore_rules_take_effect_both_ways_without_a_restart(opened: Opened) -> None:
    """A page goes when its folder is ignored, and comes back when it is not."""
    opened.save("private/diary.md", "zyxquartz\n")
    until(lambda: found(opened, "zyxquartz") == 1)
    opened.save(".pcpignore", "private/\n")
    until(lambda: found(opened, "zyxquartz") == 0)
    assert (opened.root / "private/diary.md").exists()
    opened.save(".pcpignore", "\n")
    until(lambda: found(opened, "zyxquartz") == 1)


def test_a_changed_context_reclasses_pages_at_once(opened: Opened) -> None:
    """Another default partition: pages that name none move there, and a grant for the old one sees nothing."""
    opened.save("note.md", "zyxquartz\n")
    until(lambda: found(opened, "zyxquartz") == 1)
    agent = opened.agent("agent:claude", "read")
    assert read.search(opened.memory, agent, "zyxquartz").total == 1
    context = opened.root / ".pcp" / "context.yaml"
    opened.save(".pcp/context.yaml", context.read_text().replace("name: personal", "name: other"))
    until(lambda: read.search(opened.memory, agent, "zyxquartz").total == 0)
    assert doctor.compare(opened.memory) == []


def test_a_context_that_changed_while_no_owner_ran_reclasses_pages(opened: Opened) -> None:
    """As a pull does: what agents may see by the new one is what the index says after the start."""
    opened.save("note.md", "zyxquartz\n")
    opened.save("me.md", "zyxquartz, profile\n")
    until(lambda: found(opened, "zyxquartz") == 2)
    opened.close()
    file = opened.root / ".pcp" / "context.yaml"
    file.write_text(file.read_text().replace("personal", "work") + "profile: me\n")
    opened.open()
    agent = opened.agent("agent:claude", "read", partition="personal")
    assert read.search(opened.memory, agent, "zyxquartz").total == 0
    assert (
        read.search(opened.memory, opened.agent("agent:bob", "read", partition="work"), "zyxquartz").total
        == 2
    )
    assert doctor.compare(opened.memory) == []


def test_a_bad_context_changes_nothing_and_is_said(opened: Opened) -> None:
    """The last good one stays in force."""
    before = opened.memory.context
    opened.save(".pcp/context.yaml", "id: [\n")
    until(lambda: "context" in {notice["topic"] for notice in doctor.status(opened.memory)["notices"]})
    assert opened.memory.context == before


def test_a_folder_that_is_moved_in_with_its_pages_is_found(opened: Opened) -> None:
    """One event for the folder, none for its files."""
    outside = opened.base / "outside"
    (outside / "deep").mkdir(parents=True)
    for number in range(20):
        (outside / "deep" / f"n{number}.md").write_text("zyxquartz\n")
    outside.rename(opened.root / "moved in")
    until(lambda: found(opened, "zyxquartz") == 20)
    shutil.rmtree(opened.root / "moved in" / "deep")
    until(lambda: len(opened.memory.losses.held) or found(opened, "zyxquartz") < 20)


def test_polling_finds_what_events_would(make_opened: Callable[..., Opened]) -> None:
    """On a network mount, where no events come: a save is found, a deletion too."""
    opened = make_opened(poll_s=0.05).open()
    assert opened.running is not None
    assert opened.running.steward.mode == "polling"
    path = opened.save("note.md", "zyxquartz\n")
    until(lambda: found(opened, "zyxquartz") == 1)
    path.unlink()
    until(lambda: found(opened, "zyxquartz") == 0)


def test_sleep_and_clock_jumps_are_gaps_and_a_busy_hour_is_none() -> None:
    """The two clocks went apart: something may have been missed."""
    begin = Beat(wall=1000.0, monotonic=50.0)
    assert begin.gap_to(Beat(4600.0, 3650.0)) == 0
    assert begin.gap_to(Beat(4600.0, 51.0)) > GAP_S
    assert begin.gap_to(Beat(-5000.0, 51.0)) > GAP_S


def test_a_changed_time_stamp_alone_is_no_change(opened: Opened) -> None:
    """`touch` makes no index work and no commit."""
    path = opened.save("note.md", "zyxquartz\n")
    until(lambda: doctor.status(opened.memory)["history"]["waiting"] == 0)
    applied = opened.memory.applied
    path.touch()
    reconcile.reconcile(opened.memory, ["note.md"], Urgency.EVENT)
    assert opened.memory.applied == applied
    assert doctor.status(opened.memory)["history"]["waiting"] == 0

"""The audit trail as it is told: all of it to the person, its own acts to an agent."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pcpd.errors import Denied, Invalid, NotFound, PcpError, Usage
from pcpd.ledger import audit
from pcpd.memory import doctor, read, strangers, trail, write
from pcpd.memory.memory import Caller
from pcpd.memory.trail import AuditEntry, AuditList, AuditQuery
from pcpd.pages.authorship import Proposed
from pcpd.pages.times import to_z
from pcpd.policy.grants import CATEGORIES, Grant
from tests.vaults import Opened
from tests.waiting import until

ALL = AuditQuery()


@pytest.fixture
def busy(opened: Opened) -> Opened:
    """A vault with two pages, in which two agents were at work."""
    opened.save("boiler.md", "Gas or heat pump?\n")
    opened.save("secret.md", "---\npartition: work\n---\nPlan.\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    opened.memory.access.grant(Grant("agent:a", ("personal", "work"), CATEGORIES, ("read", "write")))
    a, b = opened.agent("agent:a"), replace(opened.agent("agent:b", "read"), channel="http")
    read.read_page(opened.memory, a, "boiler")
    read.read_page(opened.memory, a, "secret")
    with pytest.raises(NotFound):
        read.read_page(opened.memory, b, "secret")
    read.read_page(opened.memory, b, "boiler")
    write.write_page(opened.memory, a, "new", Proposed("Text.\n"))
    return opened


def look(
    opened: Opened, caller: Caller | None = None, asked: AuditQuery = ALL, **options: object
) -> AuditList:
    """What a caller is told; the person where none is named."""
    return trail.rows(opened.memory, caller or opened.person, asked, **options)  # type: ignore[arg-type]


def brief(rows: tuple[AuditEntry, ...]) -> list[tuple[str, str, str, tuple[str | None, ...]]]:
    """Who did what with which pages, and how it ended."""
    return [(row.principal, row.action, row.outcome, row.paths) for row in rows]


def test_the_person_sees_every_row_with_the_paths_of_its_pages(busy: Opened) -> None:
    """Newest first, with the opaque numbers beside."""
    told = look(busy)
    assert brief(told.rows) == [
        ("agent:a", "write_page", "ok", ("new",)),
        ("agent:b", "read_page", "ok", ("boiler",)),
        ("agent:b", "read_page", "page.not-found", ("secret",)),
        ("agent:a", "read_page", "ok", ("secret",)),
        ("agent:a", "read_page", "ok", ("boiler",)),
    ]
    assert [row.object_ids for row in told.rows] == [(3,), (1,), (2,), (2,), (1,)]
    assert told.rows[1].channel == "http"
    assert told.cursor is None
    assert look(busy) == told  # a look of the person's own is no act of an agent


def test_an_erased_page_leaves_a_number_without_a_path(busy: Opened) -> None:
    """The trail stays whole and no longer tells which page it was."""
    audit.forget_objects(busy.memory.ledger, ["secret"])
    assert look(busy).rows[3].paths == (None,)
    assert trail.verify(busy.memory).ok


def test_an_agent_sees_its_own_rows_alone(busy: Opened) -> None:
    """Without the numbers, which would tell how much others do; whoever it asks for."""
    a = busy.agent("agent:a")
    told = look(busy, a)
    assert {row.principal for row in told.rows} == {"agent:a"}
    assert len(told.rows) == 3
    assert look(busy, a, AuditQuery(principal="agent:b")).rows == ()
    assert look(busy, a, AuditQuery(principal="agent:a", outcome="refused")).rows == ()
    assert {row.object_ids for row in told.rows} == {()}
    said = json.dumps(asdict(look(busy, a)))
    numbers = {row.id for row in audit.rows(busy.memory.ledger)}
    assert not any(number in said for number in numbers)
    assert "aud_" not in said


def test_an_agents_ids_and_positions_tell_nothing_of_what_others_did(busy: Opened) -> None:
    """Two rows next to each other, and two with a thousand between them, look alike; an id stays what it is."""
    a = busy.agent("agent:a")
    ids = [row.id for row in look(busy, a).rows]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[\w-]{22}", each) for each in ids)
    assert [row.id for row in look(busy, a).rows][1:] == ids
    assert not set(ids) & {row.id for row in look(busy, replace(a, channel="http")).rows[:1]}


def test_an_agent_sees_the_paths_that_it_may_see_today(busy: Opened) -> None:
    """That it did something once stays; the name of a page that was closed to it goes."""
    a = busy.agent("agent:a")
    busy.memory.access.revoke("agent:a")
    busy.memory.access.grant(Grant("agent:a", ("personal",), CATEGORIES, ("read",)))
    assert [row.paths for row in look(busy, a).rows] == [("new",), (), ("boiler",)]
    assert look(busy, a, AuditQuery(page="secret")).rows == ()
    assert [row.paths for row in look(busy, a, AuditQuery(page="boiler", action="read_page")).rows] == [
        ("boiler",)
    ]
    busy.memory.access.revoke("agent:a")
    assert {row.paths for row in look(busy, a).rows} == {()}


def test_an_agent_learns_of_no_page_from_the_rows_of_its_refusals(busy: Opened) -> None:
    """The person is told which page was refused; for the agent a page that is there is like one that is not."""
    b = busy.agent("agent:b")
    audit.record(
        busy.memory.ledger,
        [
            audit.AuditRow(
                "2026-11-30T12:00:00Z", "agent:b", "read_page", "mcp", "page.not-found", object_ids=ids
            )
            for ids in ((2,), ())
        ],
    )
    assert [row.paths for row in look(busy).rows[:2]] == [(), ("secret",)]
    told = [replace(row, id="") for row in look(busy, b).rows[:2]]
    assert told[0] == told[1]


def test_an_agents_look_is_an_act_and_a_persons_is_none(busy: Opened) -> None:
    """With the pages and categories that it was told of, and refused ones too."""
    a = busy.agent("agent:a")
    look(busy, a)
    with pytest.raises(Usage):
        look(busy, a, cursor="x", after="y")
    with pytest.raises(Invalid):
        look(busy, a, after="y")
    latest = look(busy).rows[:3]
    assert [(row.action, row.outcome) for row in latest] == [
        ("read_audit", "cursor.invalid"),
        ("read_audit", "audit.both-ways"),
        ("read_audit", "ok"),
    ]
    assert set(latest[2].paths) == {"new", "secret", "boiler"}
    assert latest[2].counts == {"results": 3}


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (AuditQuery(principal="agent:b"), [4, 3]),
        (AuditQuery(action="read_page"), [4, 3, 2, 1]),
        (AuditQuery(channel="http"), [4, 3]),
        (AuditQuery(outcome="refused"), [3]),
        (AuditQuery(outcome="page.not-found"), [3]),
        (AuditQuery(page="boiler"), [4, 1]),
        (AuditQuery(page="boiler.md", principal="agent:a"), [1]),
        (AuditQuery(page="no such page"), []),
        (AuditQuery(since="2020-01-01"), [5, 4, 3, 2, 1]),
        (AuditQuery(until="2020-01-01T00:00:00+02:00"), []),
        (AuditQuery(since="9999-01-01"), []),
    ],
    ids=str,
)
def test_rows_are_asked_for_by_what_they_say(busy: Opened, asked: AuditQuery, numbers: list[int]) -> None:
    """Pages by name, also those that are no more; times in any offset."""
    every = [row.id for row in look(busy).rows][::-1]
    assert [every.index(row.id) + 1 for row in look(busy, asked=asked).rows] == numbers


def test_a_page_that_was_removed_is_still_asked_for_by_its_path(busy: Opened) -> None:
    """Who read it while it was there is what the person wants to know."""
    write.remove_page(busy.memory, busy.person, "secret")
    assert brief(look(busy, asked=AuditQuery(page="secret")).rows) == [
        ("agent:b", "read_page", "page.not-found", ("secret",)),
        ("agent:a", "read_page", "ok", ("secret",)),
    ]


def test_a_time_that_is_none_is_refused(busy: Opened) -> None:
    """It is not taken for the beginning of the world."""
    with pytest.raises(Invalid) as caught:
        look(busy, asked=AuditQuery(since="yesterday"))
    assert caught.value.code == "time.invalid"


@pytest.mark.parametrize("who", ["person", "agent"])
def test_the_trail_is_listed_to_its_beginning_while_it_grows(busy: Opened, who: str) -> None:
    """By cursor, each row once, whatever is added meanwhile."""
    caller = busy.person if who == "person" else busy.agent("agent:a")
    everything = [row.id for row in look(busy, caller).rows]
    first = look(busy, caller, limit=2)
    found, cursor = [row.id for row in first.rows if row.id in everything], first.cursor
    while cursor is not None:
        read.list_pages(busy.memory, busy.agent("agent:b"))
        part = look(busy, caller, limit=2, cursor=cursor)
        found += [row.id for row in part.rows]
        cursor = part.cursor
    assert found == everything[len(everything) - len(found) :]
    assert found[-1] == everything[-1]


def test_the_trail_is_followed_from_a_position(busy: Opened) -> None:
    """Oldest first, in portions, each row once; what does not match is passed over."""
    a, b = busy.agent("agent:a"), busy.agent("agent:b")
    position = look(busy).position
    assert look(busy, after=position).rows == ()
    assert look(busy, after=position).position == position
    for _ in range(3):
        read.list_pages(busy.memory, a)
        read.recent(busy.memory, b)
    part = look(busy, after=position, limit=4)
    assert [row.action for row in part.rows] == ["list_pages", "recent_pages"] * 2
    rest = look(busy, after=part.position)
    assert [row.action for row in rest.rows] == ["list_pages", "recent_pages"]
    assert look(busy, after=rest.position).rows == ()
    of_b = look(busy, asked=AuditQuery(principal="agent:b"), after=position, limit=1)
    assert len(of_b.rows) == 1
    assert len(look(busy, asked=AuditQuery(principal="agent:b"), after=of_b.position).rows) == 2
    assert len(look(busy, after="").rows) == 11


def test_an_empty_trail_can_be_followed_from_its_beginning(opened: Opened) -> None:
    """Its position holds when the first row comes."""
    empty = look(opened)
    assert (empty.rows, empty.cursor) == ((), None)
    assert look(opened, after=empty.position).rows == ()
    read.list_pages(opened.memory, opened.agent("agent:a"))
    assert [row.action for row in look(opened, after=empty.position).rows] == ["list_pages"]


def test_positions_of_others_are_refused(busy: Opened) -> None:
    """As are made up ones, and those of another trail."""
    a = busy.agent("agent:a")
    for wrong in (
        look(busy).position,
        look(busy, busy.agent("agent:b")).position,
        "x",
        "0",
        "A" * 22,
        "ä" * 22,
    ):
        with pytest.raises(Invalid) as caught:
            look(busy, a, after=wrong)
        assert caught.value.code == "cursor.invalid"
    old = look(busy).position
    busy.close()
    for file in (busy.base / "state" / "v").glob("ledger.sqlite*"):
        file.unlink()
    busy.open()
    read.list_pages(busy.memory, busy.agent("agent:a"))
    with pytest.raises(Invalid):
        look(busy, after=old)


def test_whoever_follows_is_woken_by_each_batch(busy: Opened) -> None:
    """And no more once they have had enough."""
    woken: list[bool] = []
    unlisten = trail.listen(busy.memory, lambda: woken.append(True))
    read.list_pages(busy.memory, busy.agent("agent:a"))
    assert len(woken) == 1
    unlisten()
    read.list_pages(busy.memory, busy.agent("agent:a"))
    assert len(woken) == 1


def test_a_look_brings_out_refused_knocks(busy: Opened) -> None:
    """What was counted for over a minute is a row when the person looks."""
    clock = busy.memory.clock
    for _ in range(3):
        strangers.note(busy.memory, "http.no-token", channel="http")
    busy.memory.clock = replace(clock, monotonic=lambda: clock.monotonic() + strangers.EVERY_S)
    assert [row.counts["refused"] for row in look(busy, asked=AuditQuery(action="knock")).rows] == [2, 1]


def test_the_sum_tells_what_each_principal_did(busy: Opened) -> None:
    """For the person alone."""
    strangers.note(busy.memory, "http.no-token", channel="http")
    a, b, unknown = trail.summary(busy.memory, busy.person, ALL).principals
    assert (a.principal, a.reads, a.writes, a.refused, a.pages) == ("agent:a", 2, 1, 0, 3)
    assert (b.principal, b.reads, b.writes, b.refused, b.pages) == ("agent:b", 1, 0, 1, 1)
    assert (unknown.principal, unknown.refused) == ("unknown", 1)
    (one,) = trail.summary(busy.memory, busy.person, AuditQuery(page="secret", outcome="ok")).principals
    assert (one.principal, one.reads) == ("agent:a", 1)
    assert trail.summary(busy.memory, busy.person, AuditQuery(page="none")).principals == ()
    with pytest.raises(Denied):
        trail.summary(busy.memory, busy.agent("agent:a"), ALL)


def test_every_act_that_changes_pages_counts_as_a_write() -> None:
    """Whoever adds one names it in `CHANGES`."""
    source = Path(write.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r"once\(memory, caller, \"(\w+)\"", source)) == trail.CHANGES


def test_a_trail_that_was_edited_is_told(busy: Opened) -> None:
    """Each row by its number."""
    with busy.memory.ledger.transaction() as tx:
        tx.execute("UPDATE audit SET principal = 'agent:b' WHERE number = 2")
        tx.execute("DELETE FROM audit WHERE number = 4")
    found = trail.verify(busy.memory)
    assert [(fault.number, fault.what) for fault in found.faults] == [
        (2, "row 2 was edited, or put in from elsewhere"),
        (4, "row 4 is missing"),
    ]
    assert "audit" in {notice["topic"] for notice in doctor.status(busy.memory)["notices"]}


def test_doctor_looks_at_the_trail_too(busy: Opened) -> None:
    """When it looks deep; what it found stands in status as well."""
    assert "audit" not in {notice["topic"] for notice in doctor.doctor(busy.memory, deep=True)["notices"]}
    with busy.memory.ledger.transaction() as tx:
        tx.execute("UPDATE audit SET principal = 'agent:b' WHERE number = 2")
    assert "audit" in {notice["topic"] for notice in doctor.doctor(busy.memory, deep=True)["notices"]}


def test_errors_are_of_the_tree(busy: Opened) -> None:
    """Whatever is asked for, nothing but errors that can be told comes out."""
    for text in ("", "\0", "\udc80", "../..", "x" * 5000, "[[", "'; DROP TABLE audit"):
        for caller in (busy.person, busy.agent("agent:a")):
            for asked in (AuditQuery(page=text), AuditQuery(principal=text), AuditQuery(action=text)):
                try:
                    look(busy, caller, asked)
                except (PcpError, UnicodeEncodeError) as error:
                    assert isinstance(error, PcpError) or "\udc80" in text  # noqa: PT017
    assert trail.verify(busy.memory).ok


def test_old_rows_are_removed_by_the_person_and_that_is_told(busy: Opened) -> None:
    """Not those of the last day, and none of a trail that was tampered with: what shows that must stay."""
    memory = busy.memory
    with pytest.raises(PcpError) as young:
        trail.prune(memory, to_z(memory.clock.now()))
    assert young.value.code == "audit.too-young"
    assert trail.prune(memory, "2020-01-01") == 0
    row = trail.rows(memory, busy.person, AuditQuery()).rows[0]
    assert (row.action, row.channel, dict(row.counts)) == ("prune_audit", "management", {"removed": 0})
    with memory.ledger.transaction() as tx:
        tx.execute("UPDATE audit SET principal = 'agent:z' WHERE number = 1")
    with pytest.raises(PcpError) as tampered:
        trail.prune(memory, "2020-01-01")
    assert tampered.value.code == "audit.tampered"

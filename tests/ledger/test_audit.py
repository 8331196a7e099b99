"""The audit trail: rows in order, without content, in a chain that shows what was done to it."""

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pcpd.errors import Broken
from pcpd.ledger import audit, trail
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.ledger.ledger import Ledger
from pcpd.ledger.proof import CHUNK, verify_chain
from tests.ledger.conftest import Clock

ROW = AuditRow(
    at="2026-11-30T12:00:00Z",
    principal="agent:claude",
    action="search_memory",
    channel="mcp",
    outcome="ok",
    categories=("semantic", "profile"),
    object_ids=(1, 2),
    counts={"results": 2, "total": 20},
    duration_ms=1.25,
)


def rows_of(count: int) -> list[AuditRow]:
    """Gives rows that differ."""
    return [
        replace(ROW, at=f"2026-11-30T12:{n // 60 % 60:02}:{n % 60:02}Z", counts={"n": n})
        for n in range(count)
    ]


def change(ledger: Ledger, sql: str, *values: object) -> None:
    """Does what somebody with a database browser could do."""
    with ledger.transaction() as tx:
        tx.execute(sql, values)


def faults(ledger: Ledger) -> list[str]:
    """Gives what a check of the trail says."""
    return [fault.what for fault in verify_chain(ledger).faults]


def test_rows_come_back_as_they_were_recorded(ledger: Ledger) -> None:
    """Newest first, with the number and id that the ledger gave."""
    audit.record(ledger, [ROW, replace(ROW, outcome="denied", id="mine")])
    second, first = audit.rows(ledger)
    assert replace(first, id="", number=0) == ROW
    assert (first.number, second.number) == (1, 2)
    assert first.id.startswith("aud_")
    assert (second.id, second.outcome) == ("mine", "denied")


def test_a_row_has_no_room_for_content() -> None:
    """Its fields are those of the archive's audit log, and the place in the trail."""
    archive = "id at principal action channel categories outcome object_ids counts duration_ms number"
    assert " ".join(sorted(field.name for field in fields(AuditRow))) == " ".join(sorted(archive.split()))


def test_a_row_that_is_there_is_not_added_again(ledger: Ledger) -> None:
    """The outbox may deliver twice, also within one batch; the chain stays whole."""
    row = replace(ROW, id="out_1")
    audit.record(ledger, [row, row])
    audit.record(ledger, [replace(ROW, id="out_2"), row])
    assert [found.id for found in audit.rows(ledger)] == ["out_2", "out_1"]
    assert verify_chain(ledger).ok


def test_a_batch_is_all_or_nothing(ledger: Ledger) -> None:
    """A row that cannot be stored takes its batch along, and nothing of the chain moves."""
    audit.record(ledger, [ROW])
    bad = replace(ROW, principal="agent:\udc80")
    with pytest.raises(UnicodeEncodeError):
        audit.record(ledger, [ROW, bad])
    assert len(audit.rows(ledger)) == 1
    audit.record(ledger, [])
    audit.record(ledger, [ROW])
    assert (verify_chain(ledger).rows, verify_chain(ledger).ok) == (2, True)


def test_a_full_disk_refuses_the_batch_and_leaves_the_trail_whole(ledger: Ledger) -> None:
    """The act that waits for its row gets the error."""
    audit.record(ledger, rows_of(10))
    with ledger.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Broken) as caught:
        audit.record(ledger, rows_of(5000))
    assert caught.value.code == "ledger.full"
    assert (verify_chain(ledger).rows, verify_chain(ledger).ok) == (10, True)


def test_filters_ask_for_what_they_name(ledger: Ledger) -> None:
    """Alone and together; times by their text."""
    audit.record(
        ledger,
        [
            replace(ROW, at="2026-11-30T12:00:00Z", action="read_page"),
            replace(ROW, at="2026-11-30T12:00:01Z", principal="agent:b", outcome="denied"),
            replace(ROW, at="2026-11-30T12:00:02Z", channel="http", action="read_page"),
        ],
    )

    def numbers(wanted: Filter) -> list[int]:
        return [row.number for row in audit.rows(ledger, wanted)]

    assert numbers(Filter()) == [3, 2, 1]
    assert numbers(Filter(principal="agent:b")) == [2]
    assert numbers(Filter(action="read_page")) == [3, 1]
    assert numbers(Filter(action="read_page", channel="mcp")) == [1]
    assert numbers(Filter(outcome="denied")) == [2]
    assert numbers(Filter(since="2026-11-30T12:00:01Z")) == [3, 2]
    assert numbers(Filter(until="2026-11-30T12:00:01Z")) == [1]
    assert numbers(Filter(principal="x' OR '1'='1")) == []


def test_the_trail_can_be_followed(ledger: Ledger) -> None:
    """From a number on, oldest first, in portions."""
    audit.record(ledger, rows_of(7))
    assert [row.number for row in audit.rows(ledger, after=0, limit=3)] == [1, 2, 3]
    assert [row.number for row in audit.rows(ledger, after=5)] == [6, 7]
    assert audit.rows(ledger, after=7) == []
    assert [row.number for row in audit.rows(ledger, limit=2)] == [7, 6]


def test_objects_are_opaque_numbers_that_are_never_used_again(ledger: Ledger) -> None:
    """An erased page leaves its number in the trail, and nothing that tells which page it was."""
    assert audit.object_numbers(ledger, ["a", "b", "a", "日本/𝄞", "caf\udce9"]) == [1, 2, 1, 3, 4]
    assert audit.object_paths(ledger, [1, 3, 99]) == {1: "a", 3: "日本/𝄞"}
    assert audit.forget_objects(ledger, ["日本/𝄞", "caf\udce9", "none"]) == 2
    assert audit.object_paths(ledger, [1, 2, 3, 4]) == {1: "a", 2: "b"}
    assert audit.object_numbers(ledger, ["日本/𝄞", "b"]) == [5, 2]
    assert audit.object_numbers(ledger, []) == []


def test_a_forgotten_path_is_in_no_byte_of_the_files(ledger: Ledger, tmp_path: Path) -> None:
    """Neither in free pages nor in the write-ahead log."""
    paths = [f"people/odile-vasquez-{number}" for number in range(300)]
    audit.record(ledger, [replace(ROW, object_ids=tuple(audit.object_numbers(ledger, paths)))])
    assert any(b"odile-vasquez" in path.read_bytes() for path in tmp_path.iterdir())
    assert audit.forget_objects(ledger, paths) == 300
    assert all(b"odile-vasquez" not in path.read_bytes() for path in tmp_path.iterdir())
    assert verify_chain(ledger).ok


def test_a_whole_trail_is_proved(ledger: Ledger) -> None:
    """An empty one too, and one of several chunks, written in batches of any size."""
    assert verify_chain(ledger).ok
    for size in (1, 2, 700, CHUNK - 703, 1):
        audit.record(ledger, rows_of(size))
    proof = verify_chain(ledger)
    assert (proof.rows, proof.faults) == (CHUNK + 1, ())


EDITS = {
    "principal": "agent:other",
    "outcome": "denied",
    "at": "2026-11-30T12:00:09Z",
    "object_ids": "[1]",
    "counts": "{}",
    "duration_ms": 2.0,
    "id": "aud_x",
    "action": "",
    "channel": "cli",
    "categories": "[]",
}


@pytest.mark.parametrize("column", EDITS)
@pytest.mark.parametrize("number", [1, 3, 5])
def test_an_edited_row_is_named(ledger: Ledger, column: str, number: int) -> None:
    """Whichever column, at the beginning, in the middle and at the end; its neighbours are not blamed."""
    audit.record(ledger, rows_of(5))
    change(ledger, f"UPDATE audit SET {column} = ? WHERE number = ?", EDITS[column], number)  # noqa: S608
    assert faults(ledger) == [f"row {number} was edited, or put in from elsewhere"]


def test_a_cut_row_is_named(ledger: Ledger) -> None:
    """In the middle, several in a row, at the beginning and at the end."""
    audit.record(ledger, rows_of(9))
    change(ledger, "DELETE FROM audit WHERE number IN (1, 4, 5, 9)")
    assert faults(ledger) == ["row 1 is missing", "rows 4 to 5 are missing", "row 9 is missing"]


def test_a_trail_cut_off_with_its_end_row_edited_along_is_named(ledger: Ledger) -> None:
    """The last row's mac is there to be read, but the seal over it needs the key."""
    audit.record(ledger, rows_of(9))
    change(ledger, "UPDATE trail SET rows = 5, head = (SELECT mac FROM audit WHERE number = 5)")
    change(ledger, "DELETE FROM audit WHERE number > 5")
    assert faults(ledger) == ["the seal at the end of the trail was edited"]


def test_a_row_put_in_at_the_end_is_named(ledger: Ledger) -> None:
    """Without the key it can be neither chained nor sealed."""
    audit.record(ledger, rows_of(3))
    change(
        ledger,
        "INSERT INTO audit SELECT 4, 'new', at, principal, action, channel, categories, outcome, object_ids,"
        " counts, duration_ms, mac FROM audit WHERE number = 3",
    )
    assert faults(ledger) == [
        "row 4 was edited, or put in from elsewhere",
        "rows after 3 were put in from elsewhere",
    ]


def test_swapped_rows_are_named(ledger: Ledger) -> None:
    """Each mac covers the one before it."""
    audit.record(ledger, rows_of(5))
    change(ledger, "UPDATE audit SET number = 100 WHERE number = 2")
    change(ledger, "UPDATE audit SET number = 2 WHERE number = 3")
    change(ledger, "UPDATE audit SET number = 3 WHERE number = 100")
    assert any("row 2 was edited" in what for what in faults(ledger))


def test_a_trail_without_its_seal_or_key_is_named(ledger: Ledger) -> None:
    """Taking those away does not make the trail look new."""
    audit.record(ledger, rows_of(3))
    change(ledger, "DELETE FROM trail")
    assert faults(ledger) == ["the row that seals the end of the trail is missing"]


def test_another_key_proves_nothing(ledger: Ledger) -> None:
    """The whole trail is doubted, and at most a hundred faults are listed."""
    audit.record(ledger, rows_of(150))
    change(ledger, "DELETE FROM keys")
    proof = verify_chain(ledger)
    assert (proof.rows, len(proof.faults)) == (150, 100)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            AuditRow,
            at=st.just("2026-11-30T12:00:00Z"),
            principal=st.text(st.characters(codec="utf-8"), max_size=10),
            action=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10),
            channel=st.sampled_from(["mcp", "http"]),
            outcome=st.just("ok"),
            categories=st.lists(st.sampled_from(["semantic", "profile"]), max_size=2).map(tuple),
            object_ids=st.lists(st.integers(0, 2**53), max_size=4).map(tuple),
            counts=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.integers(0, 2**53)),
            duration_ms=st.one_of(st.integers(0, 10**6), st.floats(0, 1e9)),
        ),
        max_size=8,
    )
)
def test_any_rows_come_back_equal_and_chained(ledger: Ledger, rows: list[AuditRow]) -> None:
    """Whatever characters and numbers they hold."""
    before = verify_chain(ledger).rows
    audit.record(ledger, rows)
    found = audit.rows(ledger, after=before, limit=100)
    assert [replace(row, id="", number=0) for row in found] == rows
    assert verify_chain(ledger).ok


def test_rows_are_json_ready(ledger: Ledger) -> None:
    """What the archive and the CLI print."""
    audit.record(ledger, [ROW])
    row = audit.rows(ledger)[0]
    assert json.loads(json.dumps({"object_ids": row.object_ids, "counts": dict(row.counts)})) == {
        "object_ids": [1, 2],
        "counts": {"results": 2, "total": 20},
    }


@pytest.mark.parametrize("later", [0, 1])
def test_a_row_from_a_copy_of_the_trail_is_named(
    ledger: Ledger, tmp_path_factory: pytest.TempPathFactory, clock: Clock, later: int
) -> None:
    """It was sealed with the right key after the right row, but it is not what happened here."""
    audit.record(ledger, rows_of(2))
    ledger.checkpoint()
    elsewhere = tmp_path_factory.mktemp("copy")
    shutil.copy(ledger.path, elsewhere / ledger.path.name)
    copy = Ledger.open(elsewhere, clock)
    audit.record(copy, [replace(ROW, outcome="ok")])
    with copy.reading() as connection:
        outcome, id_, mac = connection.execute(
            "SELECT outcome, id, mac FROM audit WHERE number = 3"
        ).fetchone()
    copy.close()
    audit.record(ledger, [replace(ROW, outcome="denied"), *rows_of(later)])
    change(ledger, "UPDATE audit SET outcome = ?, id = ?, mac = ? WHERE number = 3", outcome, id_, mac)
    assert faults(ledger) == [f"row {3 + later} was edited, or put in from elsewhere"]


def test_filters_ask_for_categories_pages_and_refusals(ledger: Ledger) -> None:
    """A row that names several is found by each; `refused` is whatever was not ok."""
    audit.record(
        ledger,
        [
            replace(ROW, categories=("semantic",), object_ids=(1, 12)),
            replace(ROW, categories=("profile", "semantic"), object_ids=(2,), outcome="denied"),
            replace(ROW, categories=(), object_ids=(), outcome="page.not-found"),
        ],
    )

    def numbers(wanted: Filter, **bounds: int) -> list[int]:
        return [row.number for row in audit.rows(ledger, wanted, **bounds)]

    assert numbers(Filter(category="semantic")) == [2, 1]
    assert numbers(Filter(category="profile", outcome="ok")) == []
    assert numbers(Filter(object_id=12)) == [1]
    assert numbers(Filter(object_id=2)) == [2]
    assert numbers(Filter(outcome=audit.REFUSED)) == [3, 2]
    assert numbers(Filter(outcome=audit.REFUSED), before=3) == [2]
    assert numbers(Filter(), before=3, limit=1) == [2]


def test_a_number_is_asked_for_without_making_one(ledger: Ledger) -> None:
    """A look at the trail leaves nothing in it."""
    assert audit.object_number(ledger, "caf\udce9") is None
    (number,) = audit.object_numbers(ledger, ["caf\udce9"])
    assert audit.object_number(ledger, "caf\udce9") == number


def test_the_trail_is_read_while_it_is_written(ledger: Ledger) -> None:
    """Who looks sees what was committed, and holds nobody up."""
    audit.record(ledger, [ROW])
    with ledger.transaction() as tx:
        tx.execute("UPDATE audit SET principal = 'agent:other'")
        assert [row.principal for row in audit.rows(ledger)] == ["agent:claude"]
        assert [each.principal for each in trail.activity(ledger, writes=())] == ["agent:claude"]


def test_sums_tell_what_each_principal_did(ledger: Ledger) -> None:
    """Reads, writes, refusals, different pages, and when; knocks that were counted together count each."""
    audit.record(
        ledger,
        [
            replace(ROW, principal="agent:b", object_ids=(1, 2)),
            replace(
                ROW, principal="agent:b", object_ids=(2, 3), action="write_page", at="2026-12-01T00:00:00Z"
            ),
            replace(ROW, principal="agent:b", object_ids=(4,), outcome="denied", at="2026-12-02T00:00:00Z"),
            replace(ROW, principal="unknown", object_ids=(), outcome="http.no-token", counts={"refused": 40}),
        ],
    )
    assert trail.activity(ledger, writes={"write_page"}) == [
        trail.Activity("agent:b", 1, 1, 1, 3, "2026-11-30T12:00:00Z", "2026-12-02T00:00:00Z"),
        trail.Activity("unknown", 0, 0, 40, 0, "2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z"),
    ]
    (one,) = trail.activity(ledger, Filter(since="2026-12-01", outcome="ok"), writes={"write_page"})
    assert (one.principal, one.reads, one.writes, one.pages) == ("agent:b", 0, 1, 2)


def test_the_trail_knows_where_it_ends(ledger: Ledger) -> None:
    """An empty one has no name yet."""
    assert trail.end(ledger) == ("", 0)
    audit.record(ledger, rows_of(3))
    name, number = trail.end(ledger)
    assert (len(name), number) == (8, 3)
    assert audit.rows(ledger)[0].id == f"aud_{name}_3"

"""access.yaml: read strictly, because a limit that is not understood would widen a grant."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.policy.grants import (
    CATEGORIES,
    REACH_LIMIT,
    RIGHTS,
    Access,
    Grant,
    parse_access,
    parse_until,
    render_grant,
)

LINE = b'  - {principal: "agent:claude", partitions: [work], categories: [semantic, procedural, profile],\n'
EXAMPLE = (
    b"""\
grants:                          # who may do what, where; nothing else is allowed
%b     rights: [read, propose], sensitivity: normal, until: 2027-01-01T00:00:00Z}
"""
    % LINE
)

FIRST, LAST = datetime(1000, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  (Hypothesis adds the zone)

grants = st.builds(
    Grant,
    principal=st.sampled_from(["agent:claude", "agent:claude/4.5", "human:sam@example.org", "service:x"]),
    partitions=st.lists(st.sampled_from(["work", "on", "0123", "null", "a-b_c"]), max_size=3).map(tuple),
    categories=st.lists(st.sampled_from(CATEGORIES), max_size=5).map(tuple),
    rights=st.lists(st.sampled_from(RIGHTS), max_size=6).map(tuple),
    sensitivity=st.sampled_from(["normal", "sensitive"]),
    until=st.none()
    | st.datetimes(FIRST, LAST, timezones=st.just(UTC))
    | st.datetimes(FIRST, LAST, timezones=st.just(timezone(timedelta(hours=5, minutes=30)))),
)


def problems_of(data: bytes) -> list[tuple[str, str, int]]:
    """Gives section, key and line of each problem that parsing names."""
    with pytest.raises(Invalid) as caught:
        parse_access(data)
    assert caught.value.code == "access.invalid"
    found = caught.value.details["problems"]
    assert isinstance(found, list)
    return [(problem["section"], problem["key"], problem["line"]) for problem in found]


def test_the_example_of_the_design_is_read() -> None:
    """Every key of pages.md section 4 arrives."""
    assert parse_access(EXAMPLE) == Access(
        (
            Grant(
                "agent:claude",
                ("work",),
                ("semantic", "procedural", "profile"),
                ("read", "propose"),
                "normal",
                datetime(2027, 1, 1, tzinfo=UTC),
            ),
        )
    )


@pytest.mark.parametrize(
    "data", [b"", b"\n# nothing\n", b"grants:\n", b"grants: []\n", b"grants: ~\n", b"---\n"]
)
def test_a_file_without_grants_grants_nothing(data: bytes) -> None:
    """Emptying the file is a way to close everything."""
    assert parse_access(data) == Access()


def test_an_empty_list_in_a_grant_is_no_error() -> None:
    """Emptying `rights` means to take something away; a refusal would keep the old grant in force."""
    data = b"grants: [{principal: agent:a, partitions: [], categories: [], rights: []}]\n"
    assert parse_access(data).grants == (Grant("agent:a", (), (), ()),)


@pytest.mark.parametrize("key", ["unitl", "Until", "sensitivty", "rights ", "partition"])
def test_a_misspelled_limit_is_refused(key: str) -> None:
    """Left out of account it would make the grant wider than what was meant."""
    grant = f'{{principal: agent:a, partitions: [a], categories: [semantic], rights: [read], "{key}": x}}'
    assert problems_of(f"grants:\n  - {grant}\n".encode()) == [("grants[1]", key, 2)]


def test_every_problem_is_named_at_once_with_section_key_and_line() -> None:
    """A person corrects the file in one go."""
    data = b"""\
grants:
  - {principal: claude, partitions: work, categories: [semantic, diary], rights: [read]}
  - principal: agent:b
    partitions: [Work, "*"]
    categories: [semantic]
    rights: [admin]
    sensitivity: secret
    until: tomorrow
  - {}
grant: []
"""
    assert problems_of(data) == [
        ("", "grant", 10),
        ("grants[1]", "principal", 2),
        ("grants[1]", "partitions", 2),
        ("grants[1].categories[2]", "", 2),
        ("grants[2]", "until", 8),
        ("grants[2].partitions[1]", "", 4),
        ("grants[2].partitions[2]", "", 4),
        ("grants[2].rights[1]", "", 6),
        ("grants[2]", "sensitivity", 7),
        ("grants[3]", "principal", 9),
        ("grants[3]", "partitions", 9),
        ("grants[3]", "categories", 9),
        ("grants[3]", "rights", 9),
    ]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-01-01", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T00:00:00Z", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01t00:00:00.5z", datetime(2027, 1, 1, microsecond=500_000, tzinfo=UTC)),
        ("2027-01-01 02:00:00+02:00", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2028-02-29", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_until_is_a_date_or_a_time_with_its_zone(text: str, instant: datetime) -> None:
    """A date means its first moment, in UTC."""
    assert parse_until(text) == instant
    assert parse_access(EXAMPLE.replace(b"2027-01-01T00:00:00Z", text.encode())).grants[0].until == instant


@pytest.mark.parametrize(
    "text",
    ["2027-02-29", "2027-01-01T00:00:00", "2027-13-01", "01.02.2027", "20270101", "2027-W01-1", "never", "0",
     "2027-01-01T25:00:00Z", "2027-01-01T00:00:00+99:00", "0001-01-01T00:00:00+01:00", "\u0662027-01-01",
     "2027-01-01 "],
)  # fmt: skip
def test_an_until_that_is_no_instant_is_refused(text: str) -> None:
    """It never counts as no limit."""
    with pytest.raises(Invalid) as caught:
        parse_until(text)
    assert caught.value.code == "access.until"
    assert problems_of(EXAMPLE.replace(b"2027-01-01T00:00:00Z", f'"{text}"'.encode())) == [
        ("grants[1]", "until", 3)
    ]


@given(grants)
def test_a_rendered_grant_reads_back_the_same(grant: Grant) -> None:
    """One line, which a second parser takes for the same strings."""
    line = render_grant(grant)
    assert "\n" not in line
    assert parse_access(f"grants: [{line}]".encode()) == Access((grant,))
    assert yaml.safe_load(line)["partitions"] == list(grant.partitions)


@pytest.mark.parametrize(
    "grant",
    [
        Grant("claude", ("work",), ("semantic",), ("read",)),
        Grant("agent:a", ("Work",), ("semantic",), ("read",)),
        Grant("agent:a", ("work",), ("diary",), ("read",)),
        Grant("agent:a", ("work",), ("semantic",), ("read, write",)),
        Grant("agent:a", ("work",), ("semantic",), ("read",), "none"),
    ],
)
def test_a_grant_that_would_not_read_back_is_not_rendered(grant: Grant) -> None:
    """What a command writes is as strict as what a person writes."""
    with pytest.raises(Invalid):
        render_grant(grant)


def test_grants_that_reach_too_many_slices_are_refused() -> None:
    """The SQL of a reader's view has room for a bounded number of values."""
    names = ", ".join(f"p{number}" for number in range(REACH_LIMIT + 1))
    data = (
        f"grants: [{{principal: agent:a, partitions: [{names}], categories: [semantic], rights: [read]}}]\n"
    )
    assert problems_of(data.encode()) == [("grants", "", 1)]
    assert parse_access(data.replace("p0, ", "").encode())

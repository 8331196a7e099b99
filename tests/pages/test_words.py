"""Paths, ids and times: what each takes, and what it refuses."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.pages.ids import ContextId, PageId, new_context_id
from pcpd.pages.paths import PagePath, kind_of, strict
from pcpd.pages.times import from_ns, normal_time, parse_time, to_z


@pytest.mark.parametrize(
    "text", ["a", "a/b-c/d_e.f", "2026/01-05", "0", "a" * 252, "a.md", "con1/com10", "x.con"]
)
def test_strict_paths_are_small_letters_digits_and_marks(text: str) -> None:
    """What agents and importers may create."""
    assert strict(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "/a", "a/", "a//b", ".", "..", "a/../b", ".hidden", "_topic", "-a", "A", "é", "a b", "a\\b", "a:b", "a\0",
     "a\n", "a.", "a./b", "con", "a/nul", "aux.x", "com1", "lpt9.txt.md", "a" * 253, "b/" + "a" * 256, "a" * 256 + "/b",
     "c:/x", "%2e%2e", "\u0430", "a/.git/b"],
)  # fmt: skip
def test_strict_paths_refuse_the_rest(text: str) -> None:
    """Dots at the ends, reserved names, other letters, segments that a file system could not hold."""
    with pytest.raises(Invalid) as refused:
        strict(text)
    assert refused.value.code == "path.strict"


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab.-_/0Aé\\ ~:"), max_size=20))
def test_a_strict_path_is_a_page_inside_the_vault(text: str) -> None:
    """Whatever passes is a page's path that its own rules take, and names a page's file."""
    try:
        path = strict(text)
    except Invalid:
        return
    assert PagePath(path) == path
    assert kind_of(path.file) == "page"
    assert path.key == path


@pytest.mark.parametrize("text", ["", "/x", "x/", "a//b", "a/./b", "../x", "a/..", "a\0b"])
def test_no_page_path_leaves_the_vault(text: str) -> None:
    """People's paths are taken as they are, but for these."""
    with pytest.raises(Invalid) as refused:
        PagePath(text)
    assert refused.value.code == "path.invalid"


def test_a_page_path_knows_file_name_and_folder() -> None:
    """The key for looking up is NFC and case folded; the path itself is as on disk."""
    path = PagePath.of_file("Notes/Cafe\u0301 X.md")
    assert (path.file, path.name, path.folder) == ("Notes/Cafe\u0301 X.md", "Cafe\u0301 X", "Notes")
    assert path.key == "notes/caf\xe9 x"
    assert PagePath("x").folder == ""


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("a.md", "page"),
        ("a/b c.md", "page"),
        ("x.md.md", "page"),
        ("_topic.md", "control"),
        ("a/_topic.md", "control"),
        ("_other.md", "page"),
        ("a.txt", "attachment"),
        ("a.MD", "attachment"),
        (".md", "attachment"),
        (".hidden.md", "attachment"),
        (".pcp/x.md", "attachment"),
        ("a/.GIT/x.md", "attachment"),
        (".git /x.md", "attachment"),
        (".Obsidian./x.md", "attachment"),
        ("\u200c.git/x.md", "attachment"),
        ("a/\ufeff\u202a.pcp/x.md", "attachment"),
        ("GIT~1/x.md", "attachment"),
        ("a/obsidi~1/x.md", "attachment"),
        ("pcp~2/x.md", "attachment"),
        ("a/git~1. ./x.md", "attachment"),
        ("git~1.md", "page"),
        ("notes~1/x.md", "page"),
        ("\u200cx/y.md", "page"),
        ("caf\xe9/.\xe9.md", "attachment"),
    ],
)
def test_a_file_is_told_by_its_name(file: str, kind: str) -> None:
    """Pages, control files, attachments."""
    assert kind_of(file) == kind


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-05T10:00:00Z", "2026-01-05T10:00:00Z"),
        ("2026-01-05t10:00:00z", "2026-01-05T10:00:00Z"),
        ("2026-01-05T10:00:00+02:00", "2026-01-05T08:00:00Z"),
        ("2026-01-05T10:00:00.999Z", "2026-01-05T10:00:00Z"),
        ("2026-01-05T10:00:00.123456789Z", "2026-01-05T10:00:00Z"),
        ("2026-01-05 10:00:00 -05:30", "2026-01-05T15:30:00Z"),
        ("2026-01-05T10:00", "2026-01-05T10:00:00Z"),
        ("2026-01-05", "2026-01-05T00:00:00Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
    ],
)
def test_times_are_utc_to_the_second(text: str, moment: str) -> None:
    """Any offset, none (then UTC, on every host), or a bare date."""
    assert to_z(parse_time(text)) == moment
    assert normal_time(text) == moment


@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-1-5", "2026-02-30", "2025-02-29", "2026-01-05T24:30:00Z", "2026-01-05T10:60:00Z", "12:30:45",
     "20260105", "2026-W01-1", "2026-W01-1T10:00:00Z", "2026-01-05T10", "2026-01-05T10:00:00+99:00", " 2026-01-05",
     "2026-01-05\n", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "\u0662026-01-05", "now"],
)  # fmt: skip
def test_what_no_calendar_has_is_refused(text: str) -> None:
    """Impossible days and hours, other formats, other digits."""
    with pytest.raises(Invalid) as refused:
        parse_time(text)
    assert refused.value.code == "time.invalid"
    with pytest.raises(Invalid):
        normal_time(text)


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])))
def test_a_moment_survives_its_text(moment: datetime) -> None:
    """To the second; and texts sort as moments do."""
    try:
        text = to_z(moment)
    except OverflowError:
        return
    assert parse_time(text) == moment.astimezone(UTC).replace(microsecond=0)
    assert len(text) == 20


@given(st.integers(-(10**30), 10**30))
def test_any_file_time_has_a_text(nanoseconds: int) -> None:
    """File systems hold times that no calendar has; they are clamped."""
    assert len(from_ns(nanoseconds)) == 20
    assert from_ns(1_767_607_200_999_999_999) == "2026-01-05T10:00:00Z"


def test_ids_have_their_own_form() -> None:
    """A context's id is made from the moment and four random bytes; nothing else passes for it."""
    moment = datetime(2026, 1, 5, 10, tzinfo=UTC)
    made = new_context_id(moment, bytes.fromhex("a3f2b1c4ff"))
    assert made == "ctx_1767607200_a3f2b1c4"
    assert ContextId(made) == made
    for text in (
        "",
        "ctx_1_a3f2b1c",
        "ctx_1_A3F2B1C4",
        "tok_1_a3f2b1c4",
        "ctx__a3f2b1c4",
        f"{made}\n",
        f"../{made}",
    ):
        with pytest.raises(Invalid) as refused:
            ContextId(text)
        assert refused.value.code == "id.invalid"


def test_the_id_of_a_page_is_one_line_of_text() -> None:
    """People choose it; it has a length and no blanks around."""
    assert PageId("01J é 知") == "01J é 知"
    for text in ("", " x", "x ", "a\nb", "a\0", "x" * 256):
        with pytest.raises(Invalid):
            PageId(text)

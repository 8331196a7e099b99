"""`pcpd audit`: what agents did, as a person reads it, follows it, sums it up and has it checked."""

import json
import os
import pty
import queue
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import Pcpd
from tests.client.conftest import Scene
from tests.client.fake_owner import Asked, Reply, ok, problem


def row(number: int, **changed: Any) -> dict[str, Any]:
    """One row as the owner tells it."""
    return {
        "id": f"aud_0_{number}", "at": f"2026-11-30T12:00:{number:02}Z", "principal": "agent:claude",
        "action": "read_page", "channel": "mcp", "categories": ["semantic"], "outcome": "ok",
        "object_ids": [number], "paths": [f"notes/n{number}"], "counts": {}, "duration_ms": 1.5, **changed,
    }  # fmt: skip


ROWS = [
    row(3, outcome="page.not-found", object_ids=[], paths=[], categories=[]),
    row(2, action="search_memory", paths=["a", None, "b", "c"], counts={"results": 4, "n": 9}),
    row(1, principal="unknown", action="knock", channel="http", outcome="http.no-token", paths=[],
        counts={"refused": 600}),
]  # fmt: skip


def trail(asked: Asked) -> Reply:
    """Three rows."""
    return ok({"rows": ROWS, "cursor": "older", "position": "here"})


def last(asked: list[Asked]) -> Asked:
    """The last request but those that every command makes."""
    return [each for each in asked if each.route not in {"health", "work"}][-1]


def test_rows_have_tabs_between_cells_where_no_person_reads_them(scene: Scene, pcpd: Pcpd) -> None:
    """Whole: every page by name, categories, counts and duration. How many is no result."""
    scene.owner(http=trail)
    done = pcpd("audit")
    assert done.text.splitlines() == [
        "2026-11-30T12:00:03Z\tagent:claude\tread_page\tmcp\tpage.not-found\t\t\t\t1.5",
        "2026-11-30T12:00:02Z\tagent:claude\tsearch_memory\tmcp\tok\ta, (erased), b, c\tsemantic\tresults=4, n=9\t1.5",
        "2026-11-30T12:00:01Z\tunknown\tknock\thttp\thttp.no-token\t\tsemantic\trefused=600\t1.5",
    ]
    assert done.err == "3 rows. Go on with --cursor older.\n"


def test_every_option_is_asked_for(scene: Scene, pcpd: Pcpd) -> None:
    """And what is not named is not."""
    owner = scene.owner(http=trail)
    options = {
        "principal": "agent:a", "action": "read_page", "channel": "mcp", "outcome": "refused", "category": "profile",
        "page": "notes/a", "since": "2026-11-30", "until": "2026-12-01T00:00:00Z", "limit": "7", "cursor": "older",
    }  # fmt: skip
    done = pcpd("audit", *(part for name, value in options.items() for part in (f"--{name}", value)))
    assert done.status == 0, done.err
    assert last(owner.asked).query == options | {"since": "2026-11-30T00:00:00Z"}
    pcpd("audit")
    assert last(owner.asked).query == {"limit": "20"}
    pcpd("audit", "--page", f"{scene.root}/notes/a.md")
    assert last(owner.asked).query["page"] == "notes/a"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("5min", 300), ("2h", 7200), ("3d", 3 * 86_400), ("1w", 7 * 86_400)]
)
def test_since_may_be_so_long_ago(scene: Scene, pcpd: Pcpd, text: str, seconds: int) -> None:
    """What is meant is a moment, in UTC, whatever the clock on the wall shows."""
    owner = scene.owner(http=trail)
    before = datetime.now(UTC).replace(microsecond=0)
    pcpd("audit", "--since", text)
    asked = datetime.fromisoformat(last(owner.asked).query["since"])
    assert before <= asked + timedelta(seconds=seconds) <= datetime.now(UTC)


@pytest.mark.parametrize("command", ["audit", "recent"])
def test_what_is_no_time_is_a_usage_error_that_names_every_form(
    scene: Scene, pcpd: Pcpd, command: str
) -> None:
    """And nothing is asked of the owner."""
    owner = scene.owner(http=trail)
    done = pcpd(command, "--since", "gestern")
    assert done.status == 2
    assert all(form in done.err for form in ("2026-01-05,", "2026-01-05T10:00:00Z", "2h"))
    assert not [asked for asked in owner.asked if asked.route in {"audit", "recent"}]


def test_the_whole_trail_is_verified_or_none(scene: Scene, pcpd: Pcpd) -> None:
    """A filter beside --verify would look as if only those rows had been checked."""
    scene.owner(http=trail)
    assert pcpd("audit", "--verify", "--principal", "agent:a").status == 2


def test_an_empty_trail_says_so(scene: Scene, pcpd: Pcpd) -> None:
    """On stderr: there is no result."""
    scene.owner(http=lambda asked: ok({"rows": [], "cursor": None, "position": "x", "principals": []}))
    for more in ((), ("--summary",)):
        done = pcpd("audit", *more)
        assert (done.status, done.out) == (0, b"")
        assert "Nothing" in done.err


def test_json_is_the_owners_answer(scene: Scene, pcpd: Pcpd) -> None:
    """One document."""
    scene.owner(http=trail)
    assert pcpd("audit", "--json").json() == {"rows": ROWS, "cursor": "older", "position": "here"}


def test_the_sum_is_a_line_a_principal(scene: Scene, pcpd: Pcpd) -> None:
    """With what was asked for along."""
    total = {
        "principal": "agent:a", "reads": 3, "writes": 1, "refused": 2, "pages": 4,
        "first_at": "2026", "last_at": "2027",
    }  # fmt: skip
    owner = scene.owner(http=lambda asked: ok({"principals": [total]}))
    assert pcpd("audit", "--summary", "--since", "2026-01-01").text == "agent:a\t3\t1\t2\t4\t2026\t2027\n"
    assert (last(owner.asked).route, last(owner.asked).query) == (
        "audit/summary",
        {"since": "2026-01-01T00:00:00Z"},
    )
    assert pcpd("audit", "--summary", "--json").json() == {"principals": [total]}


def test_a_trail_that_was_tampered_with_is_a_failure(scene: Scene, pcpd: Pcpd) -> None:
    """Each fault is named; a whole one says what it cannot show."""
    answer: dict[str, Any] = {"ok": True, "rows": 1200, "faults": []}
    owner = scene.owner(http=lambda asked: ok(answer))
    done = pcpd("audit", "--verify")
    assert (done.status, done.out, last(owner.asked).route) == (0, b"", "audit/proof")
    assert done.err.startswith(
        "The audit trail is whole: 1,200 rows. What this cannot show: the key lies beside"
    )
    assert pcpd("audit", "--verify", "--json").status == 0
    answer |= {"ok": False, "faults": [{"number": 7, "what": "row 7 is missing"}]}
    done = pcpd("audit", "--verify")
    assert (done.status, done.text) == (1, "fault: row 7 is missing\n")
    assert done.err == "The audit trail was tampered with: 1 fault in 1,200 rows.\n"
    done = pcpd("audit", "--verify", "--json")
    assert (done.status, done.json()) == (1, answer)


@pytest.mark.parametrize(
    "options",
    [("--follow", "--verify"), ("--summary", "--verify"), ("--follow", "--cursor", "x"), ("--limit", "0"),
     ("--limit", "2000"), ("--channel", "smoke"), ("--category", "all"), ("agent:claude",)],
)  # fmt: skip
def test_what_makes_no_sense_is_usage(scene: Scene, pcpd: Pcpd, options: tuple[str, ...]) -> None:
    """Before anything is asked."""
    owner = scene.owner(http=trail)
    assert pcpd("audit", *options).status == 2
    assert owner.asked == []


class Coming:
    """An owner's trail that grows when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._more: queue.Queue[list[dict[str, Any]]] = queue.Queue()

    def add(self, *rows: dict[str, Any]) -> None:
        """Lets rows come."""
        self._more.put(list(rows))

    def __call__(self, asked: Asked) -> Reply:
        """Waits, as the owner does, where it is asked to."""
        if asked.route != "audit":
            return problem(404, "x.y", "no")
        self.asked.append(asked)
        if "wait" not in asked.query:
            return ok({"rows": [row(2), row(1)], "cursor": None, "position": "p0"})
        position = f"p{len(self.asked)}"
        return ok({"rows": self._more.get(), "cursor": None, "position": position})


@pytest.fixture
def follow(scene: Scene) -> Callable[..., "subprocess.Popen[bytes]"]:
    """Starts `pcpd audit --follow` as a process of its own."""

    def start(*options: str, stdout: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "pcpd", "audit", "--follow", "--vault", str(scene.root), *options],
            env=scene.env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def test_following_shows_the_last_rows_then_each_as_it_comes(
    scene: Scene, follow: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    """Oldest first, each once, in one request that waits after the other; Ctrl-C ends it without a word."""
    coming = Coming()
    scene.owner(http=coming)
    process = follow("--json", "--principal", "agent:claude")
    assert process.stdout
    assert process.stderr

    def numbers(count: int) -> list[str]:
        return [json.loads(process.stdout.readline())["id"] for _ in range(count)]  # type: ignore[union-attr]

    assert numbers(2) == ["aud_0_1", "aud_0_2"]
    coming.add()  # the wait was over
    coming.add(row(3), row(4))
    assert numbers(2) == ["aud_0_3", "aud_0_4"]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == b"\n"  # below the terminal's ^C
    waited = [(each.query.get("after"), each.query.get("wait")) for each in coming.asked]
    assert waited[:3] == [(None, None), ("p0", "25"), ("p2", "25")]
    assert {each.query["principal"] for each in coming.asked} == {"agent:claude"}
    coming.add()
    process.stdout.close()
    process.stderr.close()


def test_following_ends_when_nobody_reads_any_more(
    scene: Scene, follow: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    """Also while nothing comes, so that `| head -1` leaves no process behind."""
    coming = Coming()
    scene.owner(http=coming)
    process = follow()
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline().startswith(b"2026-11-30T12:00:01Z\tagent:claude\tread_page")
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    coming.add()


def test_at_a_terminal_columns_stand_below_each_other_and_no_name_steers_it(
    scene: Scene, follow: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    """A page may be named with an escape sequence; what ended well and what did not differ in colour."""
    coming = Coming()
    scene.owner(http=coming)
    ours, theirs = pty.openpty()
    process = follow(stdout=theirs)
    coming.add(row(3, paths=["\x1b]0;owned\x07", "b", None, "d", "e"]), row(4, outcome="denied", paths=[]))
    shown = b""
    while shown.count(b"\n") < 4:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    coming.add()
    os.close(ours)
    os.close(theirs)
    lines = shown.decode().splitlines()
    assert "\x1b[32mok      \x1b[0m" in lines[2]
    assert "\x1b[31mdenied  \x1b[0m" in lines[3]
    assert "\x1b]" not in shown.decode()
    plain = [re.sub(r"\x1b\[\d*m", "", each) for each in lines]
    assert plain[2].endswith("\\x1b]0;owned\\x07, b, (erased) and 2 more")
    assert {each.index("mcp") for each in plain} == {plain[0].index("mcp")}


def pages_of(total: int) -> Callable[[Asked], Reply]:
    """An owner with so many rows, which tells a thousand at a time, oldest first."""

    def answer(asked: Asked) -> Reply:
        start = int(asked.query.get("after") or 0)
        numbers = range(start + 1, min(start + 1000, total) + 1)
        position = str(numbers[-1] if numbers else start)
        return ok(
            {"rows": [row(n % 60, id=f"aud_{n}") for n in numbers], "cursor": None, "position": position}
        )

    return answer


def test_rows_are_exported_as_json_lines_in_the_fields_of_the_archive(scene: Scene, pcpd: Pcpd) -> None:
    """All of them, oldest first; paths stay here; a file that is there is left alone."""
    scene.owner(http=pages_of(2_001))
    file = scene.root.parent / "log.jsonl"
    assert pcpd("audit", "--export", str(file)).status == 0
    lines = [json.loads(each) for each in file.read_text().splitlines()]
    assert [each["id"] for each in lines] == [f"aud_{n}" for n in range(1, 2_002)]
    assert list(lines[0]) == [
        "id", "at", "principal", "action", "channel", "categories", "outcome", "object_ids", "counts",
        "duration_ms",
    ]  # fmt: skip
    assert file.stat().st_mode & 0o777 == 0o600
    assert pcpd("audit", "--export", str(file)).status == 2
    assert len(file.read_text().splitlines()) == 2_001
    assert len(pcpd("audit", "--export", "-").text.splitlines()) == 2_001


def test_an_export_that_fails_leaves_no_file(scene: Scene, pcpd: Pcpd) -> None:
    """Half a trail would look like all of it."""
    scene.owner(http=lambda _asked: problem(500, "ledger.corrupt", "damaged"))
    file = scene.root.parent / "log.jsonl"
    assert pcpd("audit", "--export", str(file)).status != 0
    assert not file.exists()


def test_old_rows_are_removed_by_age(scene: Scene, pcpd: Pcpd) -> None:
    """Named in days, weeks or years; without one, or with something else asked for, it is no command."""
    asked: list[Asked] = []

    def answer(each: Asked) -> Reply:
        asked.append(each)
        return ok({"removed": 7})

    scene.owner(http=answer)
    done = pcpd("audit", "prune", "--older-than", "2y")
    assert "7 rows" in done.text + done.err
    before = json.loads(asked[0].body)["before"]
    age = datetime.now(UTC) - datetime.fromisoformat(before)
    assert timedelta(days=729) < age < timedelta(days=732)
    for wrong in (
        ["prune"],
        ["--older-than", "2y"],
        ["prune", "--older-than", "2"],
        ["prune", "--older-than", "9d", "--verify"],
    ):
        assert pcpd("audit", *wrong).status == 2, wrong

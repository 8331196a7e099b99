"""Metrics: what Prometheus reads is right, tells each what they may know, and names nobody's pages."""

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from pcpd.api.exposition import Family, Histogram, one, text
from pcpd.api.meter import BOUNDS, Lag, Meter
from tests.doors import Doors
from tests.waiting import until

Sample = tuple[str, dict[str, str]]


def read(page: bytes) -> dict[str, Any]:
    """The families of a page, by name, as Prometheus' own parser reads them."""
    return {family.name: family for family in text_string_to_metric_families(page.decode())}


def scraped(doors: Doors, **options: Any) -> dict[str, Any]:
    """What a scrape gives."""
    answer = doors.ask("GET", "/metrics", **options)
    assert answer.status == 200, answer.data
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.data)


def value(families: dict[str, Any], name: str, **labels: str) -> float:
    """One number."""
    for family in families.values():
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return float(sample.value)
    return 0.0


def of_agent(doors: Doors) -> dict[str, str]:
    """The headers of an agent without any grant."""
    return {"Authorization": f"Bearer {doors.token()}"}


def test_requests_are_counted_by_route_method_and_status(doors: Doors) -> None:
    """By the template, whatever page was asked for; what no route serves is together."""
    for path in ("boiler", "secret-plan", "another/secret-plan"):
        doors.vault("GET", f"pages/{path}")
    doors.vault("HEAD", "pages/boiler")
    doors.vault("GET", "nowhere/secret-plan")
    doors.vault("PROPFIND", "pages/boiler")
    doors.ask("GET", "/mcp")
    name, times, route = (
        "pcpd_http_requests_total",
        "pcpd_http_request_duration_seconds",
        "/vault/v1/pages/{path}",
    )
    wanted = {
        (route, "GET", "2xx"): 1,
        (route, "GET", "4xx"): 2,
        (route, "HEAD", "2xx"): 1,
        (route, "other", "4xx"): 1,
        ("unmatched", "GET", "4xx"): 1,
        ("/mcp", "GET", "4xx"): 1,
    }

    def counted() -> dict[str, Any] | None:
        """What a scrape gives, once what was asked is counted: a client hears an answer a moment before."""
        families = scraped(doors)
        found = {
            tuple(sample.labels.values()): sample.value
            for sample in families[name.removesuffix("_total")].samples
            if sample.labels["route"] not in {"/metrics", "/vault/v1/health"}
        }
        return families if found == wanted else None

    families = until(counted)
    assert value(families or {}, f"{times}_count", route=route, method="GET") == 3
    assert value(families or {}, "pcpd_http_requests_open") == 1
    page = doors.ask("GET", "/metrics").data
    assert b"secret-plan" not in page
    assert b"PROPFIND" not in page


def test_an_agent_is_told_of_the_owner_and_the_person_of_the_vault_too(doors: Doors) -> None:
    """Nobody is told anything without a token, but for the person on their socket."""
    token = of_agent(doors)
    agent, person = scraped(doors, headers=token, tcp=True), scraped(doors)
    assert doors.ask("GET", "/metrics", tcp=True).code == "http.no-token"
    assert {"process_cpu_seconds", "process_open_fds", "pcpd_event_loop_lag_seconds"} <= agent.keys()
    of_vault = person.keys() - agent.keys()
    assert {"pcpd_pages", "pcpd_index_bytes", "pcpd_commits_waiting", "pcpd_audit_rows"} <= of_vault
    assert value(person, "pcpd_pages") == 1
    assert value(person, "pcpd_index_bytes") > 0
    assert value(person, "pcpd_index_in_step") == value(person, "pcpd_ready") == 1


def test_the_vaults_numbers_follow_it(doors: Doors) -> None:
    """Pages, problems, what waits for git, the last commit, and audit rows."""
    memory = doors.opened.memory
    doors.vault("PUT", "pages/new", body=b"---\nimportance: 7\n---\n")
    until(lambda: value(scraped(doors), "pcpd_pages_with_problems") == 1)
    until(lambda: value(scraped(doors), "pcpd_last_commit_timestamp_seconds") > 0)
    families = scraped(doors)
    assert value(families, "pcpd_pages") == 2
    assert value(families, "pcpd_last_commit_timestamp_seconds") <= memory.clock.now().timestamp()
    rows = value(families, "pcpd_audit_rows")
    doors.opened.agent("agent:claude", "read")
    doors.vault("GET", "search?q=boiler", headers=of_agent(doors))
    assert value(scraped(doors), "pcpd_audit_rows") > rows


def test_connections_and_streams_are_counted_while_they_are_open(doors: Doors) -> None:
    """A stream is a request under way, whose time says nothing when it ends."""
    from tests.api.test_events import Listening

    stream = Listening(doors)
    stream.hear()
    families = scraped(doors)
    assert value(families, "pcpd_event_streams_open") == 1
    assert value(families, "pcpd_http_connections_open") == 2
    assert value(families, "pcpd_http_requests_open") == 2
    stream.close()
    until(lambda: value(scraped(doors), "pcpd_event_streams_open") == 0)
    route = {"route": "/vault/v1/events", "method": "GET"}
    assert value(scraped(doors), "pcpd_http_requests_total", status="2xx", **route) == 1
    assert value(scraped(doors), "pcpd_http_request_duration_seconds_count", **route) == 0


def test_a_loop_that_is_blocked_shows_and_a_quiet_one_is_left_alone() -> None:
    """The lag is measured only while requests come."""

    class Heard(Lag):
        """Says when it was measured."""

        def _arrived(self, due: float) -> None:
            super()._arrived(due)
            measured.set()

    async def blocked() -> int:
        lag.watch()
        asyncio.get_running_loop().call_soon(threading.Event().wait, 0.3)
        await measured.wait()
        return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    lag, measured = Heard(), asyncio.Event()
    assert asyncio.run(blocked()) == 0
    assert lag.most == lag.last > 0.1


def test_a_request_without_an_answer_is_counted_as_cut() -> None:
    """Whether its client went or a fault cut it."""

    async def fails(*_: Any) -> None:
        raise RuntimeError

    async def ask() -> Meter:
        meter = Meter({})
        with pytest.raises(RuntimeError):
            await meter.wrap(fails)({"method": "GET", "path": "/x"}, fails, fails)  # type: ignore[arg-type]
        return meter

    families = read(text(asyncio.run(ask()).families()))
    labels = {"route": "unmatched", "method": "GET", "status": "cut"}
    assert value(families, "pcpd_http_requests_total", **labels) == 1
    assert value(families, "pcpd_http_requests_open") == 0


labels = st.dictionaries(
    st.sampled_from(["route", "method", "x"]), st.text(st.characters(exclude_categories=["Cs"]))
)
numbers = st.one_of(st.integers(0, 2**53), st.floats(0, 1e300, allow_nan=False))


@given(
    about=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), labels=labels, number=numbers
)
def test_whatever_a_label_holds_is_read_back(about: str, labels: dict[str, str], number: float) -> None:
    """Quotes, backslashes, line breaks, any letter; and the number to its last digit."""
    page = text([Family("a_total", "counter", about, [(labels, number)]), one("b", "gauge", about, 1)])
    families = read(page)
    (sample,) = families["a"].samples
    assert (sample.labels, sample.value) == (labels, number)
    assert families["b"].type == "gauge"


@given(st.lists(st.integers(0, 1000), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1))
def test_a_histogram_counts_what_is_below_each_bound(counts: list[int]) -> None:
    """As Prometheus wants it: cumulative, and the last one all of them."""
    page = text([Family("h", "histogram", "x", [({"route": "/"}, Histogram(BOUNDS, counts, 1.5))])])
    samples = read(page)["h"].samples
    buckets = [(float(each.labels["le"]), each.value) for each in samples if each.name == "h_bucket"]
    assert [bound for bound, _ in buckets] == [*BOUNDS, math.inf]
    assert [count for _, count in buckets] == [sum(counts[: n + 1]) for n in range(len(counts))]
    assert {each.name: each.value for each in samples if each.name != "h_bucket"} == {
        "h_sum": 1.5,
        "h_count": sum(counts),
    }


def test_what_has_no_value_is_left_out() -> None:
    """A name alone says nothing."""
    assert text([Family("a", "gauge", "x", [])]) == b""


def test_a_scrape_before_the_first_scan_is_answered(make_doors: Callable[..., Doors]) -> None:
    """Whoever watches wants to see that it is not ready."""
    doors = make_doors({})
    doors.opened.memory.health.ready = False
    assert value(scraped(doors), "pcpd_ready") == 0

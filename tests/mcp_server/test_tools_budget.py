"""No answer is larger than clients take, whatever pages say and however they are called; and none loses anything."""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.index.graph import Neighbour, Neighbours
from pcpd.index.links import Edge, LinksAnswer
from pcpd.index.search import Hit, Results
from pcpd.mcp_server.tool import Answer
from pcpd.mcp_server.tools import BY_NAME
from pcpd.memory import read, versions
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import PageRead
from pcpd.memory.versions import PageVersion, PageVersions
from pcpd.pages.model import Link
from pcpd.pages.paths import PagePath
from pcpd.policy.decide import Principal, Visibility
from tests.mcp_server.asked import BYTES, MARGIN, check, strict

CALLER = Caller(Principal("agent:claude"), "mcp")
MEMORY = cast("Memory", SimpleNamespace(visible_to=lambda _caller: Visibility(everything=True)))

LETTERS = st.sampled_from(list('ab# \n\r\t"\\\x00\x01蝶กิéé🔩👩🏽‍🚒🇩🇪\u2028'))
SHORT = st.text(LETTERS, max_size=5)
LONG = st.builds(
    lambda text, times: text * times, st.text(LETTERS, min_size=1, max_size=6), st.integers(1, 2_000)
)
TEXTS = SHORT | LONG
PATHS = st.text(st.sampled_from("ab番"), min_size=1, max_size=300)
COUNTS = st.integers(0, 400)


HEADS = ["", "---\ntitle: x\n---\n", "---\nx: [\n---\n",
    f"---\ntitle: {'番' * 9_000}\nsource: {{origin: {'x' * 50_000}}}\n---\n"]  # fmt: skip


def run(tool: str, **arguments: Any) -> Answer:
    """Calls a tool's function; its answer is held to its schema and to the budget."""
    answer = BY_NAME[tool].run(MEMORY, CALLER, arguments)
    check(answer.data, strict(BY_NAME[tool].output_schema))
    assert len(json.dumps(answer.data, ensure_ascii=False).encode()) <= BYTES + MARGIN
    assert len(json.dumps(answer.text, ensure_ascii=False).encode()) <= (BYTES + MARGIN) * (
        2 if tool in {"search", "fetch"} else 1
    )
    return answer


def to_the_end(tool: str, rows: Sequence[str], **arguments: Any) -> list[str]:
    """Follows the cursors of a list; gives all its rows."""
    seen, cursor = list[str](), None
    while True:
        data = run(tool, **arguments, cursor=cursor).data
        found = [json.dumps(row) for key in rows for row in data[key]]
        seen += found
        cursor = data["cursor"]
        if cursor is None:
            return seen
        assert found


def paged(every: Sequence[Any]) -> Callable[..., tuple[tuple[Any, ...], str | None]]:
    """A list act on made-up rows: as many as are asked for and fit, and where to go on."""

    def some(*, limit: int, cursor: str | None, fit: Callable[[Sequence[Any]], int]) -> Any:
        start = int(cursor or 0)
        found = every[start : start + limit]
        end = start + min(len(found), fit(found))
        return tuple(every[start:end]), str(end) if end < len(every) else None

    return some


@given(title=TEXTS, snippet=TEXTS, origin=TEXTS, path=PATHS, count=COUNTS)
@settings(max_examples=40, deadline=None)
def test_results_fit(title: str, snippet: str, origin: str, path: str, count: int) -> None:
    """Few huge ones, many short ones."""
    hits = [
        Hit(
            f"{path}{n}",
            title,
            "semantic",
            snippet,
            1.0,
            "2026-01-05T00:00:00Z",
            origin,
            origin or None,
            "semantic",
        )
        for n in range(count)
    ]

    def search(_memory: Any, _caller: Any, _text: str, **options: Any) -> Results:
        found, cursor = paged(hits)(**{"cursor": None, **options})
        return Results(found, len(hits), cursor)

    with mock.patch.object(read, "search", search):
        assert len(to_the_end("search_memory", ["results"], query="x", limit=100)) == count
        run("search", query="x")


@given(text=TEXTS, path=PATHS, outgoing=COUNTS, near=st.integers(0, 200))
@settings(max_examples=15, deadline=None)
def test_links_fit(text: str, path: str, outgoing: int, near: int) -> None:
    """Whatever their words are."""
    link = Link("wiki", text, text, text, text, 1)
    edges = tuple(Edge(path, f"{path}{n}", link, text, None, "2026-01-05T00:00:00Z") for n in range(outgoing))
    pages = tuple(Neighbour(f"{path}{n}", text, 1, text, text, "", "semantic") for n in range(near))
    answer = LinksAnswer(edges, edges[:5], Neighbours(pages, complete=True))
    with mock.patch.object(read, "links", return_value=answer):
        seen = to_the_end("page_links", ["outgoing", "backlinks", "pages"], path="x", limit=500)
    assert len(seen) == outgoing + min(5, outgoing) + near


@given(path=PATHS, principal=TEXTS, count=COUNTS)
@settings(max_examples=25, deadline=None)
def test_histories_fit(path: str, principal: str, count: int) -> None:
    """However often a page was changed."""
    rows = [
        PageVersion(f"{n:040}", "2026-01-05T00:00:00Z", principal, "", "modified", path) for n in range(count)
    ]

    def history(_memory: Any, _caller: Any, _path: str, **options: Any) -> PageVersions:
        found, cursor = paged(rows)(**options)
        return PageVersions(path, found, cursor)

    with mock.patch.object(versions, "history", history):
        assert len(to_the_end("page_history", ["versions"], path="x", limit=100)) == count


def page_of(text: str) -> PageRead:
    """A page with this text, which the index does not know."""
    return PageRead(PagePath("a/b"), text.encode("utf-8", "surrogatepass"), "0" * 64, "semantic", 0)


@given(before=TEXTS, after=TEXTS, head=st.sampled_from(HEADS))
@settings(max_examples=60, deadline=None)
def test_pages_fit_and_their_parts_make_the_whole(before: str, after: str, head: str) -> None:
    """Only what comes whole has a version."""
    found = page_of(head + before + after)
    whole = found.data.decode("utf-8", "replace")
    with mock.patch.object(read, "read_page", return_value=found):
        parts, offset = list[str](), 0
        while offset is not None:
            data = run("read_page", path="x", offset=offset).data
            parts.append(data["content"])
            assert (data["version"] is not None) == (offset == 0 and data["next_offset"] is None)
            offset = data["next_offset"]
        assert "".join(parts) == whole
        fetched, name = list[str](), "a/b"
        while name is not None:
            answer = run("fetch", id=name)
            assert json.loads(answer.text) == answer.data
            fetched.append(answer.data["text"])
            name = answer.data["metadata"].get("next_id")
        assert "".join(fetched) == whole


@given(heading=TEXTS, count=st.integers(0, 2_000))
@settings(max_examples=40, deadline=None)
def test_outlines_fit_and_go_on_to_the_end(heading: str, count: int) -> None:
    """Few huge headings, many short ones."""
    line = " ".join(heading.replace("\x00", "").split())[:2_000]
    found = page_of(f"# {line}x\n" * min(count, 400_000 // (len(line) + 4)))
    with mock.patch.object(read, "read_page", return_value=found):
        lines, offset = list[int](), 0
        while offset is not None:
            data = run("read_page", path="x", outline=True, offset=offset).data
            lines += [row["line"] for row in data["headings"]]
            offset = data["next_offset"]
    assert lines == list(range(1, len(lines) + 1))
    assert len(lines) == found.data.count(b"\n") or "`" in line

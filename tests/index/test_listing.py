"""Pages are found by what they are called, and lists go on to their very end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.index import listing, pages
from pcpd.index.listing import PageList
from pcpd.index.store import Index
from pcpd.index.visible import EVERYTHING
from pcpd.policy.decide import Facts, Slice, Visibility
from tests.index.samples import built, fill, put_of, sees

FILES = {
    "Plan.md": "---\nid: one\n---\n",
    "plan.md": "lower",
    "work/Plan.md": "---\nupdated: 2026-01-05\n---\n",
    "work/deep/x.md": "---\npartition: work\n---\n",
    "Work/y.md": "---\npartition: work\n---\n",
    "workshop.md": "not in the folder work",
    "caf\u00e9.md": "x",
    "hidden.md": "---\nreview: {state: proposed}\n---\n",
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of FILES."""
    with built(tmp_path / "index", FILES) as opened:
        yield opened


def found(index: Index, text: str) -> list[str]:
    """The paths that a text may mean."""
    with index.reader() as reader:
        return [page.path for page in listing.find(reader, text, EVERYTHING)]


def to_the_end(ask: Callable[[str | None], PageList]) -> list[str]:
    """Follows the cursors."""
    paths: list[str] = []
    cursor: str | None = None
    while True:
        answer = ask(cursor)
        paths += [page.path for page in answer.pages]
        cursor = answer.cursor
        if cursor is None:
            assert answer.total == len(paths)
            return paths


class TestFinding:
    """By path, by lookup form, by id, by file name: the first way that finds something."""

    @pytest.mark.parametrize(
        ("text", "paths"),
        [
            ("Plan", ["Plan"]),
            ("plan.md", ["plan"]),
            ("/plan", ["plan"]),
            ("PLAN", ["Plan", "plan"]),
            ("cafe\u0301", ["caf\u00e9"]),
            ("one", ["Plan"]),
            ("x", ["work/deep/x"]),
            ("deep/X", ["work/deep/x"]),
            ("none", []),
            ("", []),
            ("%", []),
            ("\ud800", []),
            ("a\0b", []),
            ("../plan", []),
        ],
    )
    def test_what_a_text_means(self, index: Index, text: str, paths: list[str]) -> None:
        """Several matches of one way are all given."""
        assert found(index, text) == paths

    def test_a_row_tells_what_access_depends_on(self, index: Index) -> None:
        """The same facts that `policy.decide` takes."""
        with index.reader() as reader:
            (row,) = listing.find(reader, "hidden", EVERYTHING)
        assert row.facts == Facts("hidden", "personal", "semantic", "normal", hidden=True)
        assert row.size == len(FILES["hidden.md"])
        assert len(row.version) == 64
        assert row.version == row.version.lower()

    def test_an_alias_names_a_page_where_nothing_else_does(self, tmp_path: Path) -> None:
        """In any case and form, also one with a slash; files of that name go first."""
        files = {
            "a.md": "---\naliases: [Warm Thing, x/y, caf\u00e9]\n---\n",
            "b.md": "---\naliases: [Warm thing, a]\n---\n",
        }
        with built(tmp_path / "index", files) as index:
            assert found(index, "warm thing") == ["a", "b"]
            assert found(index, "X/Y") == ["a"]
            assert found(index, "cafe\u0301") == ["a"]
            assert found(index, "a") == ["a"]
            assert found(index, "y") == []

    def test_only_pages_that_the_reader_sees_are_found(self, tmp_path: Path) -> None:
        """A hidden page with the very path takes nothing from a visible one of that name."""
        hidden = "---\npartition: work\naliases: [other]\n---\n"
        files = {"plan.md": hidden, "x/plan.md": "", "y.md": "---\naliases: [other]\n---\n"}
        seen = Visibility(slices=frozenset({Slice("personal", "semantic", sensitive=False)}))
        with built(tmp_path / "index", files) as index, index.reader() as reader:
            assert [row.path for row in listing.find(reader, "plan", seen)] == ["x/plan"]
            assert [row.path for row in listing.find(reader, "other", seen)] == ["y"]
            assert listing.at(reader, "plan", seen) == []
            assert [row.path for row in listing.at(reader, "PLAN", EVERYTHING)] == ["plan"]


class TestListing:
    """Lists by path, and by time."""

    def test_a_folder_lists_what_is_in_it_and_below(self, index: Index) -> None:
        """Whatever the case of its name; not what merely begins like it."""
        with index.reader() as reader:
            for folder in ("work", "WORK/", "/work"):
                answer = listing.listing(reader, EVERYTHING, folder=folder)
                assert [page.path for page in answer.pages] == ["work/deep/x", "work/Plan", "Work/y"]
                assert (answer.total, answer.cursor) == (3, None)

    def test_only_what_the_reader_sees_is_listed_and_counted(self, index: Index) -> None:
        """Hidden pages and other partitions are not there."""
        with index.reader() as reader:
            answer = listing.listing(reader, sees("work"))
            assert ([page.path for page in answer.pages], answer.total) == (["work/deep/x", "Work/y"], 2)
            assert listing.listing(reader, sees()).total == 0
            assert "hidden" not in [page.path for page in listing.listing(reader, sees("personal")).pages]
            assert listing.recent(reader, sees("work")).total == 2

    def test_a_folder_that_cannot_be_has_no_pages(self, index: Index) -> None:
        """Half characters, NUL, dots: they are names of nothing."""
        with index.reader() as reader:
            for folder in ("\ud800", "a\0b", "..", "%"):
                assert listing.listing(reader, EVERYTHING, folder=folder) == PageList((), 0, None)

    def test_the_newest_come_first(self, index: Index) -> None:
        """By their own time, else their file's."""
        with index.reader() as reader:
            assert listing.recent(reader, EVERYTHING, limit=1).pages[0].path == "work/Plan"

    def test_recent_pages_begin_at_a_moment(self, index: Index) -> None:
        """Counted so too, and paged to the end; a cursor belongs to its moment."""
        with index.reader() as reader:
            every = listing.recent(reader, EVERYTHING, limit=100).pages
            for start, count in ((every[0].updated, 1), (every[-1].updated, len(every))):
                found = to_the_end(
                    lambda cursor, start=start: listing.recent(  # type: ignore[misc]
                        reader, EVERYTHING, since=start, limit=2, cursor=cursor
                    )
                )
                assert found == [page.path for page in every[:count]]
            first = listing.recent(reader, EVERYTHING, since=every[-1].updated, limit=1)
            with pytest.raises(Invalid):
                listing.recent(reader, EVERYTHING, cursor=first.cursor)
            assert listing.recent(reader, EVERYTHING, since="9999-01-01T00:00:00Z").total == 0

    @pytest.mark.parametrize("cursor", ["", "x", "WyJhIl0", "A" * 10_000, "\u00e9", "eyJhIjoxfQ=="])
    def test_a_cursor_of_somebody_else_is_refused(self, index: Index, cursor: str) -> None:
        """Never an error from deep inside, never a wrong place."""
        with index.reader() as reader:
            for ask in (listing.listing, listing.recent):
                with pytest.raises(Invalid) as caught:
                    ask(reader, EVERYTHING, cursor=cursor)
                assert caught.value.code == "cursor.invalid"

    def test_a_cursor_of_another_list_is_refused(self, index: Index) -> None:
        """It would go on in the middle of nowhere."""
        with index.reader() as reader:
            cursor = listing.listing(reader, EVERYTHING, limit=1).cursor
            with pytest.raises(Invalid):
                listing.listing(reader, EVERYTHING, folder="work", cursor=cursor)
            with pytest.raises(Invalid):
                listing.recent(reader, EVERYTHING, cursor=cursor)

    def test_a_list_goes_on_where_it_was_while_pages_come_and_go(self, index: Index) -> None:
        """No page that stays is left out or comes twice."""
        with index.reader() as reader:
            first = listing.listing(reader, EVERYTHING, limit=4)
        fill(index, {"aaa.md": "before the place", "zzz.md": "behind it"})
        with index.reader() as reader:
            rest = listing.listing(reader, EVERYTHING, limit=100, cursor=first.cursor)
        seen = [page.path for page in (*first.pages, *rest.pages)]
        assert sorted(seen) == sorted([file[:-3] for file in FILES] + ["zzz"])


names = st.text(st.sampled_from("aAbB\u00e9\u0301/漢\U0001f600 0"), min_size=1, max_size=6).filter(
    lambda text: all(segment not in {"", ".", ".."} for segment in text.split("/"))
)


@given(
    st.dictionaries(names, st.sampled_from(("x", "y", "---\nupdated: 2025-05-05\n---\n")), max_size=25),
    st.integers(1, 7),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_every_list_comes_to_its_end_with_every_page_once(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str], limit: int
) -> None:
    """In one order, whatever the size of its pieces."""
    with built(tmp_path_factory.mktemp("index"), {}) as index:
        with index.transaction() as tx:
            pages.put_all(tx, [put_of(f"{name}.md", text) for name, text in files.items()])
        with index.reader() as reader:
            listed = to_the_end(
                lambda cursor: listing.listing(reader, EVERYTHING, limit=limit, cursor=cursor)
            )
            recent = to_the_end(lambda cursor: listing.recent(reader, EVERYTHING, limit=limit, cursor=cursor))
            assert [page.path for page in listing.listing(reader, EVERYTHING, limit=100).pages] == listed
    assert sorted(listed) == sorted(recent) == sorted(files)

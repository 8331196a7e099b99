"""In which order pages are found, that it is the reader's own, and that it can be paged to the end."""

import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.index import cursors, ordering, pages, rank, snippets
from pcpd.index.matching import Condition, Unit
from pcpd.index.query import Term
from pcpd.index.search import Hit, Results, search
from pcpd.index.store import Index
from pcpd.index.visible import EVERYTHING
from pcpd.policy.decide import Slice, Visibility
from tests.index import samples

WORDS = ("news", "new", "university", "universe", "universal", "kids", "play", "garden", "知", "識", "blue")


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of ranking so small that a few dozen pages are beyond them."""
    for name, value in {"RANKED": 6, "RANKED_LEAST": 3, "OLDER": 3, "ANY": 8, "PREFIX": 4, "BEST": 4}.items():
        monkeypatch.setattr(ordering, name, value)


def ask(
    index: Index, text: str, seen: Visibility = EVERYTHING, limit: int = 1000, cursor: str | None = None
) -> Results:
    """One piece of an answer."""
    with index.reader() as conn:
        return search(conn, text, seen, limit=limit, cursor=cursor)


def paths(index: Index, text: str) -> list[str]:
    """The paths that the person gets, in order."""
    return [hit.path for hit in ask(index, text).results]


def pieces(index: Index, text: str, size: int, seen: Visibility = EVERYTHING) -> Iterator[Results]:
    """All pieces of an answer."""
    cursor = None
    while True:
        piece = ask(index, text, seen, size, cursor)
        yield piece
        cursor = piece.cursor
        if cursor is None:
            return


def test_the_very_word_comes_before_many_that_share_its_stem(tmp_path: Path) -> None:
    """However often, and wherever, the others have theirs."""
    files = {
        f"other{n:03}.md": "---\ntitle: New universe\n---\nnew new universal new universe\n"
        for n in range(80)
    }
    exact = {"exact.md": "A long page. " + "Filler words stand here. " * 200 + "The university had news.\n"}
    for order in ({**files, **exact}, {**exact, **files}):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with samples.built(folder, order) as index:
            assert paths(index, "university")[0] == "exact"
            assert paths(index, "news")[0] == "exact"
            assert paths(index, "news university")[0] == "exact"
            assert ask(index, "university").total == 81


def test_the_very_word_is_not_hidden_behind_the_bounds(tmp_path: Path, small_bounds: None) -> None:
    """Nor by newer pages where so many match that not all are ranked."""
    files = {"exact.md": "university\n"} | {f"other{n:03}.md": "universe universal\n" for n in range(60)}
    with samples.built(tmp_path / "index", files) as index:
        assert paths(index, "university")[0] == "exact"


def test_title_weighs_most_then_tags_then_text(tmp_path: Path) -> None:
    """With texts of one length."""
    files = {
        "a.md": "---\ntitle: One two\ntags: [red]\n---\nx y kayak\n",
        "b.md": "---\ntitle: One two\ntags: [kayak]\n---\nx y red\n",
        "c.md": "---\ntitle: One kayak\ntags: [red]\n---\nx y two\n",
    }
    with samples.built(tmp_path / "index", files | {f"d{n}.md": "other\n" for n in range(9)}) as index:
        assert paths(index, "kayak") == ["c", "b", "a"]
        assert paths(index, "kay*") == ["c", "b", "a"]


def test_a_page_called_by_the_words_comes_before_those_that_mention_them(tmp_path: Path) -> None:
    """Even where the words are common, and its own text has none of them."""
    files = {
        "quotes.md": "---\ntitle: 'Heat pump: three quotes'\n---\nAdler asks 21,400, Brandt 24,900.\n",
        "boiler.md": "Gas, or a heat pump? The old one will not pass the next inspection.\n",
        "ines.md": "She has had a heat pump since 2023.\n",
    }
    with samples.built(tmp_path / "index", files) as index:
        assert paths(index, "heat pump")[0] == "quotes"


def test_an_old_title_is_not_hidden_behind_the_bounds(tmp_path: Path, small_bounds: None) -> None:
    """A word that most pages have is looked for in their titles first, as words and as beginnings."""
    files = {"first.md": "# Garden\n"} | {f"other{n:03}.md": "# X\n\nthe garden\n" for n in range(60)}
    with samples.built(tmp_path / "index", files) as index:
        assert paths(index, "garden")[0] == paths(index, "gar*")[0] == "first"


def test_words_that_stand_together_come_first(tmp_path: Path) -> None:
    """The best passage counts, with equal words on the page."""
    gap = "Something else is told here. " * 60
    files = {
        "far.md": f"The red one. {gap} A bicycle. {gap}\n",
        "near.md": f"The red bicycle. {gap} {gap} It was longer by some words that say nothing of it.\n",
    }
    with samples.built(tmp_path / "index", files | {f"d{n}.md": "other\n" for n in range(9)}) as index:
        assert paths(index, "bicycle red") == ["near", "far"]


def test_pages_with_all_words_come_before_those_with_some(tmp_path: Path) -> None:
    """Those with some come only where there are none with all."""
    files = {"both.md": "red bicycle\n", "one.md": "bicycle bicycle bicycle\n"}
    with samples.built(tmp_path / "index", files) as index:
        assert paths(index, "red bicycle") == ["both"]


def test_snippets_show_the_passage_on_one_line(tmp_path: Path) -> None:
    """Around the words, with marks where it was cut, whatever stands before it."""
    body = "Straße — größer ﬁn.\n\n" + "filler text " * 90 + "\n\nHere is\nthe Zürich tale of " + "more " * 90
    with samples.built(tmp_path / "index", {"a.md": body}) as index:
        (hit,) = ask(index, "zurich tale").results
        assert "Here is the Zürich tale of" in hit.snippet
        assert hit.snippet.startswith("…")
        assert hit.snippet.endswith("…")
        assert "\n" not in hit.snippet


@pytest.mark.parametrize(
    "character", ["e\u0301", "👍🏽", "👩\u200d👩\u200d👧", "🇩🇪", "한", "น้ำ", "\u1112\u1161\u11ab"]
)
@pytest.mark.parametrize("at", [0, 1, 2, 3, 500, 501, 502, 503, 504])
def test_snippets_cut_between_characters(character: str, at: int) -> None:
    """No accent, vowel sign, skin tone, joined face or half a flag is torn off, where no space is near."""
    line = snippets.line(character * 600, at)
    inner = line.removeprefix("…").removesuffix("…")
    assert inner == character * (len(inner) // len(character))
    assert 0 < len(line) <= snippets.LENGTH + 2


def test_a_text_of_marks_alone_is_cut_somewhere() -> None:
    """Nothing is looked through from end to end to find where a character begins."""
    assert 0 < len(snippets.line("\u0301" * 100_000, 50_000)) <= snippets.LENGTH + 2


def page(words: list[str], title: list[str], partition: str) -> str:
    """A page of those words."""
    return f"---\ntitle: {' '.join(title) or 'none'}\npartition: {partition}\n---\n{' '.join(words)}\n"


vaults = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=12),
        st.lists(st.sampled_from(WORDS), max_size=3),
        st.sampled_from(["mine", "mine", "theirs"]),
    ),
    min_size=1,
    max_size=40,
)
queries = st.lists(
    st.sampled_from(
        [*WORDS, "uni*", "ne*", "知識", '"kids play"', "-garden", "or", "what", "is", "blue or new"]
    ),
    min_size=1,
    max_size=4,
).map(" ".join)


@settings(max_examples=40)
@example(vault=[([], [], "theirs"), ([], ["news"], "mine")], texts=["new blue or new"])
@given(vault=vaults, texts=st.lists(queries, min_size=1, max_size=6))
def test_a_narrow_grant_answers_as_if_there_were_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, vault: list[tuple[list[str], list[str], str]], texts: list[str]
) -> None:
    """Results, order, scores, totals, snippets, cursors: none hangs on a page outside the grant."""
    files = {f"p{n:02}.md": page(*entry) for n, entry in enumerate(vault)}
    mine = {name: files[name] for name, entry in zip(files, vault, strict=True) if entry[2] == "mine"}
    with (
        pytest.MonkeyPatch.context() as patch,
        samples.built(tmp_path_factory.mktemp("all"), files) as whole,
        samples.built(tmp_path_factory.mktemp("mine"), mine) as narrow,
    ):
        for bounds in ({}, {"RANKED": 6, "RANKED_LEAST": 3, "OLDER": 3, "ANY": 8, "PREFIX": 4, "BEST": 4}):
            for name, value in bounds.items():
                patch.setattr(ordering, name, value)
            for text in texts:
                there = answers(whole, text, samples.sees("mine"))
                assert there == answers(narrow, text, samples.sees("mine"))
                assert there == answers(narrow, text, EVERYTHING)


def answers(index: Index, text: str, seen: Visibility) -> list[tuple[int, tuple[Hit, ...]]]:
    """All pieces of an answer, but for cursors, which name rows."""
    return [(piece.total, piece.results) for piece in pieces(index, text, 7, seen)]


def test_proposals_count_only_for_who_may_see_them(tmp_path: Path) -> None:
    """In totals and, for a reader with a grant, in statistics."""
    proposed = "---\nreview: {state: proposed}\n---\ngarden\n"
    with samples.built(tmp_path / "index", {"a.md": "garden\n", "b.md": proposed}) as index:
        may = Visibility(slices=frozenset({Slice("personal", "semantic", False, hidden=True)}), hidden=True)
        assert paths(index, "garden") == ["a"]
        for seen, expected in ((EVERYTHING, 1), (may, 1), (samples.sees("personal"), 0)):
            assert ask(index, "garden is:proposed", seen).total == expected
            assert ask(index, "is:proposed", seen).total == expected


def test_pages_of_another_class_move_with_their_facts(tmp_path: Path) -> None:
    """When context.yaml changes what a page is, statistics follow at once."""
    with samples.built(tmp_path / "index", {"a.md": "garden\n", "b.md": "garden shed\n"}) as index:
        with index.transaction() as tx:
            tx.execute("UPDATE pages SET partition = 'work', hidden = 0 WHERE path = 'b'")
        assert ask(index, "garden", samples.sees("personal")).total == 1
        with index.reader() as conn:
            rows = conn.execute("SELECT partition, pages FROM classes ORDER BY 1").fetchall()
        assert [tuple(row) for row in rows] == [("personal", 1), ("work", 1)]


def mixed_vault(count: int, seed: int = 4) -> Mapping[str, str]:
    """Pages of random words."""
    choose = random.Random(seed)  # noqa: S311 - a test's dice
    return {
        f"p{n:03}.md": page(choose.choices(WORDS, k=choose.randrange(12)), choose.choices(WORDS, k=2), "mine")
        for n in range(count)
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index of such pages that no test changes."""
    with samples.built(tmp_path_factory.mktemp("mixed"), mixed_vault(90)) as index:
        yield index


QUERIES = [
    "new",
    "university news",
    "garden or blue",
    "un*",
    "what is a blue garden?",
    "知",
    "",
    "path:p0",
    "blue -new",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("size", [1, 7, 30])
@pytest.mark.usefixtures("small_bounds")
def test_pieces_join_to_the_whole_answer(mixed: Index, text: str, size: int) -> None:
    """No page twice, none left out, in the order of one large piece, to the very end."""
    whole = ask(mixed, text)
    joined = [hit for piece in pieces(mixed, text, size) for hit in piece.results]
    assert joined == list(whole.results)
    assert len({hit.path for hit in joined}) == len(joined) == whole.total > 20


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small_bounds")
def test_pages_that_stay_come_just_once_while_others_change(tmp_path: Path, text: str, seed: int) -> None:
    """Edits, new pages and removals between pieces neither repeat nor hide a page that was left alone."""
    choose = random.Random(seed)  # noqa: S311 - a test's dice
    files = dict(mixed_vault(90))
    with samples.built(tmp_path / "index", files) as index:
        expected, seen, cursor, changed = set(paths(index, text)), [], None, set()
        while True:
            piece = ask(index, text, EVERYTHING, 2 + seed, cursor)
            seen += [hit.path for hit in piece.results]
            cursor = piece.cursor
            if cursor is None:
                break
            names = choose.sample(sorted(files), 2)
            fresh = f"q{len(seen):03}.md"
            changed |= {name.removesuffix(".md") for name in (*names, fresh)}
            samples.fill(
                index, {names[0]: "blue garden news\n" * choose.randrange(1, 9), fresh: "new blue 知識\n"}
            )
            with index.transaction() as tx:
                pages.remove(tx, names[1])
        stayed = [path for path in seen if path not in changed]
        assert len(set(stayed)) == len(stayed)
        assert set(stayed) == expected - changed


@pytest.mark.parametrize(
    "cursor", ["", "x", "=", "é", "AAAA", "a" * 100_000, "eJyLjgUAARUAuQ", "\0", "../..", "eyJhIjoxfQ"]
)
@pytest.mark.parametrize("text", ["new", "un*", "", "what is a blue garden?"])
def test_a_cursor_that_was_made_up_is_refused(mixed: Index, text: str, cursor: str) -> None:
    """With one code, whatever is wrong with it."""
    with pytest.raises(Invalid) as refused:
        ask(mixed, text, cursor=cursor)
    assert refused.value.code == "cursor.invalid"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=8,
)


@settings(max_examples=150)
@example(text="new", field="l", at=0, value=[[], None, None, None])
@given(
    text=st.sampled_from(["new", "un*", "", "what is a blue garden?"]),
    field=st.sampled_from("mcnbtlup"),
    at=st.integers(0, 3),
    value=json_values,
)
def test_a_forged_state_is_refused_or_answered(
    mixed: Index, text: str, field: str, at: int, value: object
) -> None:
    """Never an error of another kind, whichever part of a true one is replaced."""
    state = cursors.decode(text, str(ask(mixed, text, limit=3).cursor))
    part = state.get(field)
    forged = [*part[:at], value, *part[at + 1 :]] if isinstance(part, list) and at else value
    with suppress(Invalid):
        ask(mixed, text, limit=3, cursor=cursors.encode(text, {**state, field: forged}))


def test_a_cursor_serves_its_own_query_alone(tmp_path: Path) -> None:
    """Another query with it is refused; what the reader may see is asked anew."""
    with samples.built(tmp_path / "index", mixed_vault(40)) as index:
        cursor = ask(index, "blue", limit=5).cursor
        with pytest.raises(Invalid):
            ask(index, "new", cursor=cursor)
        assert ask(index, "blue", samples.sees("other"), cursor=cursor).results == ()


@settings(max_examples=25)
@given(
    vault=st.lists(st.lists(st.sampled_from(WORDS[:6]), max_size=30), min_size=1, max_size=20),
    chosen=st.lists(st.sampled_from(["new", "univers", "kid", "plai"]), min_size=1, max_size=4, unique=True),
)
def test_the_way_back_from_fts5s_scores_is_exact(
    tmp_path_factory: pytest.TempPathFactory, vault: list[list[str]], chosen: list[str]
) -> None:
    """Made anew with the table's own statistics, scores are FTS5's."""
    files = {f"p{n}.md": page(words, [], "mine") for n, words in enumerate(vault)}
    units = [Unit(f'"{stem}"', Term("word", stem, (stem,))) for stem in chosen]
    with samples.built(tmp_path_factory.mktemp("index"), files) as index, index.reader() as conn:
        own = rank.own_statistics(conn, units)
        fts5 = rank.scores(conn, units, " OR ".join, Condition(), own=own, wanted=own)
        anew = rank.anew(conn, units, " OR ".join, Condition(), own=own, wanted=own)
        assert [row[:2] for row in fts5] == [row[:2] for row in anew]
        assert [row[2] for row in anew] == pytest.approx([row[2] for row in fts5], rel=1e-9, abs=1e-11)

"""What a search finds: words, phrases, filters, any script, and whatever else a person types."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.index import pages
from pcpd.index.search import MOST, Results, search
from pcpd.index.store import Index
from pcpd.index.visible import EVERYTHING
from tests.index import samples

PAGES = {
    "garden.md": "---\ntitle: The garden\ntags: [home, work/outside]\nupdated: 2026-01-05T10:00:00Z\n---\n"
    "We paint the shed blue. It is done!\n",
    "notes/paint.md": "---\ntype: episodic\nlifecycle: stale\nupdated: 2026-02-01T00:00:00Z\nstatus: Draft\n"
    "x_mood: fine\n---\n# Painting day\n\nThe painters painted the e-mail 2026-01-05 at https://example.org/a?b=c.\n",
    "notes/shed.md": "---\npartition: work\nupdated: 2025-12-01T00:00:00Z\nsource: {origin: agent}\n---\n"
    "Blue like the sea, blue like the sky; (cats) [dogs] don't -> say C++ foo:bar 50% _x_.\n",
    "work/plan.md": "---\ntitle: Plan\nreview: {state: proposed}\nupdated: 2026-03-01T00:00:00Z\n---\nblue plan\n",
    "odd.md": "---\ntitle: [broken\n---\nunreadable header\n",
    "zh.md": "---\ntitle: 知识图谱\n---\n这是一个关于知识graph的测试页面。\n",
    "ja.md": "# 図書館\n\nこれは蝶番図鑑の話です。カフェで読む。\n",
    "ko.md": "# 한국어\n\n나는 도서관에서 책을 읽었다.\n",
    "th.md": "# ภาษาไทย\n\nฉันชอบน้ำส้มมาก\n",
    "hi.md": "# हिन्दी\n\nयह हिन्दी भाषा है 👍🏽\n",
    "latin.md": "# Café Straße\n\nŹródło, naïve, smörgåsbord, Łódź, coöperate.\n",
}


@contextmanager
def found_in(folder: Path, files: Mapping[str, str]) -> Iterator[Index]:
    """An index with these files."""
    with samples.built(folder, files) as index:
        yield index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """The pages above, indexed."""
    with found_in(tmp_path_factory.mktemp("index"), PAGES) as index:
        yield index


def ask(index: Index, text: str, limit: int = 20) -> Results:
    """The first results for the person."""
    with index.reader() as conn:
        return search(conn, text, EVERYTHING, limit=limit)


def paths(index: Index, text: str) -> list[str]:
    """Their paths, in order."""
    return [hit.path for hit in ask(index, text, 100).results]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("garden", {"garden"}),
        ("PAINT shed", {"garden"}),
        ("painting", {"garden", "notes/paint"}),
        ('"like the sea"', {"notes/shed"}),
        ('"the like sea"', set()),
        ("pain*", {"garden", "notes/paint"}),
        ("smör*", {"latin"}),
        ("blue -cats", {"garden"}),
        ('blue -"like the sky"', {"garden"}),
        ("blue -type:semantic", set()),
        ("garden or sky", {"garden", "notes/shed"}),
        ("unreadable", {"odd"}),
    ],
)
def test_words_phrases_prefixes_and_negations(index: Index, text: str, expected: set[str]) -> None:
    """Each operator does what it says."""
    assert set(paths(index, text)) == expected
    assert ask(index, text).total == len(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("type:episodic", {"notes/paint"}),
        ("tag:home", {"garden"}),
        ("tag:#Work", {"garden"}),
        ("tag:wor", set()),
        ("path:notes", {"notes/paint", "notes/shed"}),
        ("path:notes/ blue", {"notes/shed"}),
        ("path:/Notes/p", {"notes/paint"}),
        ("path:shed", set()),
        ("partition:work", {"notes/shed"}),
        ("lifecycle:stale", {"notes/paint"}),
        ("is:proposed", {"work/plan"}),
        ("is:proposed blue", {"work/plan"}),
        ("has:problem", {"odd"}),
        ("before:2026 path:notes", {"notes/shed"}),
        ("after:2026-02-01 path:notes", {"notes/paint"}),
        ("x-status:draft", {"notes/paint"}),
        ("x-mood:fine", {"notes/paint"}),
        ("x_mood:fine", {"notes/paint"}),
        ("x-mood:*", {"notes/paint"}),
        ("x-source.origin:agent", {"notes/shed"}),
        ("tag:home or type:episodic", {"garden", "notes/paint"}),
        ("tag:home or sea", {"garden", "notes/shed"}),
        ("type:semantic -path:notes path:garden", {"garden"}),
    ],
)
def test_filters_choose_pages_by_their_facts(index: Index, text: str, expected: set[str]) -> None:
    """Filters join with words and with one another."""
    assert set(paths(index, text)) == expected


def test_pages_without_words_come_newest_first(index: Index) -> None:
    """An empty query, or spaces alone, lists what is recent; proposals are no part of it."""
    newest = paths(index, "path:notes or path:garden")
    assert newest == ["notes/paint", "garden", "notes/shed"]
    assert "work/plan" not in paths(index, "")
    assert paths(index, "") == paths(index, "  \0\t ")
    assert ask(index, "").total == len(PAGES) - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("知", "zh"), ("知识", "zh"), ("识图", "zh"), ("知识graph", "zh"), ("graph", "zh"), ("测试页", "zh"),
        ("図", "ja"), ("番図", "ja"), ("カフェ", "ja"), ("ｶﾌｪ", "ja"),
        ("도서", "ko"), ("관", "ko"), ("한국어", "ko"),
        ("ส้ม", "th"), ("น้ำ", "th"), ("ษา", "th"),
        ("हिन्दी", "hi"), ("👍", "hi"), ("👍🏽", "hi"),
        ("cafe strasse", "latin"), ("CAFÉ", "latin"), ("zrodlo", "latin"), ("lodz", "latin"), ("naive", "latin"),
        ("cooperate", "latin"), ("cafe\u0301", "latin"),
    ],
)  # fmt: skip
def test_every_script_is_found_from_one_character_up(index: Index, text: str, expected: str) -> None:
    """Words inside a run of characters, forms, accents, emoji."""
    assert expected in paths(index, text)


@pytest.mark.parametrize(
    "text",
    [
        "e-mail", "2026-01-05", "https://example.org/a?b=c", "example.org", "a?b=c", '"e-mail', "[dogs]",
        "(cats)", "don't", "don\u2019t say", "foo:bar", "C++", "50%", "_x_", "->", "say C++ foo:bar", "sea, blue",
        "like* the sea",
        "*cats*", "^cats", "cats AND dogs", "cats NOT zebra", "NEAR(cats dogs)", "cats\0dogs", "{cats}", "cats\\dogs",
        "title:cats", "cats OR", "OR cats", "cats -", "- cats", "cats +dogs", "'cats'", '""cats""', "cats;--",
        "cats' OR 1=1", "cats\n\ndogs", "\ufeffcats", "cats \ud800",
    ],
)  # fmt: skip
def test_syntax_of_other_engines_is_text_and_is_found(index: Index, text: str) -> None:
    """Never an error, never an empty answer because of signs."""
    assert set(paths(index, text)) & {"notes/shed", "notes/paint"}


@pytest.mark.parametrize("text", ["***", "((", '"', '""', "-", "--", "&&||", "%", "'; DROP TABLE pages;--"])
def test_signs_alone_are_looked_for_as_they_stand(index: Index, text: str) -> None:
    """They may be nowhere, but they are no error; a percent sign is one, not a wildcard."""
    for path in paths(index, text):
        assert text.strip('"') in PAGES[f"{path}.md"] or text in {'"', '""'}


def test_ten_thousand_words_are_answered(index: Index) -> None:
    """Words beyond a bound do not count; the answer is not empty when a page has the first ones."""
    assert "garden" in paths(index, "garden " * 10_000)
    assert "garden" in paths(index, "garden shed " + " ".join(f"w{n}" for n in range(10_000)))
    assert ask(index, "x" * 100_000).total == 0
    assert paths(index, "-".join("zq" * 50_000)) == []


@given(text=st.text(max_size=60) | st.text(alphabet='garden -":*or\t()\0知^', max_size=40))
def test_no_query_is_an_error(index: Index, text: str) -> None:
    """Whatever is typed has an answer; its total is never less than what is shown."""
    results = ask(index, text)
    assert results.total >= len(results.results)


def test_an_unknown_property_is_text_and_a_known_one_a_filter(index: Index, tmp_path: Path) -> None:
    """`x-ray:chest` is what doctors write, unless pages have the key `ray`."""
    text = "See the x-ray:chest of May.\n"
    with found_in(tmp_path / "a", {"a.md": text}) as plain:
        assert paths(plain, "x-ray:chest") == ["a"]
    with found_in(tmp_path / "b", {"a.md": text, "b.md": "---\nray: chest\n---\n"}) as keyed:
        assert paths(keyed, "x-ray:chest") == ["b"]


def test_the_name_of_the_file_and_further_keys_are_text(tmp_path: Path) -> None:
    """A page is found by the name it has on disk, and by values of keys that pcpd does not know."""
    page = "---\ntitle: Berlin\naliases: [Spree town]\ncompany: Acme Widgets\nid: zzz9\n---\ntext\n"
    with found_in(tmp_path / "index", {"trips/holiday-2024.md": page}) as index:
        for text in ("holiday", "holiday-2024", "acme", "spree"):
            assert paths(index, text) == ["trips/holiday-2024"], text
        assert paths(index, "zzz9") == []


def test_any_word_will_do_where_no_page_has_all(index: Index) -> None:
    """And for questions; the page with the most comes first."""
    assert paths(index, "garden zebra") == ["garden"]
    assert paths(index, "who painted the shed of the zebra?")[0] == "garden"
    assert paths(index, "图谱zebra")[0] == "zh"
    assert paths(index, "zebra") == []


def test_the_last_word_of_the_longest_page_is_found_and_shown(tmp_path: Path) -> None:
    """Ten MiB are indexed whole; the snippet shows the place."""
    filler = "lorem ipsum dolor sit amet " * 400_000
    body = filler[: 10 * 1024 * 1024 - 400] + "\n\nzzyzx ends here\n"
    with found_in(tmp_path / "index", {"long.md": body, "short.md": "lorem\n"}) as index:
        (hit,) = ask(index, "zzyzx").results
        assert hit.path == "long"
        assert "zzyzx ends here" in hit.snippet
        assert set(paths(index, "lorem")) == {"long", "short"}
        with index.transaction() as tx:
            pages.remove(tx, "long.md")
        assert paths(index, "zzyzx") == []


def test_an_edited_page_is_found_by_its_new_words_alone(tmp_path: Path) -> None:
    """Taking the old text out leaves nothing of it, in any script."""
    old = "---\ntitle: Straße\ntags: [größe]\ncompany: Łódź\n---\n知识 👍 running e\u0301tude 𠮷\n"
    with found_in(tmp_path / "a", {"a.md": old, "b.md": "kept\n"}) as index:
        samples.fill(index, {"a.md": "fresh\n"})
        for text in ("strasse", "grosse", "lodz", "知", "👍", "running", "etude", "𠮷"):
            assert paths(index, text) == [], text
        assert paths(index, "fresh") == ["a"]
        with found_in(tmp_path / "b", {"b.md": "kept\n", "a.md": "fresh\n"}) as fresh:
            assert samples.rows_of(index) == samples.rows_of(fresh)


def test_a_piece_has_bounds(index: Index) -> None:
    """No limit below one or above the most is taken as it is."""
    with index.reader() as conn:
        assert len(search(conn, "", EVERYTHING, limit=0).results) == 1
        assert len(search(conn, "", EVERYTHING, limit=10 * MOST).results) == len(PAGES) - 1

"""Links lead where Obsidian leads them, and to a reader only among the pages that the reader may see."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.index import graph, links, pages
from pcpd.index.resolve import Form, form_of
from pcpd.index.store import Index
from pcpd.index.visible import EVERYTHING
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from tests.index.samples import built, fill, put_of, sees


def target_of(index: Index, source: str, visible: Visibility = EVERYTHING) -> list[str | None]:
    """Where the links of a page lead."""
    with index.reader() as reader:
        return [edge.target for edge in links.outgoing(reader, source, visible)]


def sources_of(index: Index, path: str, visible: Visibility = EVERYTHING) -> list[str]:
    """The pages that link to a page, once for each link."""
    with index.reader() as reader:
        return [edge.source for edge in links.backlinks(reader, path, visible)]


def missing_in(index: Index, visible: Visibility = EVERYTHING) -> list[tuple[str, str]]:
    """Source and target of each unresolved link, over all pieces of the list."""
    found: list[tuple[str, str]] = []
    cursor: str | None = None
    with index.reader() as reader:
        while True:
            edges, cursor = links.unresolved(reader, visible, limit=2, cursor=cursor)
            found += [(edge.source, edge.link.target) for edge in edges]
            if cursor is None:
                return found


def orphans_in(index: Index, visible: Visibility = EVERYTHING) -> list[str]:
    """All orphans, over all pieces of the list."""
    found: list[str] = []
    cursor: str | None = None
    with index.reader() as reader:
        while True:
            some, cursor = graph.orphans(reader, visible, limit=2, cursor=cursor)
            found += some
            if cursor is None:
                return found


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index."""
    with built(tmp_path / "index", {}) as opened:
        yield opened


class TestResolving:
    """The rule, case by case."""

    @pytest.mark.parametrize(
        ("target", "source", "expected"),
        [
            ("Plan", "x", "Plan"),
            ("plan.md", "x", "Plan"),
            ("PLAN", "desk/x", "Plan"),
            ("desk/plan", "x", "desk/Plan"),
            ("deep/Note", "x", "desk/deep/Note"),
            ("note", "x", "desk/deep/Note"),
            ("note", "home/x", "home/long/way/down/Note"),
            ("note", "desk/x", "desk/deep/Note"),
            ("/desk/Plan", "home/x", "desk/Plan"),
            ("/deep/Note", "home/x", None),
            ("./Plan", "desk/x", "desk/Plan"),
            ("./Plan", "desk/deep/x", None),
            ("../Plan", "desk/deep/x", "desk/Plan"),
            ("../../Plan", "desk/deep/x", "Plan"),
            ("../../../Plan", "desk/deep/x", None),
            ("desk/./deep/../Plan", "x", "desk/Plan"),
            ("Roadmap", "x", "desk/Plan"),
            ("roadmap", "home/x", "desk/Plan"),
            ("Plan B", "x", "desk/Plan"),
            ("The/Slash", "x", "desk/Plan"),
            ("cafe\u0301", "x", "caf\u00e9"),
            ("v1.2", "x", "v1.2"),
            ("v1.2.md", "x", "v1.2"),
            ("nothing", "x", None),
            ("", "x", None),
            ("/", "x", None),
            ("desk", "x", None),
            ("lan", "x", None),
            ("eep/Note", "x", None),
            ("x" * 5000, "x", None),
        ],
    )
    def test_a_target_leads_to(self, index: Index, target: str, source: str, expected: str | None) -> None:
        """Whole path, end of a path from near to far and short to long, alias; case and form do not count."""
        fill(
            index,
            {
                "Plan.md": "",
                "desk/Plan.md": "---\naliases: [Roadmap, Plan B, The/Slash, Note]\n---\n",
                "desk/deep/Note.md": "",
                "home/long/way/down/Note.md": "",
                "caf\u00e9.md": "",
                "v1.2.md": "",
            },
        )
        with index.transaction() as tx:
            pages.put_all(
                tx, [put_of(f"{source}.md", f"---\nrelations:\n- {{rel: about, target: {target!r}}}\n---\n")]
            )
        if target:
            assert target_of(index, source) == [expected]
        if expected:
            assert source in sources_of(index, expected)
        elif target:
            assert (source, target) in missing_in(index)

    def test_a_target_resolves_when_its_page_appears(self, index: Index) -> None:
        """And is unresolved again when it goes; the linking page is not touched."""
        fill(index, {"a.md": "[[b]]"})
        assert (target_of(index, "a"), missing_in(index)) == ([None], [("a", "b")])
        fill(index, {"deep/B.md": ""})
        assert (target_of(index, "a"), missing_in(index)) == (["deep/B"], [])
        fill(index, {"b.md": ""})
        assert target_of(index, "a") == ["b"]
        with index.transaction() as tx:
            pages.remove(tx, "b.md", "deep/B.md")
        assert target_of(index, "a") == [None]

    def test_links_keep_what_was_written(self, index: Index) -> None:
        """Kind, relation, heading, display text and line, in the order of the text."""
        text = (
            "---\nrelations:\n- {rel: supersedes, target: Old}\n---\n"
            "[[New#Part|shown]] ![[pic]] [text](sub/New.md)\n"
        )
        fill(index, {"a.md": text})
        with index.reader() as reader:
            found = [edge.link for edge in links.outgoing(reader, "a", EVERYTHING)]
        _, page, _ = put_of("a.md", text)
        assert page is not None
        assert tuple(found) == page.links
        assert len(found) == 4

    def test_links_to_attachments_are_not_missing(self, index: Index) -> None:
        """The person's list names only what leads to nothing; an agent learns of no attachment."""
        fill(index, {"a.md": "![[pic.png]] [[img/Pic.PNG]] [[none.png]] ![[other.png]]", "img/pic.png": "x"})
        assert missing_in(index) == [("a", "none.png"), ("a", "other.png")]
        assert len(missing_in(index, sees("personal"))) == 4
        with index.reader() as reader:
            told = [edge.file for edge in links.outgoing(reader, "a", EVERYTHING)]
            secret = [edge.file for edge in links.outgoing(reader, "a", sees("personal"))]
        assert (told, secret) == (["img/pic.png", "img/pic.png", None, None], [None] * 4)


class TestTheGraph:
    """Backlinks, orphans, neighbours."""

    def test_backlinks_come_by_page_and_place(self, index: Index) -> None:
        """Each link once; links that only look alike lead elsewhere."""
        fill(
            index,
            {
                "hub.md": "[[hub]]",
                "b.md": "[[hub]] and [[HUB.md]]",
                "a/x.md": "[[hub]]",
                "sub/hub.md": "",
                "sub/y.md": "[[hub]]",
                "sub/z.md": "[[./hub]]",
            },
        )
        assert sources_of(index, "hub") == ["a/x", "b", "b", "hub", "sub/y"]
        assert sources_of(index, "sub/hub") == ["sub/z"]
        with index.reader() as reader:
            assert len(links.backlinks(reader, "hub", EVERYTHING, limit=2)) == 2

    def test_an_orphan_is_a_page_that_no_other_page_links_to(self, index: Index) -> None:
        """Its own link to itself does not count, nor its links to others."""
        fill(index, {"a.md": "[[b]]", "b.md": "", "c.md": "[[c]]", "d.md": "[[nothing]]", "e.md": "[[d]]"})
        assert orphans_in(index) == ["a", "c", "e"]

    def test_neighbours_are_walked_in_both_directions(self, index: Index) -> None:
        """To the depth asked for, nearest first, each page once."""
        fill(index, {"a.md": "[[b]]", "b.md": "[[c]]", "c.md": "[[d]] [[a]]", "d.md": "", "z.md": "[[a]]"})
        with index.reader() as reader:
            found = {
                depth: [
                    (page.path, page.distance)
                    for page in graph.neighbours(reader, "a", EVERYTHING, depth=depth).pages
                ]
                for depth in (0, 1, 2, 9)
            }
        assert found[0] == []
        assert found[1] == [("b", 1), ("c", 1), ("z", 1)]
        assert found[2] == found[9] == [("b", 1), ("c", 1), ("z", 1), ("d", 2)]

    def test_a_walk_has_bounds_and_says_when_it_met_them(self, index: Index) -> None:
        """A hub of a large vault is answered in pieces."""
        fill(index, {"hub.md": "", **{f"{n:03}.md": "[[hub]]" for n in range(50)}})
        with index.reader() as reader:
            some = graph.neighbours(reader, "hub", EVERYTHING, limit=20)
            every = graph.neighbours(reader, "hub", EVERYTHING, limit=50)
        assert (len(some.pages), some.complete) == (20, False)
        assert (len(every.pages), every.complete) == (50, True)

    @pytest.mark.parametrize("path", ["none", "", "\ud800", "a\0", "../x"])
    def test_what_is_no_page_has_no_links(self, index: Index, path: str) -> None:
        """An empty answer, the same for all that is not there."""
        fill(index, {"a.md": "[[none]]"})
        with index.reader() as reader:
            answer = links.answer(reader, path, EVERYTHING, depth=3)
        assert answer == links.LinksAnswer((), (), graph.Neighbours((), complete=True))

    def test_a_cursor_of_another_list_is_refused(self, index: Index) -> None:
        """Each list knows its own."""
        fill(index, {"a.md": "[[x]] [[y]]", "b.md": ""})
        with index.reader() as reader:
            _, unresolved = links.unresolved(reader, EVERYTHING, limit=1)
            _, orphans = graph.orphans(reader, EVERYTHING, limit=1)
            with pytest.raises(Invalid):
                graph.orphans(reader, EVERYTHING, cursor=unresolved)
            with pytest.raises(Invalid):
                links.unresolved(reader, EVERYTHING, cursor=orphans)

    def test_many_pages_of_one_name_are_no_trap(self, index: Index) -> None:
        """Every folder has its README, and every page links to `README`."""
        fill(index, {f"{n}/README.md": "[[README]] [[x]]" for n in range(3_000)} | {"x.md": "[[README]]"})
        assert sources_of(index, "0/README") == ["0/README", "x"]
        assert len(sources_of(index, "x")) == 1000
        with index.reader() as reader:
            found, _ = graph.orphans(reader, EVERYTHING, limit=10_000)
            around = graph.neighbours(reader, "x", EVERYTHING, depth=3, limit=10_000)
        assert (len(found), found[:2]) == (2_999, ["1/README", "10/README"])
        assert (len(around.pages), around.complete) == (3_000, True)


names = st.sampled_from(("a", "A", "b", "n", "x/a", "x/b", "x/y/a", "X/n", "y/n", "x/y/n", "long/way/n"))
targets = st.sampled_from(
    (
        "a", "A", "b", "n", "x/a", "y/a", "/a", "/x/a", "./a", "../a", "../n", "../../n", "y/n", "alias", "x",
        "way/N", "/n",
    )
)  # fmt: skip
vaults = st.dictionaries(
    names,
    st.tuples(
        st.lists(targets, max_size=4), st.sampled_from(("", "alias", "n", "y/n")), st.sampled_from(("p", "q"))
    ),
    max_size=9,
)
Vault = Mapping[str, tuple[list[str], str, str]]


def files_of(vault: Vault) -> dict[str, str]:
    """The files of a generated vault."""
    return {
        f"{path}.md": f"---\naliases: [{alias}]\npartition: {partition}\n---\n"
        + " ".join(f"[[{target}]]" for target in wanted)
        for path, (wanted, alias, partition) in vault.items()
    }


def slowly_resolved(target: str, source: str, vault: Vault) -> str | None:
    """The rule in words, over all pages, one after the other."""
    folder = lookup_key(source).rpartition("/")[0]
    wanted = lookup_key(target)
    whole = wanted.startswith(("/", "./", "../"))
    if wanted.startswith((".",)):
        place = folder.split("/") if folder else []
        for segment in wanted.split("/"):
            if segment == "..":
                if not place:
                    return None
                place.pop()
            elif segment != ".":
                place.append(segment)
        wanted = "/".join(place)
    wanted = wanted.strip("/")
    ordered = sorted(vault, key=lambda path: (len(lookup_key(path)), lookup_key(path), path))
    for path in ordered:
        if lookup_key(path) == wanted:
            return path
    if whole:
        return None
    for matches in (
        [path for path in ordered if lookup_key(path).endswith(f"/{wanted}")],
        [path for path in ordered if vault[path][1] == wanted],
    ):
        near = [path for path in matches if not folder or lookup_key(path).startswith(f"{folder}/")]
        if matches:
            return (near or matches)[0]
    return None


@given(vaults)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_the_graph_is_the_rule_applied_to_every_link(
    tmp_path_factory: pytest.TempPathFactory, vault: Vault
) -> None:
    """Outgoing links, backlinks, unresolved targets and orphans all follow from one rule."""
    edges = [
        (source, target, slowly_resolved(target, source, vault))
        for source, (wanted, _, _) in vault.items()
        for target in wanted
    ]
    with built(tmp_path_factory.mktemp("index"), files_of(vault)) as index:
        for source, (wanted, _, _) in vault.items():
            assert target_of(index, source) == [slowly_resolved(target, source, vault) for target in wanted]
            assert sorted(sources_of(index, source)) == sorted(edge[0] for edge in edges if edge[2] == source)
        assert sorted(missing_in(index)) == sorted((edge[0], edge[1]) for edge in edges if edge[2] is None)
        linked = {edge[2] for edge in edges if edge[0] != edge[2]}
        assert sorted(orphans_in(index)) == sorted(set(vault) - linked)


@given(vaults)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_a_page_outside_the_grant_is_as_if_it_had_never_been(
    tmp_path_factory: pytest.TempPathFactory, vault: Vault
) -> None:
    """Every answer of the graph equals that of a vault without it."""
    seen = {path: page for path, page in vault.items() if page[2] == "p"}
    folder = tmp_path_factory.mktemp("vault")
    with built(folder / "all", files_of(vault)) as every, built(folder / "seen", files_of(seen)) as some:
        reader_sees = sees("p")
        assert missing_in(every, reader_sees) == missing_in(some)
        assert orphans_in(every, reader_sees) == orphans_in(some)
        with every.reader() as here, some.reader() as there:
            for path in vault:
                assert links.answer(here, path, reader_sees, depth=3) == links.answer(
                    there, path, EVERYTHING, depth=3
                )


@given(st.text(max_size=30), st.sampled_from(("", "a", "a/b")))
def test_any_target_has_a_form(target: str, folder: str) -> None:
    """Whatever a person types between brackets; forms hold no dots and no empty segments."""
    form = form_of(target, folder)
    assert form == Form(form.tail, form.exact)
    assert not form.tail or all(segment not in {"", ".", ".."} for segment in form.tail.split("/"))

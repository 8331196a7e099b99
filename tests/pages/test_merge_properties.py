"""Random pages and random edits of two sides: merging invents nothing, loses nothing, and is the same both ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.pages import frontmatter
from pcpd.pages.frontmatter import Plain
from pcpd.pages.merge import Merged, merge
from tests.pages.test_frontmatter_properties import Written, loads, pages, plain_11, plain_12

Keys = dict[str, Any]
STYLES = ("flow", "block", "dashes")
KEYS = ["title", "tags", "aliases", "x_map", "updated", "ver"]
SCALARS = ["a", "no", "1.10", "012", "'q'", '"d"', "2026-01-05", "\u77e5"]
TIMES = [f"2026-01-0{day}T10:00:00Z" for day in range(1, 9)]
ITEMS = ["a", "b", "'c'", "1.10", "no", "{k: v}", "two words"]
WORDS = [f"w{number}" for number in range(12)]


@dataclass
class Model:
    """A page as its keys and paragraphs; `style` is how it lays out lists and maps."""

    keys: Keys = field(default_factory=dict)
    paragraphs: list[list[str]] = field(default_factory=list)
    style: str = "flow"
    newline: str = "\n"
    is_ended: bool = True

    def data(self) -> bytes:
        """Gives the bytes of the page."""
        yaml = "".join(self._lines(key, value) for key, value in self.keys.items())
        body = "\n\n".join(" ".join(words) for words in self.paragraphs) + "\n" * self.is_ended
        return (f"---\n{yaml}---\n{body}" if yaml else body).replace("\n", self.newline).encode()

    def _lines(self, key: str, value: Any) -> str:
        if isinstance(value, str):
            return f"{key}: {value}\n"
        is_list = isinstance(value, list)
        parts = value if is_list else [f"{name}: {item}" for name, item in value.items()]
        if self.style == "flow" or not parts:
            return f"{key}: {'[' if is_list else '{'}{', '.join(parts)}{']' if is_list else '}'}\n"
        indent = "" if self.style == "dashes" and is_list else "  "
        return f"{key}:\n" + "".join(f"{indent}{'- ' if is_list else ''}{part}\n" for part in parts)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Draws a page."""
    keys: Keys = {}
    for key in draw(st.permutations(KEYS)):
        if draw(st.booleans()):
            keys[key] = draw(values(key))
    return Model(
        keys,
        draw(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), max_size=3)),
        draw(st.sampled_from(STYLES)),
        draw(st.sampled_from(["\n", "\r\n"])),
        draw(st.booleans()),
    )


def values(key: str) -> st.SearchStrategy[Any]:
    """Draws a value for a key."""
    if key in {"tags", "aliases"}:
        return st.lists(st.sampled_from(ITEMS), max_size=4, unique=True)
    if key == "x_map":
        return st.dictionaries(st.sampled_from(["k", "l", "m"]), st.sampled_from(SCALARS), max_size=3)
    return st.sampled_from(TIMES if key == "updated" else SCALARS)


@st.composite
def edited(draw: st.DrawFn, base: Model, word: str) -> Model:
    """Draws what one side made of a page; new words in its text begin with `word`."""
    keys: Keys = {}
    for key in KEYS:
        change = draw(st.sampled_from(["keep", "keep", "set", "remove"]))
        if change == "set":
            keys[key] = draw(values(key))
        elif change == "keep" and key in base.keys:
            keys[key] = base.keys[key]
    order = [key for key in base.keys if key in keys] + [key for key in keys if key not in base.keys]
    paragraphs = [list(words) for words in base.paragraphs]
    for number in range(draw(st.integers(0, 3))):
        _edit_text(draw, paragraphs, f"{word}{number}")
    style = draw(st.sampled_from([base.style, base.style, *STYLES]))
    return Model({key: keys[key] for key in order}, paragraphs, style, base.newline, draw(st.booleans()))


def _edit_text(draw: st.DrawFn, paragraphs: list[list[str]], word: str) -> None:
    """Changes the text in one place."""
    at = draw(st.integers(0, len(paragraphs)))
    if at == len(paragraphs) or draw(st.booleans()):
        paragraphs.insert(at, [word, f"{word}x"])
        return
    place = draw(st.integers(0, len(paragraphs[at])))
    change = draw(st.sampled_from(["insert", "replace", "delete"]))
    paragraphs[at][place : place + (change != "insert")] = [] if change == "delete" else [word]
    if not paragraphs[at]:
        del paragraphs[at]


@st.composite
def sides(draw: st.DrawFn) -> tuple[Model, Model, Model]:
    """Draws a page and what two sides made of it."""
    base = draw(models())
    return base, draw(edited(base, "our")), draw(edited(base, "their"))


def read(data: bytes) -> tuple[dict[str, Any], list[str]]:
    """Gives the keys, lists without order, and the words of a page."""
    block = frontmatter.split(data)
    return {key: unordered(value) for key, value in frontmatter.read(data).items()}, block.body.split()


def unordered(value: Any) -> Any:
    """Gives a value in which the order of a list does not count."""
    if isinstance(value, list):
        return sorted(map(repr, value))
    return value


@settings(max_examples=200)
@given(st.tuples(models(), models()))
def test_what_one_side_alone_changed_is_taken_whole(both: tuple[Model, Model]) -> None:
    """A side that changed nothing, or the same, leaves nothing to decide."""
    base, other = (model.data() for model in both)
    assert merge(base, base, other) == Merged(other)
    assert merge(base, other, base) == Merged(other)
    assert merge(base, other, other) == Merged(other)
    assert merge(b"", other, other) == Merged(other)


@settings(max_examples=300)
@given(sides())
def test_a_merge_has_what_either_side_wrote_and_nothing_else(drawn: tuple[Model, Model, Model]) -> None:
    """Each word and each value that a side added is there, each that a side removed is gone, and it parses."""
    base, ours, theirs = drawn
    data = merge(base.data(), ours.data(), theirs.data()).data
    if data is None:
        return
    keys, words = read(data)
    known, mine, others = (read(model.data()) for model in drawn)
    assert set(words) >= (set(mine[1]) | set(others[1])) - set(known[1])
    assert set(words) <= set(mine[1]) | set(others[1])
    assert set(words) >= set(mine[1]) & set(others[1]) & set(known[1])
    for key in KEYS:
        check_key(key, keys, (known[0], mine[0], others[0]))
    for plain in (plain_11, plain_12):
        assert loads(plain, data) is not None


def check_key(key: str, keys: Mapping[str, Any], versions: tuple[Mapping[str, Any], ...]) -> None:
    """Asserts that a key has what it must have."""
    base, mine, other = (version.get(key) for version in versions)
    got = keys.get(key)
    if other in (mine, base):
        assert got == mine
    elif mine == base:
        assert got == other
    elif isinstance(mine, list) and isinstance(other, list):
        known = set(base or [])
        removed = known - set(mine) | known - set(other)
        assert set(got or []) == (set(mine) | set(other)) - removed
    elif isinstance(mine, dict) and isinstance(other, dict):
        for name in {*(base or {}), *mine, *other}:
            check_key(name, got or {}, (base or {}, mine, other))
    else:
        assert key == "updated"
        assert got == max(str(mine), str(other))


@settings(max_examples=300)
@given(sides())
def test_a_merge_is_the_same_from_either_side(drawn: tuple[Model, Model, Model]) -> None:
    """Two devices that merge each other's version come to the same page, or to the same clashes."""
    base, ours, theirs = (model.data() for model in drawn)
    here, there = merge(base, ours, theirs), merge(base, theirs, ours)
    assert (here.data is None) == (there.data is None)
    if here.data is not None and there.data is not None:
        assert read(here.data) == read(there.data)
        assert frontmatter.split(here.data).body == frontmatter.split(there.data).body
    mirrored = sorted((clash.key, clash.theirs or "", clash.ours or "") for clash in there.clashes)
    assert sorted((clash.key, clash.ours or "", clash.theirs or "") for clash in here.clashes) == mirrored


@settings(max_examples=200)
@given(pages(), pages(), pages())
def test_pages_as_people_write_them_merge_alike_from_either_side(
    base: Written, ours: Written, theirs: Written
) -> None:
    """Whatever the layout: what merges on one device merges on the other, and means the same."""
    versions = [page.data() for page in (base, ours, theirs)]
    here, there = merge(*versions), merge(versions[0], versions[2], versions[1])
    assert (here.data is None) == (there.data is None)
    if here.data is not None and there.data is not None:
        assert read(here.data) == read(there.data)


@settings(max_examples=150)
@given(sides(), st.sampled_from(["ours", "theirs"]))
def test_a_preferred_side_decides_keys_and_the_other_value_is_told(
    drawn: tuple[Model, Model, Model], prefer: Any
) -> None:
    """Text still clashes; a key has what the preferred side has, and the clash says what both had."""
    base, ours, theirs = drawn
    open_clashes = merge(base.data(), ours.data(), theirs.data()).clashes
    merged = merge(base.data(), ours.data(), theirs.data(), prefer=prefer)
    assert [clash.key for clash in merged.clashes] == [clash.key for clash in open_clashes]
    assert (merged.data is None) == any(clash.key == "" for clash in merged.clashes)
    if merged.data is None:
        return
    side = read((ours if prefer == "ours" else theirs).data())[0]
    keys = read(merged.data)[0]
    for clash in merged.clashes:
        assert clash.chosen == prefer
        if clash.key in KEYS:
            assert keys.get(clash.key) == side.get(clash.key)


@settings(max_examples=300)
@given(pages(), pages(), pages())
def test_pages_as_people_write_them_merge_or_clash(base: Written, ours: Written, theirs: Written) -> None:
    """Comments, anchors, block scalars, tabs and tags: a result parses, and has the keys that it must have."""
    versions = [page.data() for page in (base, ours, theirs)]
    for prefer in (None, "ours", "theirs"):
        merged = merge(*versions, prefer=prefer)
        if merged.data is None:
            assert any(clash.chosen is None for clash in merged.clashes)
            continue
        keys = frontmatter.read(merged.data)
        told = {clash.key.partition(".")[0] for clash in merged.clashes}
        if "---" not in told:
            common = set(ours.names) & set(theirs.names)
            added = (set(ours.names) ^ set(theirs.names)) - set(base.names)
            assert common | added <= set(keys) | told
            assert set(keys) <= set(ours.names) | set(theirs.names)
        for comment in ("# why", "# note"):
            has = [comment.encode() in data for data in versions]
            if has[1] and has[2]:
                assert comment.encode() in merged.data or told


@settings(max_examples=150)
@given(pages())
def test_keys_that_both_sides_added_leave_every_other_byte(base: Written) -> None:
    """Two agents that set keys of their own on one page: taking the keys away again gives the page back."""
    data = base.data()
    ours = frontmatter.set_key(data, "x_ours", Plain("1.10"))
    theirs = frontmatter.append_item(data, "x_theirs", "a: b")
    merged = merge(data, ours, theirs).data
    assert merged is not None
    assert list(frontmatter.read(merged)) == [*base.names, "x_ours", "x_theirs"]
    assert frontmatter.remove_key(merged, "x_theirs") == ours

"""Merging two versions of a page: what people and agents do on two devices, and what comes of it."""

import pytest

from pcpd.pages import frontmatter
from pcpd.pages.merge import Clash, Merged, Side, merge

PAGE = b"""\xef\xbb\xbf---
# my page
title:   "A: b"   # why
ver: 1.10
when: 2026-01-05
tags: [ b,a , "c" ]
updated: 2026-01-05T10:00:00Z
aliases:
  - one # first
  - two
lit: |
  text

map:
  k: v # kept
  l: w
# the end
---

# Boiler

The old boiler is in the cellar, and it works well enough.

- gas
- oil

Last words.
""".replace(b"\n", b"\r\n")
CHINESE = "\u6211\u559c\u6b61\u5403\u860b\u679c!\u6a58\u5b50\n".encode()
MORE = "\u5f88".encode()


def made(*changes: tuple[str, str]) -> bytes:
    """The page with texts replaced, each of which stands in it once."""
    data = PAGE
    for old, new in changes:
        data = applied(data, old, new)
    return data


def applied(data: bytes, old: str, new: str) -> bytes:
    """A page with one text replaced, which stands in it once."""
    before, after = (text.replace("\n", "\r\n").encode() for text in (old, new))
    assert data.count(before) == 1, old
    return data.replace(before, after)


def head(yaml: str) -> bytes:
    """A page of front matter alone."""
    return f"---\n{yaml}---\n".encode()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(("ver: 1.10", "ver: 1.20"), ("when: 2026-01-05", "when: 2026-01-06"), id="two keys, side by side"),
        pytest.param(("title:   ", "x: 012 # x\ntitle:   "), ("# the end", "y: 'no' # y\n# the end"), id="new keys"),
        pytest.param(('"A: b"', "B"), ("# why", "# because"), id="a value, and the comment behind it"),
        pytest.param((' "c" ]', ' "c", d ]'), ("[ b,a", "[ z, b,a"), id="items at both ends of a list in brackets"),
        pytest.param(("  - two", "  - two\n  - 'no' # new"), ("  - one # first\n", ""), id="items of a list in lines"),
        pytest.param(("k: v # kept", "k: v2 # kept"), ("  l: w", "  # more\n  l: w\n  m: 1.10"), id="keys of a map"),
        pytest.param(("  l: w\n", ""), ("k: v #", "k: 'v' #"), id="keys of a map, one goes"),
        pytest.param(("# my page", "# our page"), ("# the end", "# the very end"), id="comments"),
        pytest.param(("lit: |\n  text", "lit: |\n  other\n  text"), ("ver: 1.10\n", ""), id="a text in lines"),
        pytest.param(("old boiler", "old gas boiler"), ("well enough", "badly"), id="words of one line"),
        pytest.param(("- gas\n", "- gas\n- wood\n"), ("# Boiler", "# The boiler"), id="lines of the text"),
        pytest.param(("words.\n", "words.\n\nMore.\n"), ("Last", "My last"), id="text after a changed paragraph"),
        pytest.param(("# Boiler\n", "News.\n\n# Boiler\n"), ("Boiler", "Gas"), id="text before a changed paragraph"),
        pytest.param(("ver: 1.10", "ver: 2"), ("Last words.\n", ""), id="a key, and the text"),
    ],
)  # fmt: skip
def test_changes_in_different_places_are_both_there_and_nothing_else_differs(
    ours: tuple[str, str], theirs: tuple[str, str]
) -> None:
    """BOM, line ends, quotes, comments and spacing of everything else stay, from whichever side it is merged."""
    expected = applied(applied(PAGE, *ours), *theirs)
    assert merge(PAGE, made(ours), made(theirs)) == Merged(expected)
    assert merge(PAGE, made(theirs), made(ours)) == Merged(expected)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        ("", "tags: [a, b]\n", "tags: [a, c]\n", "tags: [a, b, c]\n"),
        ("tags: [a, b, c]\n", "tags: [b, c, d]\n", "tags: [a, b, e]\n", "tags: [b, d, e]\n"),
        ("tags: [a, b]\n", "tags: [a]\n", "tags: [b]\n", "tags: []\n"),
        ("tags:\n- a\n- b\n", "tags:\n- a\n", "tags:\n- b\n", "tags: []\n"),
        ("tags:\n", "tags:\n- a\n", "tags: [1.10]\n", "tags:\n- 1.10\n- a\n"),
        ("tags:\n", "tags: ['x, y']\n", "tags:\n- p, q\n- |\n  z\n", 'tags: ["p, q", "z\\n", \'x, y\']\n'),
        ("a: [1, 1]\n", "a: [1, 1, 2]\n", "a: [1]\n", "a: [1, 2]\n"),
        ("r: [{rel: about, target: x}]\n", "r: []\n", "r: [{rel: about, target: x}, {rel: a, target: y}]\n",
         "r: [{rel: a, target: y}]\n"),
        ("updated: 2026-01-05\n", "updated: 2026-01-06T09:00:00+02:00\n", "updated: 2026-01-06T08:00:00Z # t\n",
         "updated: 2026-01-06T08:00:00Z # t\n"),
        ("expires: 2026-01-05 # o\n", "expires: 2026-01-07 # o\n", "expires: 2026-01-06\n", "expires: 2026-01-07\n"),
        ("a: 1\n", "a: 1 # x\n", "a: 1 # y\n", "a: 1 # x # y\n"),
        ("a: 1\nupdated: 2026-01-05\n", "a: 1\nupdated: 2026-01-06\n# end\n",
         "n: 0\n# above\na: 1\nupdated: 2026-01-07\n", "n: 0\n# above\na: 1\nupdated: 2026-01-07\n# end\n"),
        ("a: 1\nb: 2\nc: 3\nupdated: 2026-01-05\n", "a: 1\n# b\nb: 2\nupdated: 2026-01-06\n# end\n",
         "a: 1\n# c\nc: 3\nupdated: 2026-01-07\n# all\n", "a: 1\n# c\n# b\nupdated: 2026-01-07\n# all\n# end\n"),
        ("m: {a: , b: 1}\n", "m: {a: , b: 2}\n", "m: {a: x, n: 3, b: 1}\n", "m: {a: x, n: 3, b: 2}\n"),
        ("", "t: [b, a]\n", "t:\n  - a # x\n", "t:\n  - b\n  - a # x\n"),
        ("", "t:\n- a\n", "t: # why\n- a\n- b\n", "t: # why\n- a\n- b\n"),
        ("a: 1\n", "a: 2\nb: 3\n", "a: 2\nb: 3\nc: 4\n", "a: 2\nb: 3\nc: 4\n"),
        ("a: no\n", "a: no\nb: 1\n", "c: 2\n", "b: 1\nc: 2\n"),
        ("m: {a: 1, b: 2}\n", "m: {a: 1, b: 2, c: 012}\n", "m: {a: 'x'}\n", "m: {a: 'x', c: 012}\n"),
        ("m: {a: 1}\n", "m:\n  a: 1\n  b: 2\n", "m: {a: 1, c: 1.10}\n", "m:\n  a: 1\n  b: 2\n  c: 1.10\n"),
        ("review: {state: proposed}\n", "review: {state: approved, verified: [{by: a, at: 1}]}\n",
         "review: {state: approved, verified: [{by: b, at: 2}]}\n",
         "review: {state: approved, verified: [{by: a, at: 1}, {by: b, at: 2}]}\n"),
        ("a: &x 1\nb: *x\n", "a: &x 1\nb: *x\nc: 3\n", "n: 0\na: &x 1\nb: *x\n", "n: 0\na: &x 1\nb: *x\nc: 3\n"),
        ("# end\n", "# end\na: 1\n", "# end\nb: 2\n", "# end\na: 1\nb: 2\n"),
        ("{a: 1}\n", "{a: 1, b: 2}\n", "{a: 1, c: 3}\n", "{a: 1, b: 2, c: 3}\n"),
        ("? a\n: 1\nb: 2\nc: 3\n", "? a\n: 1\nb: 3\nc: 3\n", "? a\n: 1\nb: 2\nc: 3\nd: 4\n",
         "? a\n: 1\nb: 3\nc: 3\nd: 4\n"),
    ],
)  # fmt: skip
def test_front_matter_merges_by_meaning(base: str, ours: str, theirs: str, result: str) -> None:
    """Lists as sets in order, maps by their keys, times to the later; values in the spelling they were given."""
    assert merge(head(base), head(ours), head(theirs)) == Merged(head(result))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "key", "texts"),
    [
        ("a: 1.10\n", "a: 1.20\n", "a: '1.20'\n", "a", ("1.10", "1.20", "'1.20'")),
        ("a: 1\n", "", "a: 2\n", "a", ("1", None, "2")),
        ("a: 1\n", "a: 2\n", "b: 3\n", "a", ("1", "2", None)),
        ("", "a: 1\n", "a: 2\n", "a", (None, "1", "2")),
        ("a: []\n", "a: [x]\n", "a: x\n", "a", ("[]", "[x]", "x")),
        ("m: {k: 1}\n", "m: {k: 2}\n", "m: {k: 3}\n", "m.k", ("1", "2", "3")),
        ("updated: 2026\n", "updated: soon\n", "updated: 2026-01-06\n", "updated", ("2026", "soon", "2026-01-06")),
        ("source: {by: a}\n", "source: {by: b}\n", "source: {by: a, at: 1}\n",
         "source", ("{by: a}", "{by: b}", "{by: a, at: 1}")),
        ("source:\n  by: a\n", "source:\n  by: b\n", "source:\n  by: a\n  at: 1\n",
         "source", ("by: a", "by: b", "by: a\n  at: 1")),
    ],
)  # fmt: skip
def test_what_both_changed_clashes_and_a_preferred_side_decides(
    base: str, ours: str, theirs: str, key: str, texts: tuple[str | None, str | None, str | None]
) -> None:
    """Nothing is merged by guessing; who decides is told what the other side had."""
    versions = [head(text) for text in (base, ours, theirs)]
    assert merge(*versions) == Merged(None, (Clash(key, *texts),))
    mine = merge(*versions, prefer="ours")
    assert mine.clashes == (Clash(key, *texts, "ours"),)
    assert mine.data is not None
    other = merge(*versions, prefer="theirs")
    assert other.data is not None
    name = key.partition(".")[0]
    assert frontmatter.read(mine.data).get(name) == frontmatter.read(head(ours)).get(name)
    assert frontmatter.read(other.data).get(name) == frontmatter.read(head(theirs)).get(name)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("old boiler", "new boiler"), ("old boiler", "huge boiler")),
        (("- oil\n", ""), ("- oil", "- oil, still")),
        (("Last words.\n", "Last words.\n\nOurs.\n"), ("Last words.\n", "Last words.\n\nTheirs.\n")),
        (("The old boiler is in the cellar, and it works well enough.", "We know little about it."),
         ("well enough", "badly")),
        (("Last words.\n", "My last words.\n\nOurs.\n"), ("Last words.\n", "Last words.\n\nTheirs.\n")),
        (("boiler is in the cellar, and it works well enough.", "boiler was sold to a neighbour long ago."),
         ("The old boiler is", "An old boiler is")),
        (("cellar, and it works well enough.\n\n", "cellar, and it works well enough.\n"), ("old", "new")),
    ],
)  # fmt: skip
def test_text_that_both_changed_clashes_whoever_is_preferred(
    ours: tuple[str, str], theirs: tuple[str, str]
) -> None:
    """The same words, a line that one side removed, two additions in one place, a paragraph written anew."""
    for prefer in ("ours", "theirs", None):
        merged = merge(PAGE, made(ours), made(theirs), prefer=prefer)
        assert merged.data is None
        assert [clash.key for clash in merged.clashes] == [""]
        assert merged.clashes[0].ours != merged.clashes[0].theirs


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        (b"", b"---\na: 1\n---\nText\n", b"---\nb: 2\n---\nText\n", b"---\na: 1\nb: 2\n---\nText\n"),
        (b"", b"One\n\nTwo\n", b"One\n\nTwo\n\nThree\n", b"One\n\nTwo\n\nThree\n"),
        (b"x", b"---\na: 1\n---\nx", b"---\nb: 2\n---\nx", b"---\na: 1\nb: 2\n---\nx"),
        (b"x\n", b"---\na: 1\n---\nx\n", b"x\ny\n", b"---\na: 1\n---\nx\ny\n"),
        (b"---\na: 1\n---\nx\n", b"x\n", b"---\na: 1\n---\nx\ny\n", b"x\ny\n"),
        (b"---\na: 1\n---", b"---\na: 2\n---", b"---\na: 1\n---\nx", b"---\na: 2\n---\nx"),
        (b"---\na: 1\n---\nx", b"---\na: 1\n---\nx\n", b"---\na: 2\n---\nx", b"---\na: 2\n---\nx\n"),
        (b"a\n", b"\xef\xbb\xbfa\n", b"a\nb\n", b"\xef\xbb\xbfa\nb\n"),
        (b"a\n", b"a\nb\n", b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfa\nb\n"),
        (b"\xef\xbb\xbfa\n", b"a\n", b"\xef\xbb\xbfa\nb\n", b"a\nb\n"),
        (b"a\n\nb", b"A\n\nb", b"a\n\nc", b"A\n\nc"),
        (b"a\n\nb\n", b"A\n\nb\n", b"a\n\nc", b"A\n\nc"),
        (b"a\nb\nc\n", b"a\r\nb\r\nc\r\n", b"a\nb\nc\nd\n", b"a\r\nb\r\nc\r\nd\r\n"),
        (b"a\r\nb\nc\r\n", b"a1\r\nb\nc\r\n", b"a\nb\nc\nd\n", b"a1\r\nb\nc\r\nd\r\n"),
        (b"---\na: [\n---\nx\n", b"---\na: [\n---\ny\n", b"---\na: [\n---\nx\nz\n", None),
        (b"---\na: [\n---\nx\n\n1\n", b"---\na: [\n---\ny\n\n1\n", b"---\na: [\n---\nx\n\n2\n",
         b"---\na: [\n---\ny\n\n2\n"),
        (b"---\na: [\n---\nx\n", b"---\na: 1\n---\nx\n", b"---\na: 1\nb: 2\n---\nx\n", b"---\na: 1\nb: 2\n---\nx\n"),
        (CHINESE, CHINESE.replace(b"!", MORE), MORE + CHINESE, MORE + CHINESE.replace(b"!", MORE)),
    ],
)  # fmt: skip
def test_the_parts_of_a_page_come_together(
    base: bytes, ours: bytes, theirs: bytes, result: bytes | None
) -> None:
    """Front matter that comes or goes, pages that both sides added, ends of lines and files, broken front matter."""
    assert merge(base, ours, theirs).data == result


def test_a_comment_outlives_the_key_that_the_other_side_removed() -> None:
    """Whichever side wrote it, above a key that it left as it was."""
    base, mine, other = head("a: 1\nb: 2\nc: 3\n"), head("a: 1\n# mine\nb: 2\nc: 3\n"), head("a: 1\nc: 4\n")
    assert merge(base, mine, other).data == merge(base, other, mine).data == head("a: 1\n# mine\nc: 4\n")


def test_a_line_of_dashes_in_the_text_never_becomes_front_matter() -> None:
    """Where one side gave up the front matter, text that would be taken for it clashes."""
    head_alone = b"---\na: 1\n---\n"
    merged = merge(head_alone + b"x\n", b"x\n", head_alone + b"---\nb: 2\n---\nx\n")
    assert merged == Merged(None, (Clash("", "x\n", "x\n", "---\nb: 2\n---\nx\n"),))


@pytest.mark.parametrize("other", [b"\xff\xfe", b"a\0b", b"x" * (10 * 1024 * 1024 + 1)])
def test_a_page_that_is_no_text_clashes_as_a_whole(other: bytes) -> None:
    """What no edit may touch, no merge touches; but a side that alone changed is taken as it is."""
    for versions in ((b"a\n", b"b\n", other), (b"a\n", other, b"b\n"), (other, b"a\n", b"b\n")):
        assert merge(*versions) == Merged(None, (Clash("", None, None, None),))
    assert merge(b"a\n", b"a\n", other) == Merged(other)
    assert merge(b"a\n", other, b"a\n") == Merged(other)


@pytest.mark.parametrize("prefer", [None, "ours", "theirs"])
def test_front_matter_that_no_rule_merges_clashes_as_a_whole(prefer: Side | None) -> None:
    """An anchor that one side uses and the other removes or changes: no result would say what both meant."""
    gone = head("a: &x 1\nb: 2\n"), head("a: &x 1\nb: *x\n"), head("b: 2\n")
    other = head("a: &x 1\n"), head("a: &x 2\n"), head("a: &x 1\nb: *x\n")
    for base, ours, theirs in (gone, other):
        merged = merge(base, ours, theirs, prefer=prefer)
        assert [(clash.key, clash.chosen) for clash in merged.clashes] == [("---", prefer)]
        assert merged.data == (None if prefer is None else ours if prefer == "ours" else theirs)


def test_a_merged_page_that_would_be_too_large_clashes() -> None:
    """Two sides that each stay below the limit may go beyond it together."""
    base, more = b"middle\n", b"x" * (6 * 1024 * 1024) + b"\n\n"
    assert merge(base, more + base, base + b"\n" + more) == Merged(None, (Clash("", None, None, None),))


def test_hostile_pages_come_to_an_end() -> None:
    """Pages of full size with nothing but equal lines, words or keys: merged, or clashing, within bounds."""
    size = 10 * 1024 * 1024 - 100
    lines = b"\n" * size
    assert merge(lines, lines + b"x", b"y" + lines).data is None
    assert merge(lines, lines[1:], lines + b"\n\n").data is None
    words = b"a b " * (size // 4)
    assert merge(words, words + b"x", b"y " + words).data is None
    keys = "".join(f"k{number}: [a]\n" for number in range(3000))
    ours, theirs = keys.replace("[a]", "[a, b]"), keys.replace("[a]", "[c, a]")
    merged = merge(head(keys), head(ours), head(theirs)).data
    assert merged == head(keys.replace("[a]", "[c, a, b]"))
    deep = "a: " + "{a: " * 50 + "[x]" + "}" * 50 + "\n"
    assert merge(
        head(deep), head(deep.replace("[x]", "[x, y]")), head(deep.replace("[x]", "[w, x]"))
    ).data == head(deep.replace("[x]", "[w, x, y]"))

"""Parsing: any bytes give a page, and what cannot be taken is a problem with its line, never an exception."""

import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pcpd.errors import PcpError
from pcpd.pages import body, frontmatter
from pcpd.pages.page import SIZE_LIMIT, Page, parse
from pcpd.pages.paths import PagePath

PATH = PagePath("folder/name")

yaml_like = st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`?,. \n\t\r~<0179é知😀\x85\u2028\ufeff"), max_size=60)
page_like = st.builds(
    lambda bom, block, end, rest: bom + f"---\n{block}{end}{rest}".encode(),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    yaml_like,
    st.sampled_from(["\n---\n", "\n---", "\r\n---\r\n", "\n...\n", ""]),
    yaml_like,
)
markdown_like = st.text(st.sampled_from("[[]]()|#`~!-<>%*= \n\t\r\\\"'x.md知"), max_size=80)


def page(text: str | bytes) -> Page:
    """Parses a text or bytes as the page `folder/name`."""
    return parse(PATH, text if isinstance(text, bytes) else text.encode())


def codes(text: str | bytes) -> list[str]:
    """Gives the codes of a page's problems."""
    return [problem.code for problem in page(text).problems]


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=200), page_like, markdown_like.map(str.encode)))
@example(b"---\na: !%ED%A0%80 x\n---\n")
@example(b"---\n&a [*a]\n---\n")
@example(b"---\n? - a\n: b\n---\n")
@example(b"---\n!\n---\n")
def test_any_bytes_give_a_page(data: bytes) -> None:
    """Nothing that a file can hold raises, and the same bytes give the same page."""
    found = parse(PATH, data)
    assert found == parse(PATH, data)
    assert found.title
    assert "\0" not in found.body
    assert all(problem.message for problem in found.problems)


@settings(max_examples=300)
@example(b"---\n!\n---\n", "a", "v")
@given(page_like, st.sampled_from(["a", "b", "a.b", "new"]), st.sampled_from(["v", 3, None, ["x"]]))
def test_an_edit_of_any_page_is_refused_or_reads_back(
    data: bytes, key: str, value: frontmatter.Value
) -> None:
    """A page whose front matter cannot be read is refused; any other gets the key, and keeps its body."""
    structure = [
        problem.code for problem in parse(PATH, data).problems if problem.code.startswith("front-matter.")
    ]
    try:
        after = frontmatter.set_key(data, key, value)
    except PcpError:
        return
    assert not structure
    assert frontmatter.split(after).body == frontmatter.split(data).body
    assert not [
        problem for problem in parse(PATH, after).problems if problem.code.startswith("front-matter.")
    ]


@settings(max_examples=150)
@given(page_like, markdown_like)
def test_a_body_edit_never_changes_front_matter(data: bytes, text: str) -> None:
    """Whatever is prepended or put in place of the body, the block's bytes are the same afterwards."""
    for edit in (body.prepend, body.append, body.replace_body):
        try:
            after = edit(data, text)
        except PcpError:
            continue
        assert frontmatter.split(after).yaml == frontmatter.split(data).yaml


def test_a_page_without_front_matter_is_whole() -> None:
    """Its text is all body, it has no problem and no property."""
    found = page("# Title\n\ntext\n")
    assert (found.title, found.body, found.body_line) == ("Title", "# Title\n\ntext\n", 1)
    assert (found.problems, found.properties, found.sensitivity) == ((), (), "normal")


@pytest.mark.parametrize(
    "text",
    [
        "text\n---\na: 1\n---\n",
        "\n---\na: 1\n---\n",
        " ---\na: 1\n---\n",
        "----\na: 1\n----\n",
        "--- a\nb: 1\n---\n",
        "```\n---\na: 1\n---\n```\n",
        "***\n---\n",
        "",
        "-",
        "--",
    ],
)
def test_dashes_elsewhere_are_text(text: str) -> None:
    """Only a block at the first byte counts; rules, dashes in code and longer runs are the person's text."""
    assert page(text).body == text
    assert page(text).properties == ()
    assert codes(text) == []


@pytest.mark.parametrize(
    "text", ["---", "---\n", "---\na: 1\n", "---\na: 1\n----\n", "---\na: 1\n --- \n", "---\na: 1\n...\n"]
)
def test_a_fence_that_never_closes_is_a_problem_and_all_is_text(text: str) -> None:
    """`...` closes nothing, as in Obsidian; the whole text stays searchable."""
    assert codes(text) == ["front-matter.unclosed"]
    assert page(text).body == text


@pytest.mark.parametrize(
    "text", ["---\n---", "---\n---\n", "---\r\n---\r\n", "---  \n---\t\n", "---\n# only a comment\n---\n"]
)
def test_an_empty_block_is_front_matter(text: str) -> None:
    """It has no keys, no problem, and the body is what follows."""
    assert codes(text) == []
    assert page(text).properties == ()
    assert page(text + "\nx" if not text.endswith("\n") else text + "x").body == "x"


def test_the_second_block_is_text() -> None:
    """Only the first block is front matter."""
    found = page("---\na: 1\n---\n---\nb: 2\n---\n")
    assert found.properties == (("a", "1"),)
    assert found.body == "---\nb: 2\n---\n"
    assert found.body_line == 4


def test_a_bom_and_crlf_are_no_part_of_keys_or_values() -> None:
    """Files from Windows read like any other; line numbers count CRLF once."""
    found = page(b"\xef\xbb\xbf---\r\ntitle: x\r\ntags:\r\n  - a\r\n---\r\n# H\r\n[[l]]\r\n")
    assert found.title == "x"
    assert found.tags == ("a",)
    assert (found.body_line, found.links[0].line) == (6, 7)


def test_scalars_keep_their_spelling_in_properties() -> None:
    """`no`, `012`, dates, 20 digits: as written, nested keys joined by dots, list items repeating their key."""
    text = """---
a: no
b: [012, 0x1F, 1_000, 1e3, 1.10]
c: {d: 12345678901234567890, e: {f: 2026-01-05}}
g: 12:30:45
h: ~
i:
j: 'it''s'
k: >-
  folded
  text
on: yes
---
"""
    assert page(text).properties == (
        ("a", "no"),
        *(("b", item) for item in ("012", "0x1F", "1_000", "1e3", "1.10")),
        ("c.d", "12345678901234567890"),
        ("c.e.f", "2026-01-05"),
        ("g", "12:30:45"),
        ("h", "~"),
        ("i", ""),
        ("j", "it's"),
        ("k", "folded text"),
        ("on", "yes"),
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\na: 1\nb: 2\na: 3\n---\nbody word\n", 4),
        ("---\nm:\n  k: 1\n  k: 2\n---\nbody word\n", 4),
        ("---\nl:\n  - {k: 1, k: 2}\n---\nbody word\n", 3),
        ('---\na: 1\n"a": 2\n---\nbody word\n', 3),
    ],
)
def test_a_key_that_stands_twice_is_a_problem_with_the_line_of_the_second(text: str, line: int) -> None:
    """At the top or nested; the text stays searchable, and no edit touches the page."""
    found = page(text)
    assert [(problem.code, problem.line) for problem in found.problems] == [
        ("front-matter.duplicate-key", line)
    ]
    assert found.body == text
    with pytest.raises(PcpError, match=f"line {line}") as refused:
        frontmatter.set_key(text.encode(), "x", 1)
    assert refused.value.code == "page.front-matter"


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("title: a: b", 2),
        ("ok: 1\ntitle: @x", 3),
        ("title: [x", 3),
        ("ok: 1\n\ttab: 2", 3),
        ("title: %x", 2),
        ('title: "x', 3),
        ("title: 'a\n'b'", 3),
        ("just text", 2),
        ("- a\n- b", 2),
        ("a: \x01", 2),
        ("a: 1\n--- b", 3),
        ("a: *none", 2),
        ("<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x", None),
    ],
)
def test_broken_yaml_is_a_problem_and_the_text_stays(block: str, line: int | None) -> None:
    """The page is listed with its line, its whole text is searchable, and every edit refuses."""
    text = f"---\n{block}\n---\n# Heading\n\nword [[link]]\n"
    found = page(text)
    problem = found.problems[0]
    assert problem.code == "front-matter.invalid"
    assert line is None or problem.line == line
    assert (found.body, found.body_line, found.title) == (text, 1, "Heading")
    assert found.links[0].target == "link"
    data = text.encode()
    edits: tuple[Callable[[], bytes], ...] = (
        lambda: frontmatter.set_key(data, "x", 1),
        lambda: frontmatter.append_item(data, "x", 1),
        lambda: frontmatter.remove_key(data, "ok"),
        lambda: body.append(data, "x"),
        lambda: body.replace_text(data, "word", "x"),
    )
    for edit in edits:
        with pytest.raises(PcpError) as refused:
            edit()
        assert refused.value.code == "page.front-matter"


def test_a_page_that_cannot_say_who_may_see_it_counts_as_sensitive() -> None:
    """Front matter that does not parse, or an unknown sensitivity or partition, opens nothing."""
    assert page("---\nsensitivity: sensitive\nbad: [\n---\n").sensitivity == "sensitive"
    assert page("---\nsensitivity: secret\n---\n").sensitivity == "sensitive"
    assert page("---\nsensitivity: [x]\n---\n").sensitivity == "sensitive"
    assert page("---\npartition: Two Words\n---\n").sensitivity == "sensitive"
    for review in ("proposed", "[{state: proposed}]", "{state: Proposed}", "{<<: *r}"):
        assert page(f"---\nx: &r {{state: proposed}}\nreview: {review}\n---\n").sensitivity == "sensitive"
    assert page("---\nreview:\n---\n").sensitivity == "normal"


def test_a_page_whose_front_matter_a_merge_or_an_encoding_hides_counts_as_sensitive() -> None:
    """Markers before it, or UTF-16 without a mark: the page looks as if it had none."""
    own = "---\npartition: work\n---\ntext\n"
    assert page(f"<<<<<<< HEAD\n{own}=======\nother\n>>>>>>> theirs\n").sensitivity == "sensitive"
    assert page("text\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n").sensitivity == "normal"
    assert parse(PagePath("p"), own.encode("utf-16")).partition == "work"
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        assert parse(PagePath("p"), own.encode(encoding)).sensitivity == "sensitive"
    assert parse(PagePath("p"), b"---\npartition: work\n---\n\0").partition == "work"
    assert page("---\npartition: work\nother: [x]\n---\n").sensitivity == "normal"


def test_templates_keep_their_braces() -> None:
    """`title: {{title}}` is a map of a map to YAML; its text is what the template says."""
    found = page("---\ntitle: {{title}}\nx: [{{a}}, b]\n---\n# H\n")
    assert found.properties == (("title", "{{title}}"), ("x", "{{a}}"), ("x", "b"))
    assert found.title == "H"
    assert codes("---\n{{all}}: 1\n---\n") == ["front-matter.invalid"]


def _bomb(levels: int) -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    names = [chr(ord("a") + level) for level in range(levels)]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]")
    return "\n".join(lines)


COMPLEX, LARGE, BROKEN = "front-matter.too-complex", "front-matter.too-large", "front-matter.invalid"


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (_bomb(9), COMPLEX),
        ("a: &a {k: *a}", COMPLEX),
        ("a: &a [*a]", COMPLEX),
        ("a: " + "[" * 200_000, BROKEN),
        ("a: " + "{" * 200_000, BROKEN),
        ("a: " + "[" * 300 + "]" * 300, COMPLEX),
        ("- " * 50_000 + "x", COMPLEX),
        ("? " * 50_000 + "x", COMPLEX),
        ("\n".join(f"{' ' * n}k:" for n in range(500)), COMPLEX),
        ("\n".join(f"key{n}: {n}" for n in range(15_000)), COMPLEX),
        ("a: [" + "x," * 30_000 + "]", COMPLEX),
        ("a: " + "x" * 300_000, LARGE),
        ("k" * 300_000 + ": x", LARGE),
        ("? " + "k" * 1000 + "\n: [" + "x," * 2000 + "]", COMPLEX),
        ("a: &a " + "x" * 10_000 + "\nb: [" + "*a, " * 1000 + "]", COMPLEX),
        ("a: &a {{b}: " + "x" * 10_000 + "}\nb: [" + "*a, " * 1000 + "]", COMPLEX),
        ("%" * 100_000, BROKEN),
        ("a: " + "&" * 100_000, BROKEN),
        ("a: !" + "!" * 100_000, None),
        ("#" * 200_000, None),
        ("a: " + "'" * 100_001, BROKEN),
        ("a: |" + "\n" * 200_000, None),
        ("a: " + "-" * 200_000, None),
    ],
    ids=range(23),
)
def test_blocks_beyond_bounds_are_problems_and_cost_little_memory(block: str, code: str | None) -> None:
    """Bombs, depth, width and size end in a problem; the page is listed with its text."""
    text = f"---\n{block}\n---\nend\n"
    tracemalloc.start()
    found = page(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 1024 * 1024
    assert [problem.code for problem in found.problems] == ([code] if code else [])
    assert found.body == (text if code else "end\n")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"caf\xe9 word", "page.encoding"),
        (b"---\ntitle: caf\xe9\n---\nword", "page.encoding"),
        (b"word \xe7\x9f", "page.encoding"),
        ("word".encode("utf-16"), "page.encoding"),
        (b"\x89PNG\r\n\x1a\n\0word", "page.encoding"),
        (b"word\0more", "page.nul"),
    ],
)
def test_bytes_that_are_no_utf8_text_are_listed_and_never_edited(data: bytes, code: str) -> None:
    """What decodes is searchable, the problem is named, and no tool writes to the file."""
    found = page(data)
    assert code in [problem.code for problem in found.problems]
    assert "word" in found.body
    edits: tuple[Callable[[], bytes], ...] = (
        lambda: frontmatter.set_key(data, "a", 1),
        lambda: frontmatter.remove_key(data, "a"),
        lambda: body.append(data, "x"),
        lambda: body.replace_text(data, "word", "x"),
    )
    for edit in edits:
        with pytest.raises(PcpError) as refused:
            edit()
        assert refused.value.code == code


def test_a_page_over_ten_mebibytes_keeps_its_first_part() -> None:
    """It is listed with its problem and its keys; ten MiB of text are there, cut between characters."""
    data = b"---\ntitle: long\npartition: work\n---\n" + "知".encode() * (SIZE_LIMIT // 3)
    found = page(data)
    assert codes(data) == ["page.too-large"]
    assert (found.title, found.partition) == ("long", "work")
    assert set(found.body) == {"知"}
    assert (
        SIZE_LIMIT - 4
        <= len("---\ntitle: long\npartition: work\n---\n" + found.body.encode().decode("latin-1"))
        <= SIZE_LIMIT
    )
    with pytest.raises(PcpError, match="not edited"):
        frontmatter.set_key(data, "a", 1)
    full = b"x" * SIZE_LIMIT
    assert codes(full) == []


def test_the_last_word_of_the_longest_page_is_in_its_body() -> None:
    """A page of ten MiB is taken whole."""
    assert page(b"word " * ((SIZE_LIMIT - 5) // 5) + b"last").body.endswith("last")


def test_conflict_markers_are_a_problem_unless_quoted_in_code() -> None:
    """The line of the marker is named, the text stays; in a fence it is an example."""
    conflict = "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> branch\n"
    found = page(f"---\na: 1\n---\ntext\n{conflict}")
    assert [(problem.code, problem.line) for problem in found.problems] == [("page.conflict", 5)]
    assert "theirs" in found.body
    assert codes(f"```\n{conflict}```\n") == []
    assert codes(f"~~~ diff\n{conflict}~~~\n{conflict}") == ["page.conflict"]
    assert codes("<<<<<<< only one\n") == []
    assert codes(">>>>>>> b\n=======\n<<<<<<< a\n") == []
    assert codes("<<<<<<< a\ntext\n>>>>>>> b\n") == []


def test_conflict_markers_in_front_matter_are_named_beside_the_broken_yaml() -> None:
    """A pull that left markers in the YAML shows both problems."""
    text = "---\na: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n---\n"
    assert codes(text) == ["front-matter.invalid", "page.conflict"]
    assert page(text).problems[1].line == 3


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: T\n---\n# H\n", "T"),
        ("---\ntitle:\n---\n# H\n", "H"),
        ("---\ntitle: ~\n---\n# H\n", "H"),
        ("---\ntitle: '  '\n---\n# H\n", "H"),
        ("---\ntitle: true\n---\n", "true"),
        ("---\ntitle: 1.10\n---\n", "1.10"),
        ("---\ntitle: 'a: b # c'\n---\n", "a: b # c"),
        ("# One\n# Two\n", "One"),
        ("## Two\n\n# One ##\n", "One"),
        ("#tag\n\n   # Deep #\n", "Deep"),
        ("#\n# Second\n", "Second"),
        ("# C# and F#\n", "C# and F#"),
        ("Set\n===\n", "Set"),
        ("two\nlines\n=====\n", "lines"),
        ("`code` first\n===\n", "`code` first"),
        ("sub\n---\n\n# One\n", "One"),
        ("```\n# no\n```\n# Yes\n", "Yes"),
        ("> ```\n> # no\n> ```\n\n# Yes\n", "Yes"),
        ("~~~~\n~~~\n# no\n~~~~\n# Yes\n", "Yes"),
        ("    # no\n\n# Yes\n", "Yes"),
        ("<!--\n# no\n-->\n# Yes\n", "Yes"),
        ("\r\n# Windows\r\n", "Windows"),
        ("- list\n===\n", "name"),
        ("no heading\n", "name"),
        ("====\n", "name"),
        ("\n\n===\n", "name"),
    ],
)
def test_the_title_is_the_key_else_the_first_h1_outside_code_else_the_file_name(
    text: str, title: str
) -> None:
    """ATX or setext, with closing hashes cut off."""
    assert page(text).title == title


def test_a_conversation_is_told_by_its_key_or_its_message_marks() -> None:
    """`x_session`, or a message block at the start of a line; a mention of the mark is text."""
    assert page("---\nx_session: {mode: wild}\n---\n").is_conversation
    assert page('<!-- pcp:message {"id":"m"} -->\n**user**:\nhi\n').is_conversation
    assert page('text\n<!-- pcp:message {"id":"m"} -->\n').is_conversation
    assert not page('text with <!-- pcp:message {"id":"m"} -->\n').is_conversation
    assert not page("plain\n").is_conversation


def test_links_beyond_the_bound_are_a_problem() -> None:
    """The first ten thousand are kept, and the page says that there are more."""
    found = page("[[a]] " * 10_500)
    assert len(found.links) == 10_000
    assert [problem.code for problem in found.problems] == ["page.links"]

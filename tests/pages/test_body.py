"""Edits of the text: by heading, by unique text, at start and end; line ends and all other bytes stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid, NotFound, PcpError
from pcpd.pages import body, frontmatter

PAGE = """---
title: x   # odd
---
intro

# One
text of one

## Sub

text of sub
### Deep
deep
## Last
```
## not a heading
```
# Two

two
"""


def page(text: str = PAGE, newline: str = "\n") -> bytes:
    """Gives the bytes of a page with the line ends asked for."""
    return text.replace("\n", newline).encode()


def test_the_outline_names_headings_outside_code_with_their_lines() -> None:
    """ATX and setext; lines are those of the file."""
    found = [(heading.level, heading.text, heading.line) for heading in body.outline(page())]
    assert found == [(1, "One", 6), (2, "Sub", 9), (3, "Deep", 12), (2, "Last", 14), (1, "Two", 18)]
    setext = body.outline(b"A\n===\n\nB\n---\n\n- c\n---\n")
    assert [(heading.level, heading.text) for heading in setext] == [(1, "A"), (2, "B")]
    assert body.outline(b"") == []
    assert [heading.line for heading in body.outline(b"---\nunclosed\n# H\n")] == [3]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        (
            "One",
            "text of one\n\n## Sub\n\ntext of sub\n### Deep\ndeep\n## Last\n```\n## not a heading\n```\n",
        ),
        ("Sub", "\ntext of sub\n### Deep\ndeep\n"),
        ("## sub", "\ntext of sub\n### Deep\ndeep\n"),
        ("Deep", "deep\n"),
        ("Two", "\ntwo\n"),
    ],
)
def test_a_section_reaches_to_the_next_heading_of_its_level(heading: str, text: str) -> None:
    """Sub-sections belong to it; upper and lower case do not matter."""
    assert body.section(page(), heading) == text
    assert body.section(page(newline="\r\n"), heading) == text.replace("\n", "\r\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_replacing_a_section_keeps_its_heading_and_the_blank_lines_around(newline: str) -> None:
    """The new text takes the place of the old between them, in the line ends of the page."""
    after = body.replace_section(page(newline=newline), "Sub", "\nnew\nlines\n\n")
    assert after == page(PAGE.replace("text of sub\n### Deep\ndeep\n", "new\nlines\n"), newline)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A", "# A\nnew\n"),
        ("# A\n", "# A\nnew\n"),
        ("# A\n\n", "# A\nnew\n\n"),
        ("# A\n# B\n", "# A\nnew\n# B\n"),
        ("# A\n\n# B\n", "# A\nnew\n\n# B\n"),
        ("# A\nold", "# A\nnew"),
        ("# A\n\nold\n\n\n", "# A\n\nnew\n\n\n"),
        ("A\n=\nold\n\nB\n=\n", "A\n=\nnew\n\nB\n=\n"),
    ],
)
def test_an_empty_or_last_section_is_filled(before: str, after: str) -> None:
    """Also where the page has no final newline."""
    assert body.replace_section(before.encode(), "A", "new") == after.encode()


def test_a_section_can_be_emptied() -> None:
    """Its heading stays."""
    assert body.replace_section(b"# A\nold\n# B\n", "A", "") == b"# A\n\n# B\n"


def test_a_heading_that_is_not_there_or_not_unique_is_refused() -> None:
    """The lines of the candidates are named; the level tells them apart."""
    text = b"# A\none\n## A\ntwo\n# B\n"
    with pytest.raises(NotFound) as missing:
        body.section(text, "C")
    assert missing.value.code == "heading.not-found"
    with pytest.raises(Invalid) as several:
        body.replace_section(text, "A", "x")
    assert several.value.code == "heading.not-unique"
    assert several.value.details == {"count": 2, "lines": [1, 3]}
    assert body.section(text, "## A") == "two\n"
    assert body.section(b"# a\n1\n# A\n2\n", "A") == "2\n"
    assert body.section(b"# #tag\n1\n", "#tag") == "1\n"


NESTED = b"""# Boiler
## Notes
one
# Pump
## Costs
### Notes
two
## Notes
three
# Notes > old
four
# List [2]
five
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Boiler > Notes", "one\n"),
        ("Pump > Notes", "three\n"),
        ("pump > costs > notes", "two\n"),
        ("Pump > ### Notes", "two\n"),
        ("Costs > Notes", "two\n"),
        ("# Pump > ## Notes", "three\n"),
        ("Notes [1]", "one\n"),
        ("Notes [3]", "three\n"),
        ("## Notes [2]", "three\n"),
        ("Pump > Costs [1]", "### Notes\ntwo\n"),
        ("Notes > old", "four\n"),
        ("List [2]", "five\n"),
    ],
)
def test_a_section_is_named_by_what_it_stands_below_or_by_its_number(name: str, text: str) -> None:
    """Right below first, then with others between; a heading whose text looks so is named by its text."""
    assert body.section(NESTED, name) == text
    assert f"{text}new" not in body.replace_section(NESTED, name, "new").decode()
    assert b"new" in body.replace_section(NESTED, name, "new")


@pytest.mark.parametrize(
    "name",
    [
        "Notes > Boiler",
        "Boiler > Costs",
        "Notes [4]",
        "Notes [0]",
        "Boiler >",
        "> Notes",
        " > ",
        "Boiler>Notes",
        "[1]",
    ],
)
def test_a_way_that_leads_nowhere_names_nothing(name: str) -> None:
    """It is no other section's name."""
    with pytest.raises(NotFound) as caught:
        body.section(NESTED, name)
    assert caught.value.code == "heading.not-found"


def test_who_names_several_headings_is_told_their_numbers_and_lines_and_nothing_of_the_page() -> None:
    """An error may end in a log."""
    with pytest.raises(Invalid) as caught:
        body.section(NESTED, "Notes")
    assert "[1] line 2, [2] line 6, [3] line 8" in caught.value.message
    assert "Boiler" not in caught.value.message + caught.value.hint
    with pytest.raises(Invalid) as caught:
        body.section(b"# A\n" * 30, "a")
    assert caught.value.details == {"count": 30, "lines": list(range(1, 11))}
    assert len(caught.value.message) < 300


@given(
    st.lists(st.sampled_from(["# A", "## é", "### B", "text 😀", "", "```", "===", "--- "])).map("\n".join)
)
def test_the_bytes_of_an_outline_are_those_of_its_sections(text: str) -> None:
    """Heading and sub-sections included, as in the file; sections of the top level leave only what stands before."""
    data = b"---\ntitle: x\n---\n" + text.encode()
    found = body.outline(data)
    for number, heading in enumerate(found):
        following = (other for other in found[number + 1 :] if other.level <= heading.level)
        end = next((other.start for other in following), len(text))
        assert heading.bytes == len(text[heading.start : end].encode())


def test_replacing_unique_text_changes_nothing_else() -> None:
    """The front matter is no place to look in."""
    after = body.replace_text(page(), "text of one", "other: [x]")
    assert after == page(PAGE.replace("text of one", "other: [x]"))
    with pytest.raises(NotFound) as missing:
        body.replace_text(page(), "title: x", "y")
    assert missing.value.code == "text.not-found"


def test_text_that_stands_twice_is_refused_with_count_and_lines() -> None:
    """Nothing is guessed; overlapping places count too."""
    with pytest.raises(Invalid) as twice:
        body.replace_text(page(), "text of", "x")
    assert twice.value.code == "text.not-unique"
    assert twice.value.details == {"count": 2, "lines": [7, 11]}
    with pytest.raises(Invalid):
        body.replace_text(b"aaa", "aa", "x")
    with pytest.raises(Invalid) as many:
        body.replace_text(b"a\n" * 1000, "a", "x")
    assert many.value.details == {"count": 1000, "lines": list(range(1, 11))}


def test_text_over_several_lines_is_found_whatever_the_line_ends() -> None:
    """An agent sends LF; a page from Windows keeps CRLF, in the new text too."""
    crlf = page(newline="\r\n")
    after = body.replace_text(crlf, "# Two\n\ntwo", "# Two\nnew")
    assert after == page(PAGE.replace("# Two\n\ntwo", "# Two\nnew"), "\r\n")
    assert body.replace_text(b"a\nb\n", "a\r\nb", "c\r\nd") == b"c\nd\n"


def test_nothing_is_no_text_to_replace() -> None:
    """The empty text stands everywhere and nowhere."""
    with pytest.raises(NotFound):
        body.replace_text(page(), "", "x")


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a\n", "b", "a\nb\n"),
        ("a", "b\n", "a\nb\n"),
        ("", "b", "b\n"),
        ("a\r\nb\r\n", "c\nd", "a\r\nb\r\nc\r\nd\r\n"),
        ("---\nk: v\n---", "b", "---\nk: v\n---\nb\n"),
        ("a\n", "", "a\n"),
    ],
)
def test_appending_adds_lines_at_the_end(before: str, text: str, after: str) -> None:
    """A last line without its end gets one first."""
    assert body.append(before.encode(), text) == after.encode()


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a\n", "b", "b\na\n"),
        ("", "b", "b\n"),
        ("---\nk: v\n---\n\na", "b", "---\nk: v\n---\nb\n\na"),
        ("---\r\nk: v\r\n---\r\na\r\n", "b\nc", "---\r\nk: v\r\n---\r\nb\r\nc\r\na\r\n"),
    ],
)
def test_prepending_adds_lines_below_the_front_matter(before: str, text: str, after: str) -> None:
    """The block stays at the first byte."""
    assert body.prepend(before.encode(), text) == after.encode()


def test_replacing_the_body_keeps_the_front_matter_byte_for_byte() -> None:
    """BOM, comments and spacing included."""
    before = b"\xef\xbb\xbf---\r\n# c\r\nk:  v\r\n---\r\nold\r\n"
    assert (
        body.replace_body(before, "new\nlines") == b"\xef\xbb\xbf---\r\n# c\r\nk:  v\r\n---\r\nnew\r\nlines"
    )
    assert body.replace_body(b"---\nk: v\n---", "x") == b"---\nk: v\n---\nx"
    assert body.replace_body(b"---\nk: v\n---\nx", "") == b"---\nk: v\n---\n"


@pytest.mark.parametrize(
    "text", ["---\nid: forged\n---\n", "---\nsensitivity: normal\n", "---", "\ufeff---\nid: x\n---\n"]
)
def test_text_cannot_become_front_matter(text: str) -> None:
    """Who may write text must not set keys by it."""
    for edit in (body.prepend, body.replace_body):
        with pytest.raises(Invalid) as refused:
            edit(b"old\n", text)
        assert refused.value.code == "text.front-matter"
    with pytest.raises(Invalid):
        body.replace_text(b"start\nid: forged\n---\n", "start", "---")
    assert body.prepend(b"---\nk: v\n---\nold", text).startswith(b"---\nk: v\n---\n")


def test_text_that_no_page_can_hold_is_refused() -> None:
    """NUL, half of a surrogate pair, more than ten MiB."""
    for text, code in (
        ("a\0", "page.nul"),
        ("\ud800", "text.invalid"),
        ("x" * 10 * 1024 * 1024, "page.too-large"),
    ):
        with pytest.raises(Invalid) as refused:
            body.append(b"old\n", text)
        assert refused.value.code == code


@settings(max_examples=200)
@given(
    st.text(st.sampled_from("ab# \n`=-\t>é"), max_size=60),
    st.text(st.sampled_from("xy# \n"), max_size=10),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
def test_edits_of_generated_pages_keep_the_rest(
    text: str, new: str, newline: str, data: st.DataObject
) -> None:
    """Replacing what stands once leaves the text before and after it; sections keep what is outside them."""
    before = ("---\nk: 'v' # c\n---\n" + text).replace("\n", newline).encode()
    whole = frontmatter.split(before).body
    for heading in body.outline(before):
        try:
            after = body.replace_section(before, f"{'#' * heading.level} {heading.text}", new)
        except PcpError:
            continue
        kept = whole[: heading.end]
        assert frontmatter.split(after).body.startswith(kept)
        assert frontmatter.split(after).yaml == frontmatter.split(before).yaml
        assert frontmatter.split(after).newline == newline
    if whole:
        start = data.draw(st.integers(0, len(whole) - 1))
        old = whole[start : data.draw(st.integers(start + 1, len(whole)))]
        if whole.find(old) == whole.rfind(old):
            replaced = frontmatter.split(body.replace_text(before, old, new)).body
            at = whole.find(old)
            assert replaced == whole[:at] + new.replace("\n", newline) + whole[at + len(old) :]

"""Links: every kind that the design names becomes an edge, none that stands in code does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.pages import body
from pcpd.pages.links import LINK_LIMIT, extract
from pcpd.pages.model import Link
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath


def targets(text: str) -> list[str]:
    """Gives the targets of a text's links."""
    return [link.target for link in extract(text)]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see [[Target]]", Link("wiki", "Target", line=1)),
        ("[[ folder/Target | shown ]]", Link("wiki", "folder/Target", alias="shown", line=1)),
        ("[[Target#Head ing]]", Link("wiki", "Target", heading="Head ing", line=1)),
        ("[[Target#^block|x]]", Link("wiki", "Target", heading="^block", alias="x", line=1)),
        ("[[a#b#c]]", Link("wiki", "a", heading="b#c", line=1)),
        ("![[Picture page]]", Link("embed", "Picture page", line=1)),
        ("\n\n[[third]]", Link("wiki", "third", line=3)),
        ("| a | [[t\\|shown]] |", Link("wiki", "t", alias="shown", line=1)),
        ("[[知識 カフェ]]", Link("wiki", "知識 カフェ", line=1)),
        ("[shown](other.md)", Link("markdown", "other.md", alias="shown", line=1)),
        ("[s](../x/o%20p.md#He%20ad)", Link("markdown", "../x/o p.md", heading="He ad", alias="s", line=1)),
        ("[s](<a b (c).md> 'title')", Link("markdown", "a b (c).md", alias="s", line=1)),
        ('[s]( a(b).md "title" )', Link("markdown", "a(b).md", alias="s", line=1)),
        ("[s](/top/a.md)", Link("markdown", "/top/a.md", alias="s", line=1)),
        ("[s](a\\_b.MD)", Link("markdown", "a_b.MD", alias="s", line=1)),
        ("![s](a.md)", Link("markdown", "a.md", alias="s", line=1)),
        ("- uses [[X]]", Link("relation-line", "X", "uses", line=1)),
        (
            "  * part_of: [[X|y]] (since 2020 (or so))",
            Link("relation-line", "X", "part_of:", alias="y", line=1),
        ),
        ('- "grows next to" [[Oat Field]]', Link("relation-line", "Oat Field", "grows next to", line=1)),
        ("1. 'a b' [[X]]\r\n", Link("relation-line", "X", "a b", line=1)),
        ("> - связано [[X]]\n> - y", Link("relation-line", "X", "связано", line=1)),
        ("- **bold** [[X]]\n\ntext", Link("relation-line", "X", "**bold**", line=1)),
    ],
)
def test_each_kind_of_link_is_an_edge(text: str, link: Link) -> None:
    """With target, heading, alias, relation and line as written."""
    assert extract(text) == (link,)


@pytest.mark.parametrize(
    "text",
    [
        "- two words [[X]]",
        "- uses [[X]] and more",
        "- uses [[X]] (a) (b)",
        "- uses [[X]] (a",
        "- uses [[X]]\n  goes on",
        "- [ ] [[X]]",
        "- [x] [[X]]",
        "- [[X]]",
        "uses [[X]]",
        "- uses `c` [[X]]",
    ],
)
def test_what_is_no_relation_line_is_a_plain_link(text: str) -> None:
    """Task boxes, several words, text after the link, an item that goes on."""
    assert extract(text) == (Link("wiki", "X", line=1),)


def test_two_links_on_one_line_are_no_relation() -> None:
    """Both count as plain links."""
    assert [link.kind for link in extract("- uses [[X]] [[Y]]")] == ["wiki", "wiki"]
    assert [link.kind for link in extract("- uses ![[X]]")] == ["embed"]


@pytest.mark.parametrize(
    "text",
    [
        "`[[x]]`",
        "``a ` [[x]] ``",
        "`a\n[[x]]`",
        "```\n[[x]]\n```",
        "~~~ py\n[[x]]\n~~~",
        "````\n```\n[[x]]\n````",
        "```\n[[x]]",
        "  ```\n  [[x]]\n  ```",
        "- item\n  ```\n  [[x]]\n  ```",
        "- ```\n  [[x]]\n  ```",
        "> ```\n> [[x]]\n> ```",
        "> ```\n> [[x]]",
        "> - ~~~\n>   [[x]]\n>   ~~~",
        "para\n\n    [[x]]\n",
        "    [[x]]\n\n    [[y]]",
        "\t[[x]]",
        "- item\n\ntext\n\n    [[x]]",
        "> - item\n\n    [[x]]",
        "```\n- item\n```\n\n    [[x]]",
        "- item\n\n```\ncode\n```\n\n    [[x]]",
        "<!-- [[x]] -->",
        "<!--\n[[x]]\n-->",
        "`[x](y.md)`",
        "[[`x`]]",
        "[[a `b]] c`",
    ],
)
def test_links_in_code_and_html_comments_are_no_links(text: str) -> None:
    """Fenced, indented, quoted, nested in lists, inline over two lines."""
    assert targets(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "` [[t]]",
        "`` a ` [[t]]",
        "`a` [[t]] `b`",
        "`a\n\n[[t]]`",
        "- a ` b\n- c ` [[t]]",
        "```\nx\n```\n[[t]]",
        "```\nx\n````\n[[t]]",
        "> ```\n> x\n\n[[t]]",
        "``` a`b\n[[t]]",
        "text ``` [[t]]",
        "- item\n\n    [[t]]",
        "para\n    [[t]]",
        "<!-- a --> [[t]]",
        "<!-- never closed [[t]]",
        "%% comment [[t]] %%",
        "<!-- a -->\n```\n<!--\n```\n[[t]]",
        "        ```\n[[t]]",
        "\\\\[[t]]",
        "[[[t]]]",
        "[[x\n]] [[t]]",
    ],
)
def test_links_beside_code_are_links(text: str) -> None:
    """Runs without a partner, closed code, fences in quotes that end, lists that are indented."""
    assert targets(text) == ["t"]


@pytest.mark.parametrize(
    "text",
    [
        "\\[[x]]",
        "[[]]",
        "[[ ]]",
        "[[#heading]]",
        "[[|alias]]",
        "[[a]",
        "[[a\nb]]",
        "[x](http://h.example/a.md)",
        "[x](mailto:a.md)",
        "[x](//h/a.md)",
        "[x](a.txt)",
        "[x](a.md",
        "[x](a b.md)",
        "x](a.md)",
        "[x]\\(a.md)",
        "[x](a.md 'open)",
        "[x](#only.md)",
        "[x](%00.md)",
        "",
    ],
)
def test_what_only_looks_like_a_link_is_none(text: str) -> None:
    """Escapes, empty targets, other schemes, other files, broken syntax."""
    assert targets(text) == []


def test_front_matter_relations_are_edges() -> None:
    """`relations`, `derived_from` and wiki links in a person's own keys, with their lines."""
    text = """---
relations:
  - {rel: supersedes, target: a/b}
  - rel: x-bm:part_of
    target: "[[C|c]]"
derived_from: [d, e/f]
up: "[[G#h]]"
more:
  - "[[I]] and [[J]]"
  - none
---
[[K]]
"""
    found = parse(PagePath("p"), text.encode())
    assert found.links == (
        Link("relation", "a/b", "supersedes", line=3),
        Link("relation", "C", "x-bm:part_of", alias="c", line=4),
        Link("relation", "d", "derived_from", line=6),
        Link("relation", "e/f", "derived_from", line=6),
        Link("wiki", "G", heading="h", line=7),
        Link("wiki", "I", line=9),
        Link("wiki", "J", line=9),
        Link("wiki", "K", line=12),
    )
    assert found.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "[[" * 100_000,
        "[[" * 50_000 + "]]" * 50_000,
        "[[a|" * 50_000,
        "[[a]] " * 50_000,
        "![[" * 50_000,
        "](" * 100_000,
        "[a](b.md " * 30_000,
        "[a](b.md '(" * 20_000,
        "[a](" + "(a)" * 60_000,
        "](<a" * 50_000,
        "`" * 200_000,
        "`a" * 100_000,
        "".join("`" * length + " " for length in range(1, 1500)),
        "".join("`" * length + " " for length in range(1500, 0, -1)),
        "```\n" * 50_000,
        "".join(" " * 5 + "`" * length + "\n" for length in range(1500, 3, -1)) + "[[x]]",
        "- ```x`\n" * 30_000,
        "> ```\n\n" * 30_000,
        "~" * 200_000,
        "<!--" * 50_000,
        "\\" * 200_000 + "[[a]]",
        "    [[a]]\n" * 20_000,
        "- uses [[a]] " + "(" * 200_000,
        "- uses [[a]] " + ")" * 200_000,
        "- uses [[a]] (" * 15_000,
        "- " + "x" * 200_000 + " [[a]]",
        " " * 200_000 + "[[a]]",
        "> " * 100_000 + "[[a]]",
        "- " * 100_000 + "```[[a]]",
        "# " + " " * 200_000 + "x",
        "#" + " #" * 100_000,
        "---\n" * 50_000,
        "a\n=\n" * 50_000,
        "<<<<<<< a\n=======\n" * 10_000 + ">>>>>>> ",
        "---\n" + "---" * 60_000,
        "---\n" + "---x\n" * 40_000,
    ],
    ids=range(36),
)
def test_runs_of_marks_end_in_linear_time(text: str) -> None:
    """Anything that looked back or ahead for each mark would not end within this test's patience."""
    page = parse(PagePath("p"), text.encode())
    assert len(page.links) <= LINK_LIMIT
    assert len(extract(text)) <= LINK_LIMIT
    body.outline(text.encode())


@settings(max_examples=200)
@given(st.text(st.sampled_from("[]()`~\\\n .|#!md-<>ab\r\t*"), max_size=60))
def test_any_text_gives_links_that_stand_in_it(text: str) -> None:
    """Extraction never fails, gives lines in order, and the same links under CRLF as under LF."""
    found = extract(text)
    lines = [link.line for link in found]
    assert all(1 <= (line or 0) <= text.count("\n") + 1 for line in lines)
    assert lines == sorted(lines, key=lambda line: line or 0)
    assert all(link.target and "\n" not in link.target for link in found)
    if "\r" not in text:
        assert extract(text.replace("\n", "\r\n")) == found

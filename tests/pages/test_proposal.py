"""The files of proposals: what is written reads back exactly, and what strangers write is refused whole."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.pages import proposal as words
from pcpd.pages.digest import digest_of, page_digest
from pcpd.pages.ids import PageId, ProposalId
from pcpd.pages.paths import PagePath
from pcpd.pages.proposal import Act, Proposal, parse_proposal, render_proposal

AT = "2026-01-05T10:00:00Z"
BASE = "0123456789" * 4
PAGE = (
    b"\xef\xbb\xbf---\r\ntitle: 'A'\r\nupdated: 2026-01-05T10:00:00Z\r\n---\r\nText\r\n\xff no UTF-8, no end"
)
CHANGE = Proposal(
    "change", PagePath("house/boiler"), "agent:claude", AT, base=BASE, summary="the boiler: new", page=PAGE
)

TEXT = b"""---
op: change
target: house/boiler
base: "0123456789012345678901234567890123456789"
by: agent:claude
at: 2026-01-05T10:00:00Z
summary: "the boiler: new"
---
"""


def test_a_proposal_is_front_matter_and_the_whole_page_after_it() -> None:
    """The page stands there byte for byte, whatever its bytes are."""
    assert render_proposal(CHANGE) == TEXT + PAGE
    assert parse_proposal(TEXT + PAGE) == CHANGE


words_of = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20
).filter(lambda text: text.isprintable() and text.strip() == text)
segments = st.sampled_from(["a", "Boiler room", "\u6211", "no", "2026", "1.10", "a: b", "-", "#x"])
paths = st.lists(segments, min_size=1, max_size=3).map(lambda parts: PagePath("/".join(parts)))
acts = st.builds(Act, words_of, st.just(AT), st.just("") | words_of)


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    """Draws any proposal."""
    op = draw(st.sampled_from(words.OPS))
    return Proposal(
        op=op,
        target=draw(paths),
        by=draw(words_of),
        at=AT,
        to=draw(paths) if op == "move" else None,
        target_id=draw(st.none() | words_of.map(PageId)),
        base=draw(st.sampled_from(["", BASE, "a" * 64])),
        summary=draw(st.just("") | words_of),
        page=draw(st.binary(max_size=40) | st.just(PAGE)) if op == "change" else None,
        also_by=tuple(draw(st.lists(acts, max_size=2))),
        approved=draw(st.none() | acts),
        rejected=draw(st.none() | acts),
        extra=draw(st.dictionaries(st.just("x_note"), words_of, max_size=1)),
    )


@settings(max_examples=150)
@given(proposals())
def test_every_proposal_reads_back_exactly(proposal: Proposal) -> None:
    """Parsing undoes rendering, and rendering undoes parsing."""
    data = render_proposal(proposal)
    assert parse_proposal(data) == proposal
    assert render_proposal(parse_proposal(data)) == data
    assert words.proposal_of_file(words.proposal_file(proposal.id)) == proposal.id


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no front matter"),
        (b"text", "no front matter"),
        (b"---\nop: change\n", "no front matter"),
        (b"---\n" + b"a: b # x\n" * 20_000 + b"---\n", "no front matter"),
        (b"---\na: [\n---\n", "cannot be read"),
        (b"---\n\xff: x\n---\n", "UTF-8"),
        (b"---\nop: 3\n---\n", "`op` must be one of"),
        (TEXT.replace(b"house/boiler", b"../boiler"), "path of a page"),
        (TEXT.replace(b"house/boiler", b".git/config"), "path of a page"),
        (TEXT.replace(b"house/boiler", b"a" * 5000), "one line"),
        (TEXT.replace(b"house/boiler", b"[a]"), "one line"),
        (TEXT.replace(b"op: change", b"op: move"), "`to` is missing"),
        (TEXT.replace(b"op: change", b"op: change\nto: x"), "`to` belongs"),
        (TEXT.replace(b"op: change", b"op: remove") + b"text", "only a change"),
        (TEXT.replace(b"2026-01-05", b"2026-02-31"), "`at`"),
        (TEXT.replace(b"0123456789\"", b"x\""), "`base`"),
        (TEXT.replace(b"summary: ", b"target_id: \" x\"\nsummary: "), "`target_id`"),
        (TEXT.replace(b"summary: ", b"rejected: yes\nsummary: "), "`rejected` must be a map"),
        (TEXT.replace(b"summary: ", b"also_by: {}\nsummary: "), "`also_by` must be a list"),
        (TEXT.replace(b"summary: ", b"also_by: [{by: x}]\nsummary: "), "`also_by[1].at` is missing"),
        (TEXT.replace(b"the boiler", b"the\\nboiler"), "`summary`"),
        (TEXT.replace(b"the boiler", b"x" * 2000), "`summary`"),
        (TEXT + b"x" * (10 * 1024 * 1024 + 1), "more than"),
    ],
)  # fmt: skip
def test_what_is_no_proposal_is_refused_with_the_reason(data: bytes, problem: str) -> None:
    """A file of a stranger, or one that was edited badly, says what is wrong with it."""
    with pytest.raises(Invalid) as error:
        parse_proposal(data)
    assert error.value.code == "proposal.invalid"
    assert problem in error.value.message


def test_all_problems_are_named_at_once() -> None:
    """Whoever corrects the file by hand need not try five times."""
    with pytest.raises(Invalid) as error:
        parse_proposal(b"---\nop: x\nto: /\nbase: y\nsummary: [z]\n---\n")
    assert len(error.value.details["problems"]) == 7  # type: ignore[arg-type]


@given(st.binary(max_size=60), st.integers(0, len(TEXT)))
def test_no_bytes_do_more_than_be_refused(noise: bytes, at: int) -> None:
    """Whatever stands in a file, reading it gives a proposal or says why not."""
    for data in (noise, TEXT[:at] + noise + TEXT[at:]):
        with contextlib.suppress(Invalid):
            assert parse_proposal(data).op in words.OPS


def test_the_same_proposed_by_another_is_the_same_proposal() -> None:
    """Who, when and over which version do not count; what the page would say does."""
    page = (
        b"---\ntitle: A\nupdated: 2026-01-05\nsource: {principal: x}\nreview: {state: proposed}\n---\nText\n"
    )
    other = b'\xef\xbb\xbf---\r\nrecorded_at: 2026-02-02\r\ntitle: "A"\r\n---\r\nText\r\n'
    assert page_digest(page) == page_digest(other)
    mine = digest_of("change", "a", page=page, base=BASE)
    assert mine == digest_of("change", "a", page=other)
    changed = [digest_of("change", "b", page=page), digest_of("change", "a", page=page + b"x"),
               digest_of("change", "a", page=page.replace(b"A", b"1.10")), digest_of("change", "a", page=b""),
               digest_of("change", "a", page=page.replace(b"A", b'"1.10"')), digest_of("remove", "a"),
               digest_of("remove", "a", base=BASE), digest_of("move", "a", to="b"), digest_of("move", "a", to="c"),
               digest_of("change", "a", page=b"---\na: [\n---\n")]  # fmt: skip
    assert len({mine, *changed}) == len(changed) + 1


def test_a_decision_changes_its_own_key_and_nothing_else() -> None:
    """The proposed page stays byte for byte, and so does what a person wrote into the head."""
    data = TEXT.replace(b"by: ", b"# mine\nby: ") + PAGE
    after = words.rejected(data, "human:sam", AT, "no")
    line = b'rejected: {by: "human:sam", at: 2026-01-05T10:00:00Z, reason: "no"}\n---\n'
    assert after == data.replace(b"---\n", line, 2).replace(line, b"---\n", 1)
    assert parse_proposal(after).rejected == Act("human:sam", AT, "no")
    assert not parse_proposal(after).is_open
    assert parse_proposal(words.approved(data, "human:sam", AT)).approved == Act("human:sam", AT)


def test_another_who_proposes_the_same_is_named_once() -> None:
    """A proposal that two agents make alike counts once, with both their names; the list has an end."""
    data = words.joined(words.joined(TEXT + PAGE, "agent:b", AT), "agent:c", AT)
    assert [act.by for act in parse_proposal(data).also_by] == ["agent:b", "agent:c"]
    assert words.joined(data, "agent:b", AT) == data == words.joined(data, "agent:claude", AT)
    for number in range(words.PROPOSERS_MOST + 5):
        data = words.joined(data, f"agent:{number}", AT)
    assert len(parse_proposal(data).also_by) == words.PROPOSERS_MOST
    assert data.endswith(PAGE)


@pytest.mark.parametrize(
    "file", [".pcp/proposals/x.md", "proposals/" + "0" * 20 + ".md", ".pcp/proposals/a/" + "0" * 20 + ".md"]
)
def test_other_files_are_no_proposals(file: str) -> None:
    """Only a file with an id for its name, in the one folder, is a proposal."""
    assert words.proposal_of_file(file) is None
    assert words.proposal_of_file(f".pcp/proposals/{'0' * 20}.md") == ProposalId("0" * 20)

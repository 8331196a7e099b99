"""The keys of review: each act changes those alone, and every other byte of the page stays."""

import pytest

from pcpd.errors import Invalid
from pcpd.pages import frontmatter, reviewing
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath

AT = "2026-01-05T10:00:00Z"
LATER = "2026-01-06T10:00:00Z"
PAGE = b"---\r\ntitle:  'A'   # why\r\nver: 1.10\r\n---\r\n\r\nText\r\n"


def state(data: bytes) -> str | None:
    """The state of review that the page reads as."""
    return parse(PagePath("a"), data).review_state


def test_a_proposed_page_says_who_made_it_and_when() -> None:
    """One line comes, and nothing else differs."""
    data = reviewing.proposed(PAGE, "agent:claude", AT)
    line = b'review: {state: proposed, generated: {by: "agent:claude", at: 2026-01-05T10:00:00Z}}\r\n'
    assert data == PAGE.replace(b"---\r\n\r\nText", line + b"---\r\n\r\nText")
    assert state(data) == "proposed"


def test_an_approval_joins_those_that_were_there() -> None:
    """Who verified the page first stays first; the same approval twice stands there once."""
    data = reviewing.approved(reviewing.proposed(PAGE, "agent:claude", AT), "human:sam", AT)
    again = reviewing.approved(data, "human:ann", LATER)
    assert reviewing.approved(again, "human:ann", LATER) == again
    assert frontmatter.read(again)["review"] == {
        "state": "approved",
        "generated": {"by": "agent:claude", "at": AT},
        "verified": [{"by": "human:sam", "at": AT}, {"by": "human:ann", "at": LATER}],
    }
    assert frontmatter.remove_key(again, "review") == PAGE


def test_a_rejection_keeps_the_text_and_the_reason() -> None:
    """The reason is on one line; approving the page later takes the rejection away."""
    data = reviewing.rejected(reviewing.proposed(PAGE, "agent:claude", AT), "human:sam", LATER, "not\n so ")
    assert frontmatter.read(data)["review"] == {
        "state": "rejected",
        "generated": {"by": "agent:claude", "at": AT},
        "rejected": {"by": "human:sam", "at": LATER, "reason": "not so"},
    }
    assert data.endswith(b"\r\n\r\nText\r\n")
    after = frontmatter.read(reviewing.approved(data, "human:sam", LATER))["review"]
    assert isinstance(after, dict)
    assert list(after) == ["state", "generated", "verified"]


@pytest.mark.parametrize(
    "page", [PAGE, b"", b"Text", b"\xef\xbb\xbf---\nreview:\n---\nText", b"---\nreview: yes\n---\n"]
)
def test_every_act_works_on_a_page_that_no_review_touched(page: bytes) -> None:
    """A page without front matter, or with a review that is no map, gets one."""
    assert state(reviewing.proposed(page, "agent:a", AT)) == "proposed"
    assert state(reviewing.approved(page, "human:sam", AT)) == "approved"
    data = reviewing.rejected(page, "human:sam", AT)
    assert frontmatter.read(data)["review"] == {
        "state": "rejected",
        "rejected": {"by": "human:sam", "at": AT},
    }
    assert frontmatter.split(data).body == frontmatter.split(page).body


def test_what_a_person_wrote_beside_the_keys_stays() -> None:
    """Comments, order and keys of their own inside `review` are kept; only what the act concerns changes."""
    page = (
        b"---\nreview:\n  # asked Ann\n  state: proposed # soon\n  mine: 1.10\n"
        b"  verified:\n    - {by: 'x', at: y} # z\n---\n"
    )
    entry = b'# z\n    - {by: "human:sam", at: 2026-01-05T10:00:00Z}\n'
    expected = page.replace(b"proposed #", b"approved #").replace(b"# z\n", entry)
    assert reviewing.approved(page, "human:sam", AT) == expected


def test_a_page_that_cannot_be_edited_is_refused() -> None:
    """A page whose front matter does not parse is left as it is."""
    with pytest.raises(Invalid, match="front matter"):
        reviewing.approved(b"---\na: [\n---\n", "human:sam", AT)

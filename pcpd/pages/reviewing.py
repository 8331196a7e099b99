"""The keys that review writes into a page: who made it and when, who approved it, who rejected it and why.

Each gives the page's bytes with only those keys changed; every other byte stays. Source: pages.md §3 and §5.
"""

from pcpd.pages import frontmatter
from pcpd.pages.frontmatter import Value

REASON_LONGEST = 1000
"""Characters of a reason that are kept."""


def proposed(data: bytes, by: str, at: str) -> bytes:
    """Gives the page as one that waits for review, made by `by` at `at` (RFC 3339 UTC).

    Raises as `frontmatter.set_key` does, like all functions here.
    """
    review = _review(data)
    generated = {"by": by, "at": at}
    if not review:
        return frontmatter.set_key(data, "review", {"state": "proposed", "generated": generated})
    return frontmatter.set_key(_with_state(data, "proposed"), "review.generated", generated)


def approved(data: bytes, by: str, at: str) -> bytes:
    """Gives the page as approved: `by` and `at` join `verified`, and an earlier rejection goes."""
    verification = {"by": by, "at": at}
    review = _review(data)
    if not review:
        return frontmatter.set_key(data, "review", {"state": "approved", "verified": [verification]})
    data = _without_rejection(_with_state(data, "approved"), review)
    verified = review.get("verified")
    if not isinstance(verified, list):
        return frontmatter.set_key(data, "review.verified", [verification])
    if verification in verified:
        return data
    return frontmatter.append_item(data, "review.verified", verification)


def rejected(data: bytes, by: str, at: str, reason: str = "") -> bytes:
    """Gives the page as rejected, its text kept, so that the same proposal does not come back."""
    rejection = rejection_of(by, at, reason)
    if not _review(data):
        return frontmatter.set_key(data, "review", {"state": "rejected", "rejected": rejection})
    return frontmatter.set_key(_with_state(data, "rejected"), "review.rejected", rejection)


def rejection_of(by: str, at: str, reason: str = "") -> dict[str, Value]:
    """Gives the value of a key `rejected`: a reason on one line, cut where it is too long, or none."""
    shown = " ".join(reason.split())[:REASON_LONGEST].rstrip()
    return {"by": by, "at": at, **({"reason": shown} if shown else {})}


def _review(data: bytes) -> dict[str, Value]:
    """Gives the map `review` of the page; empty where there is none that could be edited key by key."""
    review = frontmatter.read(data).get("review")
    return review if isinstance(review, dict) else {}


def _with_state(data: bytes, state: str) -> bytes:
    return frontmatter.set_key(data, "review.state", state)


def _without_rejection(data: bytes, review: dict[str, Value]) -> bytes:
    return frontmatter.remove_key(data, "review.rejected") if "rejected" in review else data

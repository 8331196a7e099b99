"""Who may do what: the table of decisions, and properties that hold for any grants."""

import unicodedata
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pcpd.policy.context import Context, Member
from pcpd.policy.decide import (
    Decision,
    Facts,
    Principal,
    Visibility,
    category_of,
    decide,
    visibility,
    without_removed,
)
from pcpd.policy.grants import RIGHTS, Access, Grant
from tests.policy import worlds
from tests.policy.worlds import ALL_FACTS, NOW

AGENT = Principal("agent:claude")
SAM = Principal("human:sam", is_controller=True)
PAGE = Facts("notes/a", "work", "semantic", "normal")
SECRET = replace(PAGE, sensitivity="sensitive")
PROPOSED = replace(PAGE, hidden=True)


def access(*rights: str, sensitivity: str = "normal", until: datetime | None = None) -> Access:
    """Gives one grant for `AGENT` in the partition work, category semantic."""
    return Access((Grant("agent:claude", ("work",), ("semantic",), rights, sensitivity, until),))


def allowed(given: Access, right: str = "read", page: Facts = PAGE, who: Principal = AGENT) -> bool:
    """Asks `decide` and drops the reason."""
    return decide(given, who, right, page, NOW).allowed


def test_without_a_grant_there_is_nothing() -> None:
    """Nothing is allowed that no line of access.yaml allows."""
    assert not any(allowed(Access(), right) for right in RIGHTS)
    assert visibility(Access(), AGENT, NOW) == Visibility()


def test_a_grant_must_match_in_every_part() -> None:
    """Principal, partition, category, right and sensitivity, all of them."""
    given = access("read")
    assert allowed(given)
    assert not allowed(given, "write")
    assert not allowed(given, page=replace(PAGE, partition="home"))
    assert not allowed(given, page=replace(PAGE, category="profile"))
    assert not allowed(given, page=SECRET)
    assert not allowed(given, who=Principal("agent:cursor"))


def test_a_grant_for_sensitive_pages_covers_normal_ones() -> None:
    """`sensitive` is the wider of the two values."""
    assert allowed(access("read", sensitivity="sensitive"))
    assert allowed(access("read", sensitivity="sensitive"), page=SECRET)


def test_until_is_exclusive() -> None:
    """At the instant itself the grant is over."""
    moment = timedelta(microseconds=1)
    assert allowed(access("read", until=NOW + moment))
    assert not allowed(access("read", until=NOW))
    assert not allowed(access("read", until=NOW - moment))


def test_no_right_implies_another() -> None:
    """`propose` never allows `write`, `write` allows no `read`, `review` no `read`."""
    for right in RIGHTS:
        assert [other for other in RIGHTS if allowed(access(right), other)] == [right]


def test_rights_do_not_add_up_across_slices() -> None:
    """Two grants give two areas, not their product."""
    given = Access(
        (
            Grant("agent:claude", ("work",), ("semantic",), ("read",)),
            Grant("agent:claude", ("home",), ("profile",), ("read",)),
        )
    )
    assert not allowed(given, page=replace(PAGE, category="profile"))
    assert not allowed(given, page=replace(PAGE, partition="home"))


def test_a_grant_for_an_agent_is_not_one_for_its_versions() -> None:
    """Consent was given to the spelling that was shown."""
    assert not allowed(access("read"), who=Principal("agent:claude/4"))
    version = Access((replace(access("read").grants[0], principal="agent:claude/4"),))
    assert not allowed(version)


def test_a_hidden_page_is_there_for_reviewers_only() -> None:
    """Proposed and rejected pages need `review` on that very page besides the right."""
    assert not allowed(access("read", "write"), page=PROPOSED)
    assert allowed(access("read", "review"), page=PROPOSED)
    assert not allowed(access("review"), page=PROPOSED)
    assert not allowed(access("read", "write"), "write", page=PROPOSED)


def test_the_right_to_review_normal_pages_opens_no_sensitive_proposal() -> None:
    """`review` is asked for with the page's own sensitivity."""
    given = READ_ALL_REVIEW_NORMAL
    assert allowed(given, page=SECRET)
    assert allowed(given, page=PROPOSED)
    assert not allowed(given, page=replace(SECRET, hidden=True))


def test_the_controller_may_do_everything() -> None:
    """The person, on the owner's local socket."""
    assert all(allowed(Access(), right, page, SAM) for right in RIGHTS for page in ALL_FACTS)
    assert visibility(Access(), SAM, NOW) == Visibility(everything=True, hidden=True)


def test_a_grant_to_the_controllers_name_makes_no_controller() -> None:
    """Who is the controller is told by the door, not by the name."""
    named = Access((Grant("human:sam", ("work",), ("semantic",), ("read",)),))
    assert allowed(named, who=Principal("human:sam"))
    assert not allowed(named, "write", who=Principal("human:sam"))


def test_a_removed_principal_has_nothing_even_with_a_grant() -> None:
    """Nor do the versions of a removed agent; others keep what they have."""
    lines = [
        Grant(name, ("work",), ("semantic",), ("read",))
        for name in ("agent:claude", "agent:claude/4", "agent:b")
    ]
    context = Context(
        "ctx_1_a3f2b1c4",
        "0.3",
        "human:sam",
        principals=(Member("agent:claude", "agent", "removed"), Member("agent:b", "agent")),
    )
    left = without_removed(Access(tuple(lines)), context)
    assert [grant.principal for grant in left.grants] == ["agent:b"]


@pytest.mark.parametrize(
    ("is_conversation", "type_", "path", "profile", "category"),
    [
        (False, "semantic", "a", None, "semantic"),
        (False, "episodic", "a", None, "episodic"),
        (False, "whatever", "a", None, "semantic"),
        (False, "profile", "a", None, "semantic"),
        (True, "episodic", "a", None, "conversation"),
        (True, "episodic", "me/now", "me", "profile"),
        (False, "procedural", "me", "me", "profile"),
        (False, "procedural", "Me/NOW", "me", "profile"),
        (False, "procedural", "me/now", "ME", "profile"),
        (False, "procedural", "me-too", "me", "procedural"),
        (False, "procedural", "a/me", "me", "procedural"),
    ],
)
def test_a_page_has_exactly_one_category(
    is_conversation: bool, type_: str, path: str, profile: str | None, category: str
) -> None:
    """Profile before conversation before type; a type that is none is semantic."""
    assert category_of(is_conversation, type_, path, profile) == category


def test_the_profile_is_found_in_either_unicode_form() -> None:
    """macOS gives names back decomposed; context.yaml was typed composed."""
    decomposed = unicodedata.normalize("NFD", "profil/é")
    assert category_of(False, "semantic", decomposed + "/x", "profil/é") == "profile"


READ_ALL_REVIEW_NORMAL = Access(
    (
        *access("read", sensitivity="sensitive").grants,
        *access("review").grants,
    )
)


@settings(max_examples=300)
@example(READ_ALL_REVIEW_NORMAL, AGENT)
@given(worlds.accesses, worlds.principals)
def test_visibility_and_the_decision_to_read_agree_on_every_page(given_: Access, who: Principal) -> None:
    """The slices say exactly what `decide` says, for hidden and sensitive pages too."""
    view = visibility(given_, who, NOW)
    for page in ALL_FACTS:
        assert shows(view, page) == decide(given_, who, "read", page, NOW).allowed


def shows(view: Visibility, page: Facts) -> bool:
    """Reads a visibility as its docstring says, independently of SQL."""
    return (view.everything and (view.hidden or not page.hidden)) or any(
        (part.partition, part.category) == (page.partition, page.category)
        and (part.sensitive or page.sensitivity == "normal")
        and (not page.hidden or (part.hidden and view.hidden))
        for part in view.slices
    )


@given(worlds.accesses, worlds.principals, st.sampled_from(RIGHTS))
def test_a_no_tells_nothing_about_the_page(given_: Access, who: Principal, right: str) -> None:
    """The reason is the same for a page that is hidden, sensitive or elsewhere."""
    answers = {decide(given_, who, right, page, NOW) for page in ALL_FACTS}
    assert len([answer for answer in answers if not answer.allowed]) <= 1
    assert Decision(True, "") not in answers


@given(worlds.accesses, worlds.grants, worlds.principals, worlds.facts, st.sampled_from(RIGHTS))
def test_one_more_grant_never_takes_anything_away(
    given_: Access, more: Grant, who: Principal, page: Facts, right: str
) -> None:
    """And one less never gives anything."""
    before = decide(given_, who, right, page, NOW).allowed
    after = decide(Access((*given_.grants, more)), who, right, page, NOW).allowed
    assert after or not before
    if after and not before:
        assert more.principal == who.name

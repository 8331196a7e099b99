"""What a person grants is what access.yaml would take by hand, no more and no less."""

import pytest

from pcpd.errors import Invalid, Usage
from pcpd.memory import consent, read
from tests.vaults import Opened
from tests.waiting import until


def wish(until: str) -> consent.Wish:
    """A grant to read until then."""
    return consent.Wish("agent:claude", ["read"], until=until)


def test_a_grant_ends_at_an_instant_that_everybody_reads_alike(opened: Opened) -> None:
    """A date, or a time with its zone; one without a zone would end at another hour than the person meant."""
    assert consent.grant(opened.memory, wish("2027-01-01"))["granted"]
    granted = consent.grants(opened.memory)["grants"]
    assert isinstance(granted, list)
    assert granted[0]["until"] == "2027-01-01T00:00:00Z"
    with pytest.raises(Invalid) as refused:
        consent.grant(opened.memory, wish("2027-01-01T12:00:00"))
    assert refused.value.code == "access.until"


def test_a_token_for_somebody_new_lists_them_as_an_agent_and_revoking_ends_it(opened: Opened) -> None:
    """`token create` adds a missing principal to the context; every other line of that file stays."""
    file = opened.root / ".pcp" / "context.yaml"
    before = file.read_text()
    consent.create_token(opened.memory, "agent:claude")
    after = file.read_text()
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        "  - {id: agent:claude, role: agent}"
    ]
    consent.grant(opened.memory, wish("2027-01-01"))
    assert consent.revoke(opened.memory, principal="agent:claude", token=None) == {"grants": 1, "tokens": 1}
    assert file.read_text() == after


PAGES = {
    "boiler.md": "---\ntitle: Boiler\n---\nGas.\n",
    "me.md": "About me.\n",
    "talk.md": "---\nx_session: s1\n---\nHello.\n",
    "diary.md": "---\nsensitivity: sensitive\n---\nSecret.\n",
    "plan.md": "---\npartition: work\n---\nPlan.\n",
    "idea.md": "---\nreview: {state: proposed}\n---\nIdea.\n",
}


def filled(opened: Opened) -> Opened:
    """The vault with a page of each kind."""
    for file, text in PAGES.items():
        opened.save(file, text)
    until(lambda: read.list_pages(opened.memory, opened.person).total == len(PAGES))
    return opened


def test_a_preview_tells_what_a_grant_would_give_and_changes_nothing(opened: Opened) -> None:
    """Pages by count and by example; what stays closed is counted and not named."""
    filled(opened)
    context = (opened.root / ".pcp" / "context.yaml").read_bytes()
    shown = consent.preview(opened.memory, consent.Wish("agent:new", ["read", "propose"]))
    assert (shown.pages, shown.closed, set(shown.titles)) == (2, 4, {"Boiler", "me"})
    assert shown.grant["categories"] == ("semantic", "episodic", "procedural", "profile")
    assert (shown.is_there, shown.keeps, shown.replaces, shown.notice) == (False, (), (), None)
    assert consent.grants(opened.memory)["grants"] == []
    assert (opened.root / ".pcp" / "context.yaml").read_bytes() == context


def test_a_preview_names_the_grants_that_are_there_already(opened: Opened) -> None:
    """An equal one, and those that the principal would have besides."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    consent.grant(opened.memory, consent.Wish("agent:a", ["read", "write"], partitions=["work"]))
    shown = consent.preview(opened.memory, consent.Wish("agent:a", ["read"]))
    assert shown.is_there
    assert [each["partitions"] for each in shown.keeps] == [("work",)]


def test_a_preview_counts_what_the_principal_could_read_after_all(opened: Opened) -> None:
    """By the new grant and those that stay; one that would go for it is told apart and counts no more."""
    filled(opened)
    work = consent.Wish("agent:a", ["read"], partitions=["work"])
    wide = consent.Wish("agent:a", ["read"], sensitivity="sensitive")
    consent.grant(opened.memory, work)
    consent.grant(opened.memory, wide)
    wish = consent.Wish("agent:a", ["read"], categories=["semantic"])
    shown = consent.preview(opened.memory, wish, without=[wide])
    assert [each["partitions"] for each in shown.keeps] == [("work",)]
    assert [each["sensitivity"] for each in shown.replaces] == ["sensitive"]
    assert (shown.pages, shown.closed) == (3, 3)
    assert consent.preview(opened.memory, wide, without=[wide]).replaces == ()


def test_pages_whose_front_matter_cannot_be_read_are_counted_apart(opened: Opened) -> None:
    """They count as sensitive, though nobody marked them so."""
    opened.save("torn.md", "---\ntitle: [\n---\nText.\n")
    opened.save("diary.md", "---\nsensitivity: sensitive\n---\nSecret.\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    shown = consent.preview(opened.memory, consent.Wish("agent:a", ["read"]))
    assert (shown.pages, shown.closed, shown.unread) == (0, 2, 1)
    wide = consent.Wish("agent:a", ["read"], sensitivity="sensitive")
    assert (consent.preview(opened.memory, wide).closed, consent.preview(opened.memory, wide).unread) == (
        0,
        0,
    )


def test_a_partition_that_nothing_knows_is_granted_with_a_warning(opened: Opened) -> None:
    """It may come yet, so it is no error; a near one that is known is named."""
    filled(opened)
    wish = consent.Wish("agent:a", ["read"], partitions=["wrok", "work", "personal"])
    (said,) = consent.preview(opened.memory, wish).warnings
    assert "a partition wrok," in said
    assert "did you mean work?" in said
    assert consent.grant(opened.memory, wish)["warnings"] == (said,)
    (said,) = consent.preview(opened.memory, consent.Wish("agent:a", ["read"], partitions=["xyz"])).warnings
    assert "there are: personal, work" in said


def test_a_grant_that_has_ended_already_is_refused_and_can_be_taken_back(opened: Opened) -> None:
    """It would give nothing; one that ended since is taken back like any other."""
    past = consent.Wish("agent:a", ["read"], until="2020-01-01")
    for act in (consent.grant, consent.preview):
        with pytest.raises(Usage) as refused:
            act(opened.memory, past)
        assert refused.value.code == "consent.until-past"
    assert consent.take_back(opened.memory, past) == {"grants": 0}


def test_without_the_right_to_read_a_preview_promises_no_page(opened: Opened) -> None:
    """`propose` alone shows nothing."""
    filled(opened)
    assert consent.preview(opened.memory, consent.Wish("agent:a", ["propose"])).pages == 0


def test_who_was_removed_from_the_context_is_not_connected(opened: Opened) -> None:
    """A grant would have no effect, and taking somebody back is the person's own edit."""
    file = opened.root / ".pcp" / "context.yaml"
    text = file.read_text()
    opened.save(
        ".pcp/context.yaml",
        text.replace("principals:\n", "principals:\n  - {id: agent:a, role: agent, status: removed}\n"),
    )
    until(lambda: any(each.status == "removed" for each in opened.memory.context.principals))
    for name in ("agent:a", "agent:a/2"):
        with pytest.raises(Usage) as refused:
            consent.preview(opened.memory, consent.Wish(name, ["read"]))
        assert refused.value.code == "consent.removed"


def test_nobody_is_connected_under_the_person_s_own_name(opened: Opened) -> None:
    """The trail must tell an agent from the person."""
    with pytest.raises(Usage) as refused:
        consent.preview(opened.memory, consent.Wish(opened.memory.context.controller, ["read"]))
    assert refused.value.code == "consent.controller"


def test_with_a_broken_access_file_consent_begins_with_that(opened: Opened) -> None:
    """Nothing is asked for that could not be written; what is in force stays in force, and is told."""
    consent.grant(opened.memory, consent.Wish("agent:a", ["read"]))
    opened.memory.access.path.write_text("grants:\n  - {principal: agent:a, rights: everything}\n")
    with pytest.raises(Invalid) as refused:
        consent.preview(opened.memory, consent.Wish("agent:b", ["read"]))
    assert refused.value.code == "access.invalid"
    listed = consent.grants(opened.memory)
    assert "the last good one stays in force" in str(listed["notice"])
    assert "the last good one stays in force" in str(consent.principal_access(opened.memory)["notice"])


def test_one_grant_is_taken_back_and_its_neighbours_stay(opened: Opened) -> None:
    """Only the equal one: what the person granted by hand is theirs."""
    narrow, wide = consent.Wish("agent:a", ["read"]), consent.Wish("agent:a", ["read"], partitions=["work"])
    consent.grant(opened.memory, narrow)
    before = opened.memory.access.path.read_bytes()
    consent.grant(opened.memory, wide)
    assert consent.take_back(opened.memory, wide) == {"grants": 1}
    assert opened.memory.access.path.read_bytes() == before
    assert consent.take_back(opened.memory, wide) == {"grants": 0}


def test_each_principal_is_told_with_its_good_tokens_grants_and_the_last_act(opened: Opened) -> None:
    """Revoked tokens are no longer good; somebody who never came has no last act."""
    made = consent.create_token(opened.memory, "agent:a", label="connect a")
    gone = consent.create_token(opened.memory, "agent:a")
    consent.revoke(opened.memory, principal=None, token=str(gone["id"]))
    consent.grant(opened.memory, consent.Wish("agent:b", ["read"]))
    read.list_pages(opened.memory, opened.agent("agent:b"))
    rows = {row["principal"]: row for row in consent.principal_access(opened.memory)["principals"]}  # type: ignore[attr-defined]
    assert rows["agent:a"]["tokens"] == (made["id"],)
    assert (rows["agent:a"]["grants"], rows["agent:a"]["last_used"]) == ((), None)
    assert len(rows["agent:b"]["grants"]) == 1
    assert str(rows["agent:b"]["last_used"]).endswith("Z")


def test_a_sensitivity_that_is_none_is_refused_in_words(opened: Opened) -> None:
    """As other values are that access.yaml would not take."""
    with pytest.raises(Usage) as refused:
        consent.grant(opened.memory, consent.Wish("agent:a", ["read"], sensitivity="secret"))
    assert refused.value.code == "consent.unknown"

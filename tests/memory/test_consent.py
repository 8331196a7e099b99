"""What a person grants is what access.yaml would take by hand, no more and no less."""

import pytest

from pcpd.errors import Invalid
from pcpd.memory import consent
from tests.vaults import Opened


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

"""The spelling of principals, and what removing one takes along."""

import pytest

from pcpd.errors import Invalid
from pcpd.policy.principals import check_principal, covers


@pytest.mark.parametrize(
    "text",
    ["human:sam", "human:sam@example.org", "agent:claude", "agent:claude/4.5", "service:sync-1",
     "org:example.org", "org:localhost:8080", "ai:ses_1", "manager:tok_1"],
)  # fmt: skip
def test_the_spellings_of_the_design_are_taken(text: str) -> None:
    """Each kind with its name."""
    assert check_principal(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "sam", "human:", "root:sam", "agent:a b", "agent:a/", "agent:a/b/c", "agent:/b", "human:a/b",
     "agent:.x", "agent:a\n", "agent:a\0", " agent:a", "Agent:a", "org:-x", "org:x/y", "agent:cl\u0430ude",
     "agent:" + "a" * 200],
)  # fmt: skip
def test_other_spellings_are_refused(text: str) -> None:
    """Also look-alikes from other alphabets, and line breaks."""
    with pytest.raises(Invalid) as caught:
        check_principal(text)
    assert caught.value.code == "principal.invalid"


def test_removing_an_agent_removes_its_versions() -> None:
    """Taking away goes further than giving: a version is the same agent, a longer name is another."""
    assert covers("agent:claude", "agent:claude")
    assert covers("agent:claude", "agent:claude/4")
    assert not covers("agent:claude", "agent:claude-code")
    assert not covers("agent:claude/4", "agent:claude")
    assert not covers("human:sam", "human:sam/4")

"""`pcpd access`, `pause`, `resume` and `undo`: what a person reads, and the exit status of a clash."""

from typing import Any

from tests.cli.conftest import Pcpd
from tests.client.conftest import Scene
from tests.client.fake_owner import ok

STANDING = {
    "principal": "agent:a",
    "grants": [
        {
            "rights": ["read", "write"], "partitions": ["work"], "categories": ["semantic"], "sensitivity": "normal",
            "since": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z", "has_ended": False,
        }
    ],
    "tokens": [{"id": "tok_1", "label": "lap\x1b[31mtop", "created_at": "2026-01-02T00:00:00Z"}],
    "last_used": "2026-01-03T00:00:00Z",
    "paused_since": "2026-01-04T00:00:00Z",
    "notes": [],
}  # fmt: skip


def undone(**changed: Any) -> dict[str, Any]:
    """What the owner says of an act that was taken back."""
    return {
        "rev": "a" * 40, "at": "2026-01-01T00:00:00Z", "principal": "agent:a", "subject": "Change boiler",
        "path": "boiler", "outcome": "restored", "version": "v", "is_done": True, "diff": "-Oil\n+Gas\n",
        "clashes": [], **changed,
    }  # fmt: skip


def test_who_can_do_what_is_said_in_plain_words(scene: Scene, pcpd: Pcpd) -> None:
    """Grants with their times, tokens without their secrets, and nothing that steers a terminal."""
    scene.owner(http=lambda _asked: ok({"principals": [STANDING], "paused": {}, "notices": ["look here"]}))
    done = pcpd("access")
    for said in (
        "may read, write in work: semantic", "Since 2026-01-01", "Until 2027-01-01", "token tok_1",
        "last seen 2026-01-03", "paused since 2026-01-04",
    ):  # fmt: skip
        assert said in done.text, said
    assert "\x1b[31m" not in done.text
    assert "look here" in done.err


def test_pausing_says_who_is_held_now(scene: Scene, pcpd: Pcpd) -> None:
    """All, or one."""
    scene.owner(http=lambda _asked: ok({"resumed": 1, "paused": {"*": "2026-01-01T00:00:00Z"}}))
    assert "Paused now: every agent" in pcpd("pause").err
    assert "1 pause" in pcpd("resume", "agent:a").err


def test_a_clash_is_shown_with_all_three_sides_and_is_a_conflict(scene: Scene, pcpd: Pcpd) -> None:
    """What was taken back shows as a difference, and is done."""
    clash = {"key": "", "base": "Oil", "ours": "Wood", "theirs": None, "chosen": None}
    answers = [undone(), undone(outcome="clash", is_done=False, diff="", clashes=[clash])]
    scene.owner(http=lambda _asked: ok(answers.pop(0)))
    done = pcpd("undo")
    assert (done.status, done.text) == (0, "-Oil\n+Gas\n")
    refused = pcpd("undo", "--dry-run")
    assert refused.status == 6
    for said in ("Oil", "Wood", "(nothing)"):
        assert said in refused.text, said

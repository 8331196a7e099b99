"""Tokens: shown once, kept as a slow hash, remembered until revoked."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pcpd.errors import Broken, Invalid
from pcpd.ledger import tokens
from pcpd.ledger.ledger import Ledger
from tests.ledger.conftest import Clock


def with_other_secret(token: str) -> str:
    """Gives a token with the same prefix and another secret."""
    return token[:-1] + ("A" if token[-1] != "A" else "B")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts slow checks."""
    counted: list[str] = []
    check = tokens._matches

    def counting(digest: str, token: str) -> bool:
        counted.append(token)
        return check(digest, token)

    monkeypatch.setattr(tokens, "_matches", counting)
    return counted


def test_a_token_has_256_random_bits_and_proves_its_principal(ledger: Ledger) -> None:
    """`pcp_`, 8 hex digits that may be shown, 43 characters that may not."""
    made = tokens.create(ledger, "agent:claude", label="Claude Desktop")
    assert re.fullmatch(r"pcp_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", made.token)
    assert made.id == f"tok_{made.token[4:12]}"
    assert tokens.verify(ledger, made.token) == "agent:claude"
    assert tokens.create(ledger, "agent:claude").token != made.token


def test_the_secret_is_nowhere_in_the_files_nor_in_a_representation(ledger: Ledger, tmp_path: Path) -> None:
    """Only its Argon2id hash is kept, with the parameters of the design."""
    made = tokens.create(ledger, "agent:claude")
    tokens.verify(ledger, made.token)
    ledger.checkpoint()
    secret = made.token.removeprefix(f"pcp_{made.id[4:]}_")
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.iterdir())
    assert secret not in repr(made)
    assert secret not in repr(tokens.listing(ledger))
    with ledger.reading() as connection:
        kept = connection.execute("SELECT hash FROM tokens").fetchone()[0]
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "pcp_",
        "pcp_00000000_" + "A" * 43,
        "x" * 100_000,
        "pcp_\u06600000000_" + "A" * 43,
        "pcp_\0",
        "\udc80",
    ],
)
def test_what_is_no_known_token_is_nobody_without_a_slow_check(
    ledger: Ledger, checks: list[str], token: str
) -> None:
    """Strangers cannot make the owner work."""
    tokens.create(ledger, "agent:claude")
    assert tokens.verify(ledger, token) is None
    assert checks == []


def test_a_wrong_secret_after_a_right_prefix_is_nobody(ledger: Ledger, checks: list[str]) -> None:
    """And is checked anew each time: only right tokens are remembered."""
    made = tokens.create(ledger, "agent:claude")
    wrong = with_other_secret(made.token)
    assert tokens.verify(ledger, wrong) is None
    assert tokens.verify(ledger, wrong) is None
    assert tokens.verify(ledger, made.token + "\n") is None
    assert checks == [wrong, wrong]


def test_a_right_token_is_checked_once(ledger: Ledger, checks: list[str]) -> None:
    """Later requests cost a hash in memory."""
    made = tokens.create(ledger, "agent:claude")
    assert [tokens.verify(ledger, made.token) for _ in range(5)] == ["agent:claude"] * 5
    assert checks == [made.token]


def test_a_revoked_token_is_nobody_at_once_and_recognised_as_revoked(ledger: Ledger, clock: Clock) -> None:
    """Also when it was remembered, and after a restart."""
    made = tokens.create(ledger, "agent:claude")
    assert tokens.verify(ledger, made.token) == "agent:claude"
    clock.pass_time(hours=1)
    assert tokens.revoke(ledger, made.id) == 1
    assert tokens.revoke(ledger, made.id) == 0
    assert tokens.verify(ledger, made.token) is None
    found = tokens.recognise(ledger, made.token)
    assert found is not None
    assert (found.principal, found.revoked_at) == ("agent:claude", "2026-11-30T13:00:00Z")
    again = Ledger.open(ledger.path.parent, clock)
    assert tokens.verify(again, made.token) is None
    again.close()


def test_revoking_a_principal_revokes_all_its_tokens_and_no_others(ledger: Ledger) -> None:
    """By its exact spelling."""
    mine = [tokens.create(ledger, "agent:a") for _ in range(2)]
    others = [tokens.create(ledger, name) for name in ("agent:a/2", "agent:b")]
    assert tokens.revoke(ledger, "agent:a") == 2
    assert [tokens.verify(ledger, made.token) for made in mine] == [None, None]
    assert [tokens.verify(ledger, made.token) for made in others] == ["agent:a/2", "agent:b"]
    assert tokens.revoke(ledger, "agent:nobody") == 0


def test_a_revocation_during_the_slow_check_wins(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the token would be remembered as good for as long as the owner runs."""
    made = tokens.create(ledger, "agent:a")
    check = tokens._matches

    def revoked_meanwhile(digest: str, token: str) -> bool:
        tokens.revoke(ledger, made.id)
        return check(digest, token)

    monkeypatch.setattr(tokens, "_matches", revoked_meanwhile)
    assert tokens.verify(ledger, made.token) is None
    assert tokens.verify(ledger, made.token) is None


def test_one_slow_check_runs_at_a_time_and_equal_tokens_share_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve clients with three tokens make three checks, none beside another."""
    made = [tokens.create(ledger, f"agent:a{number}").token for number in range(3)]
    check = tokens._matches
    state = SimpleNamespace(running=0, most=0, checks=0)
    guard = threading.Lock()

    def watched(digest: str, token: str) -> bool:
        with guard:
            state.running += 1
            state.checks += 1
            state.most = max(state.most, state.running)
        try:
            return check(digest, token)
        finally:
            with guard:
                state.running -= 1

    monkeypatch.setattr(tokens, "_matches", watched)
    found: list[str | None] = []
    threads = [
        threading.Thread(target=lambda token=token: found.append(tokens.verify(ledger, token)))
        for token in made * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name or "" for name in found) == sorted([f"agent:a{number}" for number in range(3)] * 4)
    assert (state.most, state.checks) == (1, 3)


def test_the_list_shows_every_token_ever_issued(ledger: Ledger, clock: Clock) -> None:
    """Oldest first, revoked ones too, nothing secret."""
    first = tokens.create(ledger, "agent:a", label="laptop")
    clock.pass_time(seconds=1)
    second = tokens.create(ledger, "agent:b")
    tokens.revoke(ledger, first.id)
    assert [
        (row.id, row.principal, row.label, row.created_at, row.revoked_at) for row in tokens.listing(ledger)
    ] == [
        (first.id, "agent:a", "laptop", "2026-11-30T12:00:00Z", "2026-11-30T12:00:01Z"),
        (second.id, "agent:b", "", "2026-11-30T12:00:01Z", None),
    ]


def test_a_token_is_only_made_for_a_principal(ledger: Ledger) -> None:
    """A misspelled one would match no grant."""
    with pytest.raises(Invalid) as caught:
        tokens.create(ledger, "claude")
    assert caught.value.code == "principal.invalid"
    assert tokens.listing(ledger) == []


def test_a_prefix_is_never_given_twice(tmp_path: Path, clock: Clock) -> None:
    """Randomness that repeats itself is an error, not two tokens that are taken for one another."""
    ledger = Ledger.open(tmp_path, clock, entropy=lambda count: b"\1" * count)
    tokens.create(ledger, "agent:a")
    with pytest.raises(Broken) as caught:
        tokens.create(ledger, "agent:b")
    assert caught.value.code == "ledger.prefix"
    ledger.close()


def test_a_hash_that_was_tampered_with_proves_nothing(ledger: Ledger) -> None:
    """Neither an empty one nor one of another kind."""
    made = tokens.create(ledger, "agent:a")
    for kept in ("", "plain", "$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA", made.token):
        with ledger.transaction() as tx:
            tx.execute("UPDATE tokens SET hash = ?", (kept,))
        assert tokens.verify(ledger, made.token) is None

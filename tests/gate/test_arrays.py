"""JSON arrays of messages: every request has one answer, in one array, whatever order answers come in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.gate.arrays import MOST, Arrays, Parts, fault_of, key_of, parts

IDS = st.integers(0, 5) | st.sampled_from(["0", "1", "a"])
REQUESTS = st.builds(lambda number: {"jsonrpc": "2.0", "id": number, "method": "ping"}, IDS)
NOTES = st.just({"jsonrpc": "2.0", "method": "notifications/x"})
JUNK: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()) | st.just({})
)
ENTRIES: st.SearchStrategy[list[Any]] = st.lists(REQUESTS | NOTES | JUNK, min_size=1, max_size=MOST)


@given(ENTRIES, st.sets(IDS, max_size=3), st.randoms())
def test_each_entry_is_served_or_has_its_error(entries: list[Any], in_use: set[Any], chance: Any) -> None:
    """Nothing is lost, nothing is served twice, and the answer is given once, when all of it is there."""
    keys = {key_of(each) for each in in_use}
    taken = parts(entries, keys)
    assert len(taken.messages) + len(taken.errors) == len(entries)
    assert len(set(taken.requests)) == len(taken.requests)
    assert not keys & set(taken.requests)
    arrays = Arrays()
    given = [arrays.begin(taken)]
    waiting = list(taken.requests)
    chance.shuffle(waiting)
    for key in waiting:
        assert arrays.holds(key)
        answer = None if chance.random() < 0.2 else json.dumps({"id": json.loads(key)}).encode()
        given.append(arrays.answered(key, answer))
        assert not arrays.holds(key)
    whole = [each for each in given if each is not None]
    assert len(whole) <= 1
    assert all(each is None for each in given[:-1])
    if whole:
        answers = json.loads(whole[0])
        assert [each for each in answers if "error" in each] == taken.errors


@pytest.mark.parametrize(
    "entry",
    [
        None, 3, "x", [], {}, [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": "x" * 300, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5}, {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
    ],
)  # fmt: skip
def test_what_is_no_message_is_not_served(entry: object) -> None:
    """Its error names its id where it has one that can be named."""
    taken = parts([entry])
    assert taken.messages == []
    (error,) = taken.errors
    assert error["error"]["code"] == -32600
    assert len(json.dumps(error)) < 300


def test_answers_of_a_client_are_passed_on_and_not_answered() -> None:
    """As are notifications: such an array has no answer."""
    given: list[object] = [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {}},
    ]
    taken = parts(given)
    assert taken == Parts(given, [])  # type: ignore[arg-type]
    assert taken.requests == []
    assert Arrays().begin(taken) is None


def test_only_empty_and_endless_arrays_are_refused_as_a_whole() -> None:
    """With one error, instead of one for each entry."""
    assert [bool(fault_of([None] * count)) for count in (0, 1, MOST, MOST + 1)] == [True, False, False, True]

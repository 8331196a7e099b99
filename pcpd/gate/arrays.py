"""Arrays of JSON-RPC messages (batches, a part of MCP 2025-03-26): what each entry is, and the one answer to all.

Pure. Every transport takes arrays apart and serves their messages one by one; `initialize` must stand alone.
"""

import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST = 100
"""Messages of one array."""
INVALID_REQUEST = -32600
KEY_LIMIT = 200
_NO_MESSAGE = "not a JSON-RPC 2.0 message"

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """An array taken apart: the messages to serve, in order, and the errors of entries that cannot be served."""

    messages: list[Message]
    errors: list[Message]

    @property
    def requests(self) -> list[str]:
        """The keys of the messages that are to be answered."""
        return [key_of(each["id"]) for each in self.messages if "method" in each and "id" in each]


def key_of(number: object) -> str:
    """Gives an id as a word: `1` and `"1"` differ in JSON-RPC."""
    return json.dumps(number)


def fault_of(entries: Sequence[object]) -> str:
    """Says why an array is refused as a whole; empty where it is not."""
    if not entries:
        return "the array is empty"
    return f"an array holds {MOST} messages at most" if len(entries) > MOST else ""


def parts(
    entries: Sequence[object],
    in_use: Container[str] = (),
    *,
    is_message: Callable[[Message], bool] = lambda _: True,
) -> Parts:
    """Takes an array apart. `in_use` holds the keys of requests that wait for their answers already.

    `is_message` knows what the transport cannot take for a message, whatever it looks like.
    """
    taken = Parts([], [])
    seen: set[str] = set()
    for entry in entries:
        message: Message = entry if isinstance(entry, dict) else {}
        number, fault = message.get("id"), _fault(message)
        if not fault and not is_message(message):
            fault = _NO_MESSAGE
        if not fault and "method" in message and number is not None:
            key = key_of(number)
            fault = "this id is that of another request" if key in seen or key in in_use else ""
            seen.add(key)
        if fault:
            taken.errors.append(error(number if is_id(number) else None, fault))
        else:
            taken.messages.append(message)
    return taken


def error(number: object, message: str, code: int = INVALID_REQUEST) -> Message:
    """Gives the answer to an entry that cannot be served."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def is_id(number: object) -> bool:
    """Tells whether something can be the id of a request: a short string or a whole number."""
    return isinstance(number, str | int) and not isinstance(number, bool) and len(key_of(number)) <= KEY_LIMIT


def joined(answers: Sequence[bytes]) -> bytes:
    """Gives messages, each as JSON, as one array."""
    return b"[" + b",".join(each.strip() for each in answers) + b"]"


@dataclass
class _Open:
    """One array whose answer is not whole yet."""

    waiting: set[str]
    answers: list[bytes]


@dataclass
class Arrays:
    """The arrays of one connection that are under way: their answers are held back until all are there."""

    _of: dict[str, _Open] = field(default_factory=dict)

    def begin(self, taken: Parts) -> bytes | None:
        """Notes an array. Gives its answer where that is whole already: errors alone."""
        errors = [json.dumps(each).encode() for each in taken.errors]
        array = _Open(set(taken.requests), errors)
        self._of.update(dict.fromkeys(array.waiting, array))
        return None if array.waiting or not errors else joined(errors)

    def holds(self, key: str) -> bool:
        """Tells whether a request came in an array."""
        return key in self._of

    def answered(self, key: str, answer: bytes | None) -> bytes | None:
        """Takes the answer to a request that came in an array; None: it will never have one.

        Gives the array of all answers when this was the last one that it waited for.
        """
        array = self._of.pop(key)
        array.waiting.discard(key)
        if answer is not None:
            array.answers.append(answer)
        return None if array.waiting or not array.answers else joined(array.answers)


def _fault(entry: Message) -> str:
    """Says what is wrong with one entry; empty where it is a message."""
    if entry.get("jsonrpc") != "2.0":
        return _NO_MESSAGE
    if "method" not in entry:
        is_answer = is_id(entry.get("id")) and ("result" in entry) != ("error" in entry)
        return "" if is_answer else _NO_MESSAGE
    if not isinstance(entry["method"], str) or ("id" in entry and not is_id(entry["id"])):
        return _NO_MESSAGE
    if not isinstance(entry.get("params", {}), dict):
        return _NO_MESSAGE
    return "initialize stands alone, not in an array" if entry["method"] == "initialize" else ""

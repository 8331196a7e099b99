"""What the relay remembers of one MCP session, so that it outlives the owner that serves it. Pure.

Lines of JSON-RPC go in, lines come out; no socket is known here. Kept are: the client's `initialize` (said
again to the next owner, whose answer nobody else sees), requests without an answer (asked again), and the
owner's own questions (answers to a dead owner are dropped). Each `tools/call` gets a key in its `_meta`, by
which the ledger recognises a write that was asked twice. Source: architecture.md, *The owner*.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pcpd.client import unwelcome

KEY = "pcpd/key"
TRIES = 3  # a request under which three owners died is answered with an error instead
PARSE_ERROR, INVALID_REQUEST, UNAVAILABLE = -32700, -32600, -32000
_REPEATABLE = frozenset({"initialize", "ping", "completion/complete", "logging/setLevel"})
_REPEATABLE_KINDS = ("tools/", "resources/", "prompts/")

Message = dict[str, object]


@dataclass(slots=True)
class Out:
    """Lines to send, each with its newline."""

    to_owner: list[bytes] = field(default_factory=list)
    to_client: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """A request that has no answer yet."""

    line: bytes
    method: str
    tries: int = 1


class Session:
    """One client's session. `new_key` gives a fresh unguessable word at each call."""

    def __init__(self, new_key: Callable[[], str]) -> None:
        """Begins without an owner."""
        self._new_key = new_key
        self._initialize: Message | None = None
        self._initialized: bytes | None = None
        self._is_known = False  # whether some owner has answered `initialize`
        self._pending: dict[str, _Pending] = {}
        self._asked: set[str] = set()
        self._replay: str | None = None
        self._is_connected = False

    @property
    def is_waiting(self) -> bool:
        """Tells whether the client waits for an answer."""
        return bool(self._pending)

    @property
    def backlog(self) -> int:
        """How many bytes of requests have no answer yet."""
        return sum(len(request.line) for request in self._pending.values())

    def from_client(self, line: bytes) -> Out:
        """Takes one line of the client, without its newline."""
        if not line.strip():
            return Out()
        message = _parse(line)
        if message is None:
            return Out(to_client=[failure(None, PARSE_ERROR, "not a JSON-RPC message in UTF-8")])
        out = Out()
        if isinstance(message, list):
            for each in message:
                self._take(each, _line(each), out)
        else:
            self._take(message, line + b"\n", out)
        return out

    def from_owner(self, line: bytes) -> Out:
        """Takes one line of the owner. What is no JSON-RPC message goes nowhere."""
        message = _parse(line)
        out = Out()
        if isinstance(message, list):
            for each in message:
                self._pass_on(each, _line(each), out)
        elif message is not None:
            self._pass_on(message, line + b"\n", out)
        return out

    def connected(self) -> list[bytes]:
        """Gives what to say to a new owner, after the relay's own greeting."""
        self._is_connected = True
        if not self._is_known or self._initialize is None:
            return self._resumed()
        self._replay = _key(f"pcpd-{self._new_key()}")
        return [_line({**self._initialize, "id": json.loads(self._replay)})]

    def lost(self) -> list[bytes]:
        """Notes that the owner died; gives errors for what may not be asked again."""
        self._is_connected, self._replay = False, None
        self._asked.clear()
        errors = []
        for key, request in list(self._pending.items()):
            request.tries += 1
            if request.tries > TRIES or not _is_repeatable(request.method):
                del self._pending[key]
                errors.append(failure(json.loads(key), UNAVAILABLE, "the owner of the vault ended meanwhile"))
        return errors

    def give_up(self, message: str, data: Mapping[str, object]) -> list[bytes]:
        """Gives an error for every request that waits: no owner can be had, or it refuses us."""
        errors = [failure(json.loads(key), UNAVAILABLE, message, data) for key in self._pending]
        self._pending.clear()
        return errors

    def turn_away(self, text: str) -> list[bytes]:
        """Gives an answer to every request that waits, which says why there is nothing for this client."""
        answers = []
        for key, request in self._pending.items():
            said = json.loads(request.line)
            answers.append(unwelcome.line(json.loads(key), request.method, said.get("params"), text))
            self._is_known |= request.method == "initialize"
        self._pending.clear()
        return answers

    def _take(self, message: Message, line: bytes, out: Out) -> None:
        """Notes one message of the client and says where it goes."""
        method = message.get("method")
        if not isinstance(method, str):
            key = _key(message.get("id"))
            if key in self._asked:
                self._asked.discard(key)
                out.to_owner.append(line)
            return
        if method == "tools/call":
            line = _line(self._with_key(message))
        if "id" in message:
            self._pending[_key(message["id"])] = _Pending(line, method)
        if method == "initialize":
            self._initialize = message
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled" and isinstance(params := message.get("params"), dict):
            self._pending.pop(_key(params.get("requestId")), None)
        if self._is_connected and self._replay is None:
            out.to_owner.append(line)

    def _with_key(self, message: Message) -> Message:
        """Gives a tool call with a key of its own in `_meta`; a key that the client gave stays."""
        params = message.get("params")
        if not isinstance(params, dict):
            return message
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        return {**message, "params": {**params, "_meta": {KEY: self._new_key(), **meta}}}

    def _pass_on(self, message: Message, line: bytes, out: Out) -> None:
        """Notes one message of the owner and says where it goes."""
        if "jsonrpc" not in message:
            return
        key = _key(message.get("id"))
        if "method" in message:
            if "id" in message:
                self._asked.add(key)
        elif key == self._replay:
            self._replay = None
            out.to_owner += self._resumed()
            return
        elif (request := self._pending.pop(key, None)) and request.method == "initialize":
            self._is_known = "result" in message
        out.to_client.append(line)

    def _resumed(self) -> list[bytes]:
        """Gives what a fresh owner must hear again once it knows the client."""
        begun = [self._initialized] if self._is_known and self._initialized else []
        return begun + [request.line for request in self._pending.values()]


def failure(identity: object, code: int, message: str, data: Mapping[str, object] | None = None) -> bytes:
    """Gives the line of a JSON-RPC error."""
    error: dict[str, object] = {"code": code, "message": message}
    return _line({"jsonrpc": "2.0", "id": identity, "error": {**error, **({"data": data} if data else {})}})


def _is_repeatable(method: str) -> bool:
    """Tells whether asking twice does no harm: reads, and tool calls, which carry a key."""
    return method in _REPEATABLE or method.startswith(_REPEATABLE_KINDS)


def _parse(line: bytes) -> Message | list[Message] | None:
    """Gives the message, or the batch, that a line holds; None for anything else."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    many = value if isinstance(value, list) else [value]
    return value if many and all(isinstance(each, dict) for each in many) else None


def _refuse(constant: str) -> object:
    """Refuses NaN and infinities, which Python reads and JSON does not know."""
    raise ValueError(constant)


def _number(text: str) -> float:
    """Reads a number; one that is too large for a float would come out as no JSON."""
    number = float(text)
    if abs(number) == float("inf"):
        _refuse(text)
    return number


def _key(identity: object) -> str:
    """Gives an id as a word: `1` and `"1"` differ in JSON-RPC."""
    return json.dumps(identity)


def _line(message: Message) -> bytes:
    """Gives a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"

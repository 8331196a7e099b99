"""What the relay remembers of one MCP session, so that it outlives the owner that serves it. Pure.

Lines of JSON-RPC go in, lines come out; no socket is known here. Kept are: the client's `initialize` (said
again to the next owner, whose answer nobody else sees), requests without an answer (asked again), what the client
wants to hear of (`subscriptions`), and the owner's own questions (answers to a dead owner are dropped). Arrays of
messages are taken apart, and their answers held back until all are there. Each `tools/call` gets a key in its
`_meta`, by which the ledger recognises a write that was asked twice. Source: architecture.md, *The owner*.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pcpd.client import unauthorized
from pcpd.client.subscriptions import Message, Subscriptions, news_of_stream, stream_of
from pcpd.gate import arrays
from pcpd.gate.arrays import Arrays

KEY = "pcpd/key"
TRIES = 3  # a request under which three owners died is answered with an error instead
PARSE_ERROR, INVALID_REQUEST, UNAVAILABLE = -32700, -32600, -32000
_REPEATABLE = frozenset(
    {
        "initialize",
        "ping",
        "completion/complete",
        "logging/setLevel",
        "server/discover",
        "subscriptions/listen",
    }
)
_REPEATABLE_KINDS = ("tools/", "resources/", "prompts/")


@dataclass(slots=True)
class Out:
    """Lines to send, each with its newline."""

    to_owner: list[bytes] = field(default_factory=list)
    to_client: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """A request that has no answer yet. `is_open`: it is a stream, which an owner has acknowledged."""

    line: bytes
    method: str
    uri: object = None
    tries: int = 1
    is_open: bool = False


class Session:
    """One client's session. `new_key` gives a fresh unguessable word at each call."""

    def __init__(self, new_key: Callable[[], str]) -> None:
        """Begins without an owner."""
        self._new_key = new_key
        self._initialize: Message | None = None
        self._initialized: bytes | None = None
        self._is_known = False  # whether some owner has answered `initialize`
        self._pending: dict[str, _Pending] = {}
        self._arrays = Arrays()
        self._subscriptions = Subscriptions()
        self._asked: set[str] = set()
        self._replay: str | None = None
        self._unheard: dict[str, str] = {}  # what was subscribed to in the client's name; it hears no answer
        self._is_connected = False
        self._is_resting = (
            False  # no owner can be had, or it refuses us: the client's next message tries again
        )

    @property
    def is_waiting(self) -> bool:
        """Tells whether the client waits for an answer."""
        return any(not request.is_open for request in self._pending.values())

    @property
    def is_listening(self) -> bool:
        """Tells whether the client wants to hear of changes, for which an owner is worth being looked for."""
        return not self._is_resting and (bool(self._subscriptions) or bool(self._pending))

    @property
    def backlog(self) -> int:
        """How many bytes of requests have no answer yet."""
        return sum(len(request.line) for request in self._pending.values())

    def from_client(self, line: bytes) -> Out:
        """Takes one line of the client, without its newline."""
        self._is_resting = False
        if not line.strip():
            return Out()
        message = _parse(line)
        out = Out()
        if isinstance(message, dict):
            self._take(message, line + b"\n", out)
        elif message is None:
            out.to_client.append(failure(None, PARSE_ERROR, "not a JSON-RPC message in UTF-8"))
        elif fault := arrays.fault_of(message):
            out.to_client.append(failure(None, INVALID_REQUEST, fault))
        else:
            parts = arrays.parts(message, in_use=self._pending)
            self._tell(self._arrays.begin(parts), out.to_client)
            for each in parts.messages:
                self._take(each, _line(each), out)
        return out

    def from_owner(self, line: bytes) -> Out:
        """Takes one line of the owner. What is no JSON-RPC message goes nowhere."""
        message = _parse(line)
        out = Out()
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict) and "jsonrpc" in each:
                self._pass_on(each, _line(each) if isinstance(message, list) else line + b"\n", out)
        return out

    def connected(self) -> list[bytes]:
        """Gives what to say to a new owner, after the relay's own greeting."""
        self._is_connected = True
        if not self._is_known or self._initialize is None:
            return self._resumed()
        self._replay = arrays.key_of(self._own_id())
        return [_line({**self._initialize, "id": json.loads(self._replay)})]

    def lost(self) -> list[bytes]:
        """Notes that the owner died; gives errors for what may not be asked again."""
        self._is_connected, self._replay = False, None
        self._asked.clear()
        self._unheard.clear()
        errors: list[bytes] = []
        for key, request in list(self._pending.items()):
            request.tries += 0 if request.is_open else 1
            if request.tries > TRIES or not _is_repeatable(request.method):
                error = failure(json.loads(key), UNAVAILABLE, "the owner of the vault ended meanwhile")
                self._answer(key, error, errors)
        return errors

    def give_up(self, message: str, data: Mapping[str, object]) -> list[bytes]:
        """Gives an error for every request that waits: no owner can be had, or it refuses us."""
        self._is_resting = True
        errors: list[bytes] = []
        for key in list(self._pending):
            self._answer(key, failure(json.loads(key), UNAVAILABLE, message, data), errors)
        return errors

    def turn_away(self, text: str) -> list[bytes]:
        """Gives an answer to every request that waits, which says why there is nothing for this client."""
        self._is_resting = True
        answers: list[bytes] = []
        for key, request in list(self._pending.items()):
            said = json.loads(request.line)
            answer = unauthorized.line(json.loads(key), request.method, said.get("params"), text)
            self._is_known |= request.method == "initialize"
            self._answer(key, answer, answers)
        return answers

    def _take(self, message: Message, line: bytes, out: Out) -> None:
        """Notes one message of the client and says where it goes."""
        method = message.get("method")
        if not isinstance(method, str):
            key = arrays.key_of(message.get("id"))
            if key in self._asked:
                self._asked.discard(key)
                out.to_owner.append(line)
            return
        if method == "tools/call":
            line = _line(self._with_key(message))
        if "id" in message:
            self._pending[arrays.key_of(message["id"])] = _Pending(line, method, _uri(message))
        if method == "initialize":
            self._initialize = message
        elif method == "notifications/initialized":
            self._initialized = line
        elif method == "notifications/cancelled" and isinstance(params := message.get("params"), dict):
            self._answer(arrays.key_of(params.get("requestId")), None, out.to_client)
        if self._is_connected and self._replay is None:
            out.to_owner.append(line)

    def _answer(self, key: str, line: bytes | None, to_client: list[bytes]) -> None:
        """Lets go of a request, and gives its answer to the client: at once, or with those of its array."""
        self._pending.pop(key, None)
        self._tell(self._arrays.answered(key, line) if self._arrays.holds(key) else line, to_client)

    def _tell(self, line: bytes | None, to_client: list[bytes]) -> None:
        if line is not None:
            to_client.append(line if line.endswith(b"\n") else line + b"\n")

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
        key = arrays.key_of(message.get("id"))
        if "method" in message:
            if "id" in message:
                self._asked.add(key)
            if not self._is_told_again(message, out):
                out.to_client.append(line)
        elif key == self._replay:
            self._replay = None
            out.to_owner += self._resumed()
            out.to_client += map(_line, self._subscriptions.news())
        elif key in self._unheard:
            out.to_client += map(_line, self._subscriptions.news(self._unheard.pop(key)))
        else:
            request = self._pending.get(key)
            if request is not None and request.method == "initialize":
                self._is_known = "result" in message
            if request is not None and "result" in message:
                self._subscriptions.answered(request.method, request.uri)
            self._answer(key, line, out.to_client)

    def _is_told_again(self, message: Message, out: Out) -> bool:
        """Tells whether a new owner acknowledges a stream that the client has long had; it hears of that as news."""
        stream = stream_of(message)
        request = self._pending.get(arrays.key_of(stream)) if stream is not None else None
        if request is None:
            return False
        was_open, request.is_open, request.tries = request.is_open, True, 1
        if was_open:
            out.to_client += map(_line, news_of_stream(message))
        return was_open

    def _resumed(self) -> list[bytes]:
        """Gives what a fresh owner must hear again once it knows the client."""
        again = []
        for uri, request in self._subscriptions.again().items():
            id_ = self._own_id()
            self._unheard[arrays.key_of(id_)] = uri
            again.append(_line({**request, "id": id_}))
        begun = [self._initialized] if self._is_known and self._initialized else []
        return begun + again + [request.line for request in self._pending.values()]

    def _own_id(self) -> str:
        return f"pcpd-{self._new_key()}"


def _uri(message: Message) -> object:
    params = message.get("params")
    return params.get("uri") if isinstance(params, dict) else None


def failure(identity: object, code: int, message: str, data: Mapping[str, object] | None = None) -> bytes:
    """Gives the line of a JSON-RPC error."""
    error: dict[str, object] = {"code": code, "message": message}
    return _line({"jsonrpc": "2.0", "id": identity, "error": {**error, **({"data": data} if data else {})}})


def _is_repeatable(method: str) -> bool:
    """Tells whether asking twice does no harm: reads, and tool calls, which carry a key."""
    return method in _REPEATABLE or method.startswith(_REPEATABLE_KINDS)


def _parse(line: bytes) -> Message | list[object] | None:
    """Gives the message, or the array, that a line holds; None for anything else."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _refuse(constant: str) -> object:
    """Refuses NaN and infinities, which Python reads and JSON does not know."""
    raise ValueError(constant)


def _number(text: str) -> float:
    """Reads a number; one that is too large for a float would come out as no JSON."""
    number = float(text)
    if abs(number) == float("inf"):
        _refuse(text)
    return number


def _line(message: Message) -> bytes:
    """Gives a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"

"""Requests to the owner over its Unix socket, with its problems turned back into the errors they were."""

import http.client
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from pcpd.client import wire
from pcpd.client.owner import Owner
from pcpd.errors import Broken, Conflict, Denied, Invalid, NotFound, PcpError, Unavailable, Usage
from pcpd.settings import SOCKET

READS = frozenset({"GET", "HEAD"})
CONNECT_S = 10.0

_CLASSES: Mapping[int, type[PcpError]] = {
    400: Usage,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    422: Invalid,
    500: Broken,
    502: Unavailable,
    503: Unavailable,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the owner answered: the bytes, and the headers with lower-case names."""

    data: bytes
    headers: Mapping[str, str]

    def json(self) -> dict[str, object]:
        """Gives the JSON object that the answer is. Raises Broken (`owner.answer`) for anything else."""
        try:
            value = json.loads(self.data)
        except ValueError as error:
            raise _not_understood(error) from error
        if not isinstance(value, dict):
            raise _not_understood(ValueError("no object"))
        return value

    @property
    def version(self) -> str:
        """The version of the page that was sent or written (its `ETag`), or empty."""
        return self.headers.get("etag", "").removeprefix("W/").strip('"')


class Connection:
    """Requests to whoever owns the vault now. Each request has a connection of its own."""

    def __init__(self, owner: Owner, another: Callable[[], Owner]) -> None:
        """`another` finds or starts the next owner when this one died."""
        self._owner, self._another = owner, another

    @property
    def owner(self) -> Owner:
        """The owner that answered last."""
        return self._owner

    def request(
        self,
        method: str,
        route: str,
        *,
        query: Mapping[str, object] | None = None,
        body: bytes | Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request for `route` (below `/vault/v1/`, its parts quoted) and gives the answer.

        Reads go to the next owner when one dies under them; a write whose fate is unknown raises Unavailable
        (`owner.lost`). Raises the error that the owner's problem names.
        """
        target = f"{wire.PREFIX}/{route}{_query(query or {})}"
        data, kind = _body(body)
        sent = {"Host": "localhost", **kind, **(headers or {})}
        try:
            return self._once(method, target, data, sent)
        except _UnsentError:
            self._owner = self._another()
        except _LostError as error:
            if method not in READS:
                raise _unknown_fate() from error
            self._owner = self._another()
        try:
            return self._once(method, target, data, sent)
        except (_UnsentError, _LostError) as error:
            raise Unavailable(
                "owner.lost", "the owner ended twice while it was asked", hint="see `pcpd doctor`"
            ) from error

    def _once(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Makes one exchange with the present owner."""
        link = wire.connect(self._owner.folder / SOCKET, CONNECT_S)
        if link is None:
            raise _UnsentError
        link.settimeout(None)  # an owner at work may take long; when it dies the kernel says so
        talk = _UnixConnection(link)
        try:
            talk.request(method, target, body=data, headers=dict(headers))
            response = talk.getresponse()
            answer = Answer(response.read(), {name.lower(): value for name, value in response.getheaders()})
        except (OSError, http.client.HTTPException) as error:
            raise _LostError from error
        finally:
            talk.close()
        if response.status >= 300:
            raise problem(response.status, answer.data)
        return answer


def quoted(path: str) -> str:
    """Gives a page's path as part of a route: slashes stay, every other reserved byte is escaped."""
    return quote(path, safe="/", errors="surrogateescape")


def problem(status: int, data: bytes) -> PcpError:
    """Gives the error that a problem document stands for."""
    kind = _CLASSES.get(status, Broken if status >= 500 else Usage)
    try:
        said = json.loads(data)
        code, message = str(said["code"]), str(said.get("detail") or said.get("message") or said["title"])
        details = said.get("details")
        return kind(
            code,
            message,
            hint=str(said.get("hint") or ""),
            details=details if isinstance(details, dict) else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return kind("owner.answer", f"the owner answered with status {status} and no reason")


class _UnsentError(Exception):
    """Nobody listens, so nothing was asked."""


class _LostError(Exception):
    """The owner died between question and answer."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket that is connected already."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__("localhost")
        self.sock = link

    def connect(self) -> None:
        """Refuses to connect again by itself."""
        raise ConnectionResetError("the connection was closed")


def _body(body: bytes | Mapping[str, object] | None) -> tuple[bytes | None, dict[str, str]]:
    """Gives the bytes to send and the headers that describe them."""
    if body is None:
        return None, {}
    if isinstance(body, bytes):
        return body, {"Content-Type": "text/markdown"}
    return json.dumps(body).encode(), {"Content-Type": "application/json"}


def _query(query: Mapping[str, object]) -> str:
    """Gives the query string; names without a value are left out."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return "?" + urlencode(given, errors="surrogateescape") if given else ""


def _unknown_fate() -> Unavailable:
    return Unavailable(
        "owner.lost",
        "the owner ended before it answered, so it is not known whether the change was made",
        hint="look with `pcpd log`, then try again",
    )


def _not_understood(why: Exception) -> Broken:
    return Broken("owner.answer", f"the owner's answer is no JSON object: {why}")

"""What the gate looks at in one HTTP request, and why it may not pass, whoever sends it.

- Its host must be this machine. A web page can have a name of its own point here (DNS rebinding); such a name is
  refused.
- It must not come from a web page of somebody else. Refused are an `Origin` that is not this owner itself, a request
  that the browser says comes from another site (`Sec-Fetch-Site`), and every preflight.
- Its URL, headers and body must be within bounds.
- Its body must be of a kind that the route reads. A route that takes JSON takes nothing that a web page can send
  without a preflight.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pcpd.errors import Denied, PcpError, Usage

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refused = tuple[PcpError, int]
"""Why a request may not pass, and the HTTP status for it."""

OPEN_ROUTES = frozenset({"/vault/v1/health"})
"""All that is answered to whoever is on this machine, without a token."""
MCP_ROUTE = "/mcp"
CALLER = "caller"
"""Where the gate puts who calls: `scope["state"][CALLER]`."""
LOOPBACK_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
BODY_LIMIT = 24 * 1024 * 1024
"""Bytes: room for the largest page in JSON's spelling, where each letter of Chinese takes six."""
URL_LIMIT = 32 * 1024
"""Bytes of path and query: room for the longest path of a file, each byte escaped, and a long search."""
HEADERS_LIMIT = 32 * 1024
"""Bytes of all headers together."""
MOST_HEADERS = 100

_BROWSER_SITES = frozenset({"none", "same-origin"})
_JSON = frozenset({"application/json"})
_TEXT = frozenset({"text/markdown", "text/plain", "application/octet-stream"})
_ONCE = {
    b"host": "host", b"origin": "origin", b"sec-fetch-site": "site", b"content-length": "length",
    b"content-type": "media", b"authorization": "authorization", b"transfer-encoding": "coding",
    b"access-control-request-method": "preflight",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Knock:
    """One request. `path` is decoded once; `url` and `head` are the bytes of target and headers, `headers` how many.

    `length` is the body's, where the request tells one; `has_body` is true where one comes without a length too.
    A header that came twice has both values, joined by a comma, so that neither is picked.
    """

    is_local: bool
    path: str
    host: str | None
    origin: str | None = None
    length: int | None = None
    authorization: str | None = field(default=None, repr=False)
    method: str = "GET"
    site: str | None = None
    media: str | None = None
    is_preflight: bool = False
    has_body: bool = False
    url: int = 0
    head: int = 0
    headers: int = 0


def knock_of(scope: Scope) -> Knock:
    """Reads an ASGI scope. A Unix socket's server address has no port (uvicorn's `scope["server"]`)."""
    server = scope.get("server")
    said: dict[str, str] = {}
    head = count = 0
    for name, value in scope.get("headers", ()):
        count += 1
        head += len(name) + len(value)
        known = _ONCE.get(name.lower())
        if known is not None:
            text = value.decode("latin-1")
            said[known] = f"{said[known]}, {text}" if known in said else text
    length = said.get("length", "")
    return Knock(
        is_local=server is not None and server[1] is None,
        path=_path(scope),
        host=said.get("host"),
        origin=said.get("origin"),
        length=int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None,
        authorization=said.get("authorization"),
        method=scope.get("method", "GET"),
        site=said.get("site"),
        media=said.get("media"),
        is_preflight="preflight" in said,
        has_body="coding" in said or length.strip("0") != "",
        url=len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")),
        head=head,
        headers=count,
    )


def refusal(knock: Knock) -> Refused | None:
    """Gives why a request may not pass, whoever sends it; None when it may."""
    if knock.host is None or not LOOPBACK_HOST.fullmatch(knock.host):
        return Denied("http.foreign-host", "this host name is not served", hint="use http://127.0.0.1"), 421
    if _is_foreign(knock):
        return Denied("http.foreign-origin", "requests from web pages are not served"), 403
    return too_much(knock)


def too_much(knock: Knock) -> Refused | None:
    """Gives why a request is larger than a request can be; None when it is not."""
    if knock.url > URL_LIMIT:
        return Usage("http.too-long", f"the URL is over {URL_LIMIT} bytes", hint="ask for less at once"), 414
    if knock.headers > MOST_HEADERS or knock.head > HEADERS_LIMIT:
        much = f"{MOST_HEADERS} headers or {HEADERS_LIMIT} bytes of them"
        return Usage("http.headers", f"the request has more than {much}", hint="send fewer"), 431
    if knock.length is not None and knock.length > BODY_LIMIT:
        return too_large()
    return None


def too_large() -> Refused:
    """Gives the refusal of a body that is over the limit."""
    return Usage("http.too-large", f"the body is over {BODY_LIMIT} bytes", hint="send less at once"), 413


def wrong_kind(knock: Knock) -> Refused | None:
    """Gives why a body is of no kind that its route reads: JSON, or with PUT the text of a page; None when it is.

    A text may come without saying what it is, since no web page can PUT unasked; JSON may not.
    """
    if not knock.has_body or knock.method not in {"POST", "PATCH", "PUT"}:
        return None
    if knock.method == "PUT" and knock.media is None:
        return None
    is_text = knock.method == "PUT"
    if _is_one_of(knock.media or "", _TEXT if is_text else _JSON):
        return None
    kind = "text/markdown" if is_text else "application/json"
    hint = f"send `Content-Type: {kind}`"
    return Usage("http.media-type", f"the body must be {kind}, in UTF-8", hint=hint), 415


def _is_one_of(media: str, kinds: frozenset[str]) -> bool:
    """Tells whether a content type is one of these, and of no other letters than UTF-8."""
    kind, *parameters = (part.strip().lower() for part in media.split(";"))
    pairs = [parameter.partition("=") for parameter in parameters]
    charsets = [value.strip().strip('"') for name, _, value in pairs if name.strip() == "charset"]
    return kind in kinds and "," not in media and all(charset in {"utf-8", "utf8"} for charset in charsets)


def _is_foreign(knock: Knock) -> bool:
    """Tells whether a web page asks, or a browser for one, that this owner did not serve itself."""
    if knock.is_preflight or (knock.site is not None and knock.site not in _BROWSER_SITES):
        return True
    if knock.origin is None:
        return False
    return knock.is_local or knock.host is None or knock.origin != f"http://{knock.host.lower()}"


def _path(scope: Scope) -> str:
    """Gives the path, decoded once. Bytes that are no UTF-8 are kept, as file names may have them."""
    path: str = scope.get("path", "")
    raw = scope.get("raw_path")
    if raw is None or "\ufffd" not in path:  # the server decodes too, and puts this letter for such bytes
        return path
    return unquote(raw.decode("ascii", "surrogateescape"), errors="surrogateescape")

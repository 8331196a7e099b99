"""What a client has subscribed to, so that the next owner hears of it and goes on sending notices. Pure.

Versions with a handshake subscribe to resources one by one; since 2026-07-28 one request is a whole stream. What
changed while there was no owner is not known to anybody: the client is told that all of it may have changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
STREAM = "io.modelcontextprotocol/subscriptionId"

Message = dict[str, Any]


class Subscriptions:
    """The subscriptions of one session with a handshake."""

    def __init__(self) -> None:
        """Begins with none."""
        self._uris: dict[str, None] = {}
        self._has_listed = False

    def __bool__(self) -> bool:
        """Tells whether the client wants to hear of anything."""
        return bool(self._uris) or self._has_listed

    def answered(self, method: str, uri: object) -> None:
        """Notes a request of the client that an owner has answered with a result."""
        if method == "resources/list":
            self._has_listed = True
        elif isinstance(uri, str) and method == "resources/subscribe":
            self._uris[uri] = None
        elif isinstance(uri, str) and method == "resources/unsubscribe":
            self._uris.pop(uri, None)

    def again(self) -> dict[str, Message]:
        """Gives the requests that the next owner must hear, without ids, by what each subscribes to."""
        return {
            uri: {"jsonrpc": "2.0", "method": "resources/subscribe", "params": {"uri": uri}}
            for uri in self._uris
        }

    def news(self, *uris: str) -> Iterator[Message]:
        """Gives what to tell the client after another owner took over: of resources that this one watches again.

        Without any, of their list, which it watches when the client lists it again.
        """
        return _news(uris, is_list=self._has_listed and not uris, more={})


def stream_of(message: Mapping[str, Any]) -> object:
    """Gives the id of the stream that a message of the owner acknowledges; None for any other message."""
    if message.get("method") != "notifications/subscriptions/acknowledged":
        return None
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(STREAM) if isinstance(meta, dict) else None


def news_of_stream(acknowledged: Mapping[str, Any]) -> Iterator[Message]:
    """Gives what to tell the client on a stream that another owner took over, by what that one acknowledged."""
    params = acknowledged["params"]
    honoured = params.get("notifications")
    honoured = honoured if isinstance(honoured, dict) else {}
    uris = honoured.get("resourceSubscriptions")
    return _news(
        [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else (),
        is_list=honoured.get("resourcesListChanged") is True,
        more={"_meta": params["_meta"]},
    )


def _news(uris: Iterable[str], *, is_list: bool, more: Message) -> Iterator[Message]:
    if is_list:
        yield {"jsonrpc": "2.0", "method": LIST_CHANGED, **({"params": more} if more else {})}
    for uri in uris:
        yield {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri, **more}}

"""Counts and times every HTTP request, by its route's template: no path, principal, query or token is kept.

While requests come, it also measures how late the event loop is; a quiet owner is not woken for that.
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pcpd.api.exposition import Family, Histogram, one
from pcpd.gate.knock import MCP_ROUTE, App, Message, Receive, Scope, Send

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds, from a page read to long work."""
PROBE_S = 0.1
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"})
OTHER = "other"
UNMATCHED = "unmatched"
"""The route of what was refused before any, or matched none."""
CUT = "cut"
"""The status of a request that had no answer: its client went away, or a fault cut it."""
_STREAM = b"text/event-stream"


@dataclass(slots=True)
class _Timed:
    """The times of one route and method."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Meter:
    """The numbers of one owner's HTTP doors. For the loop's thread alone."""

    def __init__(self, templates: Mapping[int, str]) -> None:
        """`templates` are those of the routes, by the identity of the route that the framework matches."""
        self._templates = templates
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._times: dict[tuple[str, str], _Timed] = {}
        self._lag = Lag()
        self._open = 0

    def wrap(self, app: App) -> App:
        """Gives `app` with its requests measured."""

        async def measured(scope: Scope, receive: Receive, send: Send) -> None:
            status, is_stream = 0, False

            async def noted(message: Message) -> None:
                nonlocal status, is_stream
                if message["type"] == "http.response.start":
                    status = message["status"]
                    is_stream = any(value.startswith(_STREAM) for _, value in message.get("headers", ()))
                await send(message)

            self._open += 1
            self._lag.watch()
            start = time.perf_counter()
            try:
                await app(scope, receive, noted)
            finally:
                self._open -= 1
                self._note(scope, status, None if is_stream else time.perf_counter() - start)

        return measured

    def _note(self, scope: Scope, status: int, seconds: float | None) -> None:
        """Counts one request. A stream lasts as long as its reader likes, which says nothing."""
        said = scope.get("method", "")
        method = said if said in METHODS else OTHER
        route = self._templates.get(id(scope.get("route")))
        if route is None:
            route = MCP_ROUTE if scope.get("path") == MCP_ROUTE else UNMATCHED
        self._requests[route, method, f"{status // 100}xx" if status else CUT] += 1
        if seconds is not None:
            timed = self._times.get((route, method))
            if timed is None:
                timed = self._times[route, method] = _Timed()
            timed.add(seconds)

    def families(self) -> list[Family]:
        """Gives the numbers."""
        requests = [
            ({"route": route, "method": method, "status": status}, count)
            for (route, method, status), count in sorted(self._requests.items())
        ]
        times = [
            ({"route": route, "method": method}, Histogram(BOUNDS, tuple(timed.counts), timed.total))
            for (route, method), timed in sorted(self._times.items())
        ]
        return [
            Family("pcpd_http_requests_total", "counter", "Requests, by route, method and status.", requests),
            Family(
                "pcpd_http_request_duration_seconds", "histogram", "Time to the end of the answer.", times
            ),
            one("pcpd_http_requests_open", "gauge", "Requests under way, streams among them.", self._open),
            *self._lag.families(),
        ]


class Lag:
    """How late the event loop runs what is due, measured while requests come and a moment longer."""

    def __init__(self) -> None:
        self.last = self.most = 0.0
        self._is_probing = self._is_wanted = False

    def watch(self) -> None:
        """Has the loop measured for a moment."""
        self._is_wanted = True
        if not self._is_probing:
            self._is_probing = True
            self._probe()

    def _probe(self) -> None:
        self._is_wanted = False
        asyncio.get_running_loop().call_later(PROBE_S, self._arrived, time.perf_counter() + PROBE_S)

    def _arrived(self, due: float) -> None:
        self.last = max(0.0, time.perf_counter() - due)
        self.most = max(self.most, self.last)
        if self._is_wanted:
            self._probe()
        else:
            self._is_probing = False

    def families(self) -> list[Family]:
        """Gives the numbers."""
        about = "How late the event loop was, measured while requests come"
        return [
            one("pcpd_event_loop_lag_seconds", "gauge", f"{about}: the last time.", self.last),
            one("pcpd_event_loop_lag_max_seconds", "gauge", f"{about}: the most since the start.", self.most),
        ]

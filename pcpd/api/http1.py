"""HTTP/1.1 by llhttp, in half of the time that a parser in Python takes, with the bounds that uvicorn leaves open.

Heads are bounded, and requests that are sent before the one before them was answered. Trailers, which nobody here
asks for, are left out: uvicorn would add them to the headers of a request that is being served. A wish for another
protocol is passed over. What is no request is answered as everything is that is refused.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pcpd.api.edge import EVERYWHERE
from pcpd.api.errors import problem
from pcpd.errors import Usage

HEAD_BYTES = 64 * 1024
"""Bytes of a request's head, and of what comes with its end in one piece (256 KiB at most)."""
MOST_AHEAD = 16
"""Requests that may wait for the answer to the one before them."""


class Http1(HttpToolsProtocol):
    """The requests of one connection."""

    _is_in_head = True
    _head_bytes = 0

    @property
    def is_waiting(self) -> bool:
        """Tells whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Takes what has come."""
        self._unset_keepalive_if_required()
        if self._is_in_head:
            self._head_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse()
        else:
            if self._is_in_head and self._head_bytes > HEAD_BYTES:
                self._refuse()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header of a head; what comes after a body is none."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begins to serve a request, or has it wait for the one before. Raises what the parser makes its own error."""
        self._is_in_head, self._head_bytes = False, 0
        if len(self.pipeline) >= MOST_AHEAD:
            raise ValueError("too many requests at once")
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise ValueError("not one host (RFC 9112, 3.2)")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Waits for the next head."""
        self._is_in_head = True
        super().on_message_complete()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:
                # The parser goes no further: what follows is the other protocol's, if there were one.
                data = data[wish.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def _refuse(self) -> None:
        """Answers what is no request, where that cannot be taken for the answer to one that was, and hangs up."""
        if not self.is_waiting and not self.pipeline and not self.cycle.more_body:
            self.cycle.keep_alive = False  # it is answered first
            return
        if not self.is_waiting and (self.pipeline or self.cycle.response_started):
            self.transport.abort()
            return
        refused = problem(Usage("http.malformed", "this is no HTTP request, or its head is too long"))
        headers = [*refused.raw_headers, *EVERYWHERE, (b"connection", b"close")]
        lines = [STATUS_LINE[refused.status_code], *(b"%b: %b\r\n" % header for header in headers)]
        self.transport.write(b"".join([*lines, b"\r\n", refused.body]))
        self.transport.close()

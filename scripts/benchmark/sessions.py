"""MCP over streamable HTTP at next to no cost: a session on one connection."""

import json
from typing import Any

from benchmark.wire import MCP_VERSION, Answer, Caller, Line


class Session:
    """A session that was opened."""

    def __init__(self, caller: Caller) -> None:
        self.line = Line(caller.address)
        self.id = ""
        self._caller, self._number = caller, 0
        client = {"name": "bench", "version": "1"}
        self.id = self.line.ask(
            self.request("initialize", protocolVersion=MCP_VERSION, capabilities={}, clientInfo=client)
        ).header("mcp-session-id")
        said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert self.line.ask(caller.mcp(json.dumps(said).encode(), self.id)).status == 202

    def request(self, method: str, **params: Any) -> bytes:
        """Gives the bytes of the next request."""
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        return self._caller.mcp(json.dumps(asked).encode(), self.id)

    def result(self, answer: Answer) -> Any:
        """Gives the result in an answer, which may be an event stream. Raises ValueError for an error."""
        lines = [line[5:] for line in answer.body.split(b"\n") if line.startswith(b"data:") and len(line) > 8]
        said = json.loads(lines[0] if lines else answer.body)
        if said.get("id") != self._number or "error" in said or said["result"].get("isError"):
            raise ValueError(f"no answer to {self._number}: {said}")
        return said["result"]

"""An agent that speaks MCP over HTTP by hand, for what a good client would never say."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from pcpd.policy.grants import CATEGORIES, Grant
from tests.doors import Answer, Doors
from tests.waiting import LONGEST_S

MODERN = "2026-07-28"
BOTH = "application/json, text/event-stream"
INFO = {"name": "test", "version": "1"}


class Agent:
    """One client of the endpoint, with a token, and a session once it has begun one."""

    def __init__(self, doors: Doors, name: str = "agent:claude", *rights: str, token: str = "") -> None:
        self.doors, self.session, self.version = doors, "", ""
        self.token = token or doors.token(name)
        if rights:
            doors.opened.memory.access.grant(Grant(name, ("personal",), CATEGORIES, rights))
        self._number = 0

    def headers(self, **more: str) -> dict[str, str]:
        """What a good client sends with each request; a header that is empty is left out."""
        usual = {
            "Authorization": f"Bearer {self.token}", "Accept": BOTH, "Content-Type": "application/json",
            "Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version,
        }  # fmt: skip
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in {**usual, **named}.items() if value}

    def ask(self, method: str, body: Any = None, **headers: str) -> Answer:
        """Sends one HTTP request to the endpoint."""
        return self.doors.ask(method, "/mcp", body=body, headers=self.headers(**headers), tcp=True)

    def post(self, message: Any, **headers: str) -> Answer:
        """Sends one message, or an array."""
        return self.ask("POST", message, **headers)

    def begin(self, version: str = "2025-06-18") -> Any:
        """Shakes hands; gives what the server says of itself."""
        self.session = self.version = ""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO}
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert answer.status == 200, answer
        said = answer.json()["result"]
        self.session, self.version = answer.headers["mcp-session-id"], said["protocolVersion"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return said

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """A request with an id of its own."""
        self._number += 1
        return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}

    def say(self, method: str, **params: Any) -> Any:
        """Asks in this session; gives the whole answer of JSON-RPC."""
        answer = self.post(self.request(method, **params))
        assert answer.status == 200, answer
        return answer.json()

    def call(self, tool: str, **arguments: Any) -> Any:
        """Calls a tool in this session; gives its result."""
        return self.say("tools/call", name=tool, arguments=arguments)["result"]

    def alone(self, method: str, **params: Any) -> Answer:
        """Asks without a session, as since 2026-07-28."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": INFO,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        message = self.request(method, **params, _meta=meta)
        return self.post(message, **self.routed(method, params))

    def routed(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers by which such a request is routed."""
        name = str(params.get("name") or params.get("uri") or "")
        return {"Mcp_Session_Id": "", "MCP_Protocol_Version": MODERN, "Mcp_Method": method, "Mcp_Name": name}

    def stream(self, method: str = "GET", body: Any = None, **headers: str) -> "Stream":
        """Opens a stream of events."""
        return Stream(self, method, body, headers)


class Stream:
    """A stream of events that stays open."""

    def __init__(self, agent: Agent, method: str, body: Any, headers: Mapping[str, str]) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", agent.doors.port, timeout=LONGEST_S)
        data = None if body is None else json.dumps(body)
        self._link.request(method, "/mcp", body=data, headers=agent.headers(**headers))
        self.answer = self._link.getresponse()

    def hear(self) -> Any:
        """Waits for the next message; None at the end of the stream."""
        while line := self.answer.readline():
            if line.startswith(b"data:"):
                return json.loads(line.removeprefix(b"data:"))
        return None

    def close(self) -> None:
        """Hangs up."""
        self.answer.close()
        self._link.close()

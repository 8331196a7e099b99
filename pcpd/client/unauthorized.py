"""What a client without a valid token is answered: its session begins, and each answer says how it can be let in.

An error to `initialize` would end in a log that nobody reads. A server with one tool, whose text the agent passes on,
reaches the person. Pure. The owner decides who is refused; nothing of the vault is known here.
"""

import json

from pcpd import __version__

TOOL = "describe_context"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NOT_FOUND = -32601
_MODERN = "io.modelcontextprotocol/protocolVersion"

Message = dict[str, object]


def answer(method: str, params: object, text: str) -> Message:
    """Gives the `result` or `error` of a request; `text` says why, and what the person can do."""
    said = params if isinstance(params, dict) else {}
    if method == "initialize":
        return {"result": _begun(said.get("protocolVersion"), text)}
    if method == "tools/list":
        return {"result": {"tools": [_tool(text)], **_era(said, listed=True)}}
    if method == "tools/call":
        content = [{"type": "text", "text": text}]
        return {"result": {"content": content, "isError": True, **_era(said)}}
    if method == "ping":
        return {"result": _era(said)}
    return {"error": {"code": NOT_FOUND, "message": text}}


def _begun(wanted: object, text: str) -> Message:
    version = wanted if wanted in LEGACY_VERSIONS else LEGACY_VERSIONS[0]
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "pcpd", "version": __version__},
        "instructions": text,
    }


def _tool(text: str) -> Message:
    return {
        "name": TOOL,
        "description": f"Says why this client sees nothing, and how the person can change that: {text}",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def _era(params: Message, *, listed: bool = False) -> Message:
    """Gives the further keys that a result must have in the protocol versions without a handshake."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or _MODERN not in meta:
        return {}
    return {"resultType": "complete", **({"ttlMs": 0, "cacheScope": "private"} if listed else {})}


def line(identity: object, method: str, params: object, text: str) -> bytes:
    """Gives the answer to a request as a line of JSON-RPC."""
    said = {"jsonrpc": "2.0", "id": identity, **answer(method, params, text)}
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"

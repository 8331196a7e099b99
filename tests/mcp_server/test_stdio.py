"""`pcpd mcp` as clients start it: the whole life of the process, in every era of the protocol."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import World


@pytest.fixture
def vault(world: World) -> Path:
    """A vault with one page."""
    root = world.home / "vault"
    root.mkdir()
    root.joinpath("boiler.md").write_text("---\ntitle: Boiler\n---\nGas or heat pump?\n")
    world.pcpd("init", root)
    return root


def token_for(world: World, vault: Path) -> str:
    """A token and a grant to read and write."""
    made = world.pcpd("--vault", vault, "token", "create", "--principal", "agent:claude", "--json")
    world.pcpd("--vault", vault, "grant", "agent:claude", "--rights", "read,write")
    return str(json.loads(made.stdout)["token"])


def test_nothing_but_protocol_is_on_standard_output(world: World, vault: Path) -> None:
    """From the first byte to the last: garbage in, faults, a page written, and the end."""
    env = {**world.env, "PCPD_TOKEN": token_for(world, vault), "PYTHONWARNINGS": "always"}
    info = {"name": "test", "version": "1"}
    messages: list[object] = [
        b"garbage", b"\xff\xfe", b"",
        {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "burn", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 2, "method": "nonsense"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "write_page", "arguments": {"path": "n", "content": "heat"}}},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call",
         "params": {"name": "search_memory", "arguments": {"query": "heat"}}},
    ]  # fmt: skip
    said = b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in messages
    )
    done = subprocess.run(
        [sys.executable, "-m", "pcpd", "--vault", vault, "mcp", "--principal", "agent:claude"],
        env=env, input=said, capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    heard = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(each["jsonrpc"] == "2.0" for each in heard)
    assert done.stdout.endswith(b"\n")
    assert {each["id"] for each in heard} == {None, 0, 1, 2, 3, 4}
    assert done.stderr == b""


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_sdk_s_client_works_in_both_eras(world: World, vault: Path, mode: str) -> None:
    """With the handshake, and without: it searches, reads and writes."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pcpd", "--vault", str(vault), "mcp", "--principal", "agent:claude"],
        env={**world.env, "PCPD_TOKEN": token_for(world, vault)},
    )

    async def day() -> None:
        async with Client(stdio_client(server), mode=mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert "search_memory" in tools
            found = await client.call_tool("search_memory", {"query": "heat"})
            assert found.structured_content
            assert found.structured_content["total"] == 1
            made = await client.call_tool("write_page", {"path": "note", "content": "heat"})
            assert not made.is_error
            again = await client.call_tool("search_memory", {"query": "heat"})
            assert again.structured_content
            assert again.structured_content["total"] == 2

    asyncio.run(asyncio.wait_for(day(), 120))

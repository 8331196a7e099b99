"""MCP while owners begin and end: who comes early waits, and what a client wants to hear of outlives an owner."""

import asyncio
import http.client
import json
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPDeprecationWarning

from pcpd.mcp_server.uris import uri_of
from tests.conftest import World
from tests.mcp_server.scene import Stage, staged


def run(stage: Stage) -> "subprocess.Popen[str]":
    """Starts an owner; gives it once it is ready."""
    owner = stage.world.start("--vault", stage.vault, "run")
    assert owner.stderr is not None
    assert owner.stderr.readline().startswith("ready ")
    return owner


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_what_a_client_subscribed_to_is_told_by_the_next_owner(world: World, mode: str) -> None:
    """The owner is killed while nobody asks anything; changes are told as before, and none is missed."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    uri = uri_of("house/roof")

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put_nowait(message.params.uri)

    with staged(world) as stage:
        arguments, env = stage.stdio
        server = StdioServerParameters(command=sys.executable, args=arguments, env=env)

        async def change_owners(told: Any) -> None:
            stage.kill()
            stage.save("house/roof.md", "Changed while nobody looked.\n")
            owner = await asyncio.to_thread(run, stage)
            assert await told() == uri
            stage.save("house/roof.md", "Changed before the next one's eyes.\n")
            assert await told() == uri
            owner.terminate()
            await asyncio.to_thread(owner.communicate)

        async def play() -> None:
            async with Client(stdio_client(server), mode=mode, message_handler=hear) as client:
                if mode == "legacy":
                    with pytest.warns(MCPDeprecationWarning):
                        await client.subscribe_resource(uri)
                    await change_owners(heard.get)
                    return
                async with client.listen(resource_subscriptions=[uri]) as events:

                    async def told() -> str:
                        return str(getattr(await anext(events), "uri", ""))

                    await change_owners(told)

        asyncio.run(asyncio.wait_for(play(), 120))


def test_a_request_over_http_that_comes_early_waits(world: World) -> None:
    """Until the vault is scanned and the SDK is there; a token of the last time is good."""
    with staged(world) as stage:
        stage.kill()
        port = urlsplit(stage.url).port or 0
        env = {**world.env, "PCPD_PORT": str(port)}
        again = subprocess.Popen(
            [sys.executable, "-m", "pcpd", "--vault", str(stage.vault), "run"],
            env=env, cwd=world.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            answer = asked_until_somebody_listens(port, stage.token)
            assert answer["result"]["serverInfo"]["name"] == "pcpd"
        finally:
            again.terminate()
            again.communicate()


def asked_until_somebody_listens(port: int, token: str) -> Any:
    """Asks as soon as the port is open, which is before anything can be served."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json",
    }  # fmt: skip
    while True:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            link.request("POST", "/mcp", body=body, headers=headers)
            response = link.getresponse()
            assert response.status == 200, response.read()
            return json.loads(response.read())
        except ConnectionRefusedError:
            continue
        finally:
            link.close()

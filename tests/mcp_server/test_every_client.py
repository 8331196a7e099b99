"""The SDK's own client plays the whole scene over both transports, in both eras of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from pcpd.mcp_server.answers import DATA_NOTE
from pcpd.mcp_server.uris import TEMPLATE, uri_of
from tests.conftest import World
from tests.mcp_server.scene import ODD, SECRET, Stage, calls, staged

MODES = ["legacy", "auto", "2026-07-28"]
Work = Callable[[Client], Awaitable[None]]


@asynccontextmanager
async def connected(stage: Stage, transport: str, mode: str, heard: Any = None) -> AsyncIterator[Client]:
    """A client that has shaken hands, or need not."""
    if transport == "stdio":
        arguments, env = stage.stdio
        server = StdioServerParameters(command=sys.executable, args=arguments, env=env)
        async with Client(stdio_client(server), mode=mode, message_handler=heard) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {stage.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(stage.url, http_client=http), mode=mode, message_handler=heard
        ) as client,
    ):
        yield client


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_client_does_all_that_there_is(world: World, transport: str) -> None:
    """Every tool, resources, completion, prompts and change notices, in each mode of the client."""
    with staged(world) as stage:

        async def play() -> None:
            for number, mode in enumerate(MODES):
                async with connected(stage, transport, mode) as client:
                    assert (client.protocol_version == "2026-07-28") == (mode != "legacy")
                    if mode != "2026-07-28":  # a client that pins a version asks for no capabilities
                        told_what_holds(client.server_capabilities)
                    await every_tool(client, f"page{number}")
                    await every_resource(client)
                    await every_prompt(client)
                await change_is_told(stage, transport, mode)

        asyncio.run(asyncio.wait_for(play(), 240))


def told_what_holds(capabilities: types.ServerCapabilities) -> None:
    """Resources can be subscribed to and their list changes; tools and prompts never change; no logging."""
    said = capabilities.model_dump(exclude_none=True)
    assert said["resources"] == {"subscribe": True, "list_changed": True}
    assert not said["tools"].get("list_changed")
    assert not said["prompts"].get("list_changed")
    assert set(said) - {"experimental"} == {"resources", "tools", "prompts", "completions"}


async def every_tool(client: Client, mark: str) -> None:
    """Lists the tools and calls each; structured answers are held to their schemas by the client."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    version = "?"
    called = set()
    for name, arguments in calls(mark):
        given = {**arguments, "if_version": version} if name == "remove_page" else arguments
        said = await client.call_tool(name, given)
        assert not said.is_error, (name, said.content)
        assert SECRET not in said.model_dump_json()
        data = said.structured_content or {}
        version = data.get("version") or version
        called.add(name)
    assert called == listed


async def every_resource(client: Client) -> None:
    """Lists, completes and reads; what may not be seen is as if it were not there."""
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == TEMPLATE
    listed = (await client.list_resources()).resources
    assert listed[0].uri == "pcp://profile"
    assert {uri_of("boiler"), uri_of(ODD)} <= {each.uri for each in listed}
    assert uri_of("secret") not in {each.uri for each in listed}
    reference = types.ResourceTemplateReference(uri=TEMPLATE)
    found = await client.complete(reference, {"name": "path", "value": "house/"})
    assert found.completion.values == ["house/roof"]
    page = await client.read_resource(uri_of(ODD))
    assert [content.mime_type for content in page.contents] == ["text/markdown", "text/plain"]
    assert isinstance(page.contents[0], types.TextResourceContents)
    assert page.contents[0].text == "A page with a name of its own.\n"
    assert isinstance(page.contents[1], types.TextResourceContents)
    assert DATA_NOTE in page.contents[1].text
    assert "Sam likes short answers" in (await client.read_resource("pcp://profile")).model_dump_json()
    refusals = set()
    for path in ("secret", "nothing", "../x", ".pcp/context"):
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri_of(path))
        refusals.add((refused.value.code, refused.value.message, str(refused.value.data)))
    assert len(refusals) == 1


async def every_prompt(client: Client) -> None:
    """Gets each prompt; data come in a message of their own."""
    listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert set(listed) == {"recall", "remember", "consolidate"}
    for name, arguments in (
        ("recall", {"topic": "heat"}), ("remember", {"what": "the heat pump is from 2026"}),
        ("consolidate", {"folder": "house"}),
    ):  # fmt: skip
        said = await client.get_prompt(name, arguments)
        task, data = (message.content for message in said.messages)
        assert isinstance(task, types.TextContent)
        assert isinstance(data, types.TextContent)
        assert next(iter(arguments.values())) in task.text
        assert DATA_NOTE in data.text
        assert '"path": "house/roof"' in data.text
        assert SECRET not in said.model_dump_json()


async def change_is_told(stage: Stage, transport: str, mode: str) -> None:
    """Subscribes, changes the page as its person does, and hears of it; and of a new page in the list."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    uri = uri_of("house/roof")

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put_nowait(message.params.uri)
        if isinstance(message, types.ResourceListChangedNotification):
            heard.put_nowait("list")

    async with connected(stage, transport, mode, hear) as client:
        if mode == "legacy":
            await client.list_resources()
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource(uri)
            stage.save("house/roof.md", f"The roof leaks, heat pump or not ({transport}).\n")
            assert await heard.get() == uri
            stage.save(f"new-{transport}-{mode}.md", "New.\n")
            assert await heard.get() == "list"
            return
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as told:
            assert told.honored.resource_subscriptions == [uri]
            stage.save("house/roof.md", f"The roof leaks, heat pump or not ({transport}, {mode}).\n")
            assert getattr(await anext(told), "uri", None) == uri
            stage.save(f"new-{transport}-{mode}.md", "New.\n")
            assert type(await anext(told)).__name__ == "ResourcesListChanged"

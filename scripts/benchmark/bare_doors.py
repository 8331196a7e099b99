"""The least that the same framework and SDK can do: FastAPI with one route, and an MCP server with one tool.

Run as a program, it is that MCP server over standard input and output.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from fastapi import FastAPI
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route

TEXT = "A page of the usual size, with nothing in it. " * 35
"""1.6 KB, as the median page."""


async def _list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    tool = types.Tool(name="read", description="Gives a text.", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool])


async def _call_tool(_ctx: Any, _params: Any) -> types.CallToolResult:
    said = types.TextContent(type="text", text=TEXT)
    return types.CallToolResult(content=[said], structured_content={"text": TEXT})


def _server() -> Server[Any]:
    return Server("bare", on_list_tools=_list_tools, on_call_tool=_call_tool)


class _Endpoint:
    """The SDK's endpoint, as an app: a function would be taken for a route's."""

    def __init__(self) -> None:
        self.manager = StreamableHTTPSessionManager(_server())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serves one request."""
        await self.manager.handle_request(scope, receive, send)


_endpoint = _Endpoint()


@asynccontextmanager
async def _running(_app: FastAPI) -> AsyncIterator[None]:
    async with _endpoint.manager.run():
        yield


app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_running)
app.router.routes.append(Route("/mcp", _endpoint, methods=["GET", "POST", "DELETE"]))


@app.get("/def/{path:path}")
def on_a_thread(path: str) -> dict[str, str]:
    """Answers on a thread of the framework's, as a route must whose work may wait."""
    return {"path": path, "text": TEXT}


@app.get("/async/{path:path}")
async def on_the_loop(path: str) -> dict[str, str]:
    """Answers on the event loop, as a route may that waits for nothing."""
    return {"path": path, "text": TEXT}


async def _main() -> None:
    server = _server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_main())

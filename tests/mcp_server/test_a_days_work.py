"""A real client, the SDK's, does a day's work through the stdio relay: search, read, write, search again."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import World

Work = Callable[[ClientSession], Awaitable[None]]


@pytest.fixture
def vault(world: World) -> Path:
    """A vault with a page inside the agent's grant, one outside, and one that waits for review."""
    root = world.home / "vault"
    root.mkdir()
    root.joinpath("boiler.md").write_text("---\ntitle: Boiler\ntags: [heat]\n---\nGas or heat pump?\n")
    root.joinpath("secret.md").write_text("---\npartition: work\n---\nThe heat of the secret.\n")
    root.joinpath("draft.md").write_text("---\nreview: {state: proposed}\n---\nA proposed heat.\n")
    world.pcpd("init", root)
    return root


def token_for(world: World, vault: Path, *rights: str) -> str:
    """Makes a token for `agent:claude`, and a grant when rights are named."""
    made = world.pcpd("--vault", vault, "token", "create", "--principal", "agent:claude", "--json")
    if rights:
        world.pcpd("--vault", vault, "grant", "agent:claude", "--rights", ",".join(rights))
    return str(json.loads(made.stdout)["token"])


def with_client(world: World, vault: Path, token: str, work: Work) -> None:
    """Runs `work` with a session over `pcpd mcp`."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pcpd", "--vault", str(vault), "mcp", "--principal", "agent:claude"],
        env={**world.env, "PCPD_TOKEN": token},
    )

    async def run() -> None:
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            await work(session)

    asyncio.run(asyncio.wait_for(run(), 120))


async def called(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """Calls a tool that must succeed; gives its structured answer."""
    answer = await session.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    data: dict[str, Any] = answer.structured_content
    return data


def test_an_agent_searches_reads_writes_and_finds_what_it_wrote(world: World, vault: Path) -> None:
    """What the agent writes is searchable by its very next call."""
    token = token_for(world, vault, "read", "write")

    async def day(session: ClientSession) -> None:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names >= {"search_memory", "read_page", "list_pages", "write_page"}
        found = await called(session, "search_memory", query="heat")
        assert [hit["path"] for hit in found["results"]] == ["boiler"]
        page = await called(session, "read_page", path="boiler")
        assert "Gas or heat pump?" in page["content"]
        made = await called(
            session, "write_page", path="notes/pump", content="A zyxquartz note on [[boiler]]."
        )
        assert made["outcome"] == "created"
        again = await called(session, "search_memory", query="zyxquartz")
        assert [hit["path"] for hit in again["results"]] == ["notes/pump"]
        listed = await called(session, "list_pages")
        assert {row["path"] for row in listed["pages"]} == {"boiler", "notes/pump"}
        await called(session, "write_page", path="notes/pump", content="Better.", if_version=made["version"])
        part = await called(session, "read_page", path="[[notes/pump]]", outline=True)
        edit = {"path": "notes/pump", "op": "append", "content": "And [[boiler]]."}
        done = await called(session, "edit_page", **edit, if_version=part["edit_version"])
        links = await called(session, "page_links", path="boiler")
        assert [edge["from"] for edge in links["backlinks"]] == ["notes/pump"]
        recent = await called(session, "recent_pages", limit=1)
        assert [row["path"] for row in recent["pages"]] == ["notes/pump"]
        history = await called(session, "page_history", path="notes/pump")
        assert history["versions"]
        moved = await called(
            session, "move_page", path="notes/pump", to="notes/heat", if_version=done["edit_version"]
        )
        found = await called(session, "search", query="better")
        assert (await called(session, "fetch", id=found["results"][0]["id"]))["text"].endswith(
            "[[boiler]].\n"
        )
        spare = await called(session, "write_page", path="spare", content="x")
        await called(session, "remove_page", path="spare", if_version=spare["version"])
        assert (await called(session, "describe_context"))["pages"] == 2
        assert moved["path"] == "notes/heat"

    with_client(world, vault, token, day)
    assert "Better." in (vault / "notes/heat.md").read_text()
    assert not (vault / "spare.md").exists()


def test_nothing_outside_the_grant_exists(world: World, vault: Path) -> None:
    """Not in results, totals or lists; reading it answers as for a page that never was."""
    token = token_for(world, vault, "read", "write")

    async def look(session: ClientSession) -> None:
        found = await called(session, "search_memory", query="secret or proposed")
        assert (found["results"], found["total"]) == ([], 0)
        assert (await called(session, "list_pages"))["total"] == 1
        texts = []
        for path in ("secret", "draft", "absent"):
            answer = await session.call_tool("read_page", {"path": path})
            assert answer.is_error
            texts.append(repr(answer.content).replace(path, "X"))
        assert len(set(texts)) == 1

    with_client(world, vault, token, look)


def test_without_a_grant_there_is_nothing(world: World, vault: Path) -> None:
    """A token alone opens no page, and writing is denied."""
    token = token_for(world, vault)

    async def look(session: ClientSession) -> None:
        assert (await called(session, "search_memory", query="heat"))["total"] == 0
        answer = await session.call_tool("write_page", {"path": "x", "content": "y"})
        assert answer.is_error
        assert "access.denied" in repr(answer.content)

    with_client(world, vault, token, look)


def test_a_wrong_token_is_told_how_to_get_one(world: World, vault: Path) -> None:
    """The session begins, and its only tool says what the person can do; nothing of the vault is said."""

    async def told(session: ClientSession) -> None:
        (tool,) = (await session.list_tools()).tools
        assert "pcpd connect" in (tool.description or "")
        for name in (tool.name, "search_memory"):
            answer = await session.call_tool(name, {"query": "heat"})
            assert answer.is_error
            assert "pcpd connect" in repr(answer.content)

    for token in ("pcp_00000000_" + "x" * 43, ""):
        with_client(world, vault, token, told)


def test_every_call_leaves_an_audit_row(world: World, vault: Path) -> None:
    """Reads, writes and refusals are written down, without content."""
    token = token_for(world, vault, "read", "write")

    async def work(session: ClientSession) -> None:
        await called(session, "search_memory", query="heat")
        await called(session, "read_page", path="boiler")
        await session.call_tool("read_page", {"path": "secret"})
        await called(session, "write_page", path="new", content="zyxquartz")

    with_client(world, vault, token, work)
    rows = [row for row in audit_rows(world) if row["channel"] != "management"]
    assert [(row["action"], row["outcome"]) for row in rows] == [
        ("search_memory", "ok"),
        ("read_page", "ok"),
        ("read_page", "page.not-found"),
        ("write_page", "ok"),
    ]
    assert {row["principal"] for row in rows} == {"agent:claude"}
    assert {row["channel"] for row in rows} == {"mcp"}
    assert "zyxquartz" not in repr(rows)


def audit_rows(world: World) -> list[dict[str, Any]]:
    """Reads the trail of the only vault from its ledger, the oldest first."""
    import sqlite3

    (ledger,) = (world.home / "state" / "pcpd").glob("ctx_*/ledger.sqlite")
    connection = sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute("SELECT * FROM audit ORDER BY number")]
    finally:
        connection.close()

"""One scene, played at the command line, over the HTTP API and over MCP: each door gives the same answers."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

from tests.service.conftest import Machine

PAGES = {
    "house/boiler.md": "---\ntitle: Boiler\ntags: [heat]\n---\nGas or heat? See [[house/roof]] and [[gone]].\n",
    "house/roof.md": "The roof leaks where the heat pump stands.\n",
    "garden/öl und \U0001f525.md": "Heat of the day.\n",
}
AGENT = "agent:claude"


class RefusedError(Exception):
    """A door refused; the error's code is its text."""


Door = Callable[..., Any]
"""Does one thing at a door: an operation with its arguments. Gives the answer as data; a refusal raises."""


def command_line(machine: Machine) -> Door:
    """The person, by `pcpd … --json`."""

    def do(operation: str, *, path: str = "", text: str = "", to: str = "", version: str = "") -> Any:
        draft = machine.world.home / "draft"
        draft.write_text(text)
        based = ("--if-version", version) if version else ()
        arguments = {
            "search": ("search", text),
            "list": ("list", path),
            "read": ("read", path),
            "links": ("links", path),
            "write": ("write", path, "--file", draft, *based),
            "append": ("edit", path, "--append", text),
            "move": ("move", path, to),
            "remove": ("remove", path, *based),
        }[operation]
        done = machine.pcpd(*arguments, "--json", check=False)
        if done.returncode:
            raise RefusedError(json.loads(done.stderr.splitlines()[-1])["error"]["code"])
        return json.loads(done.stdout)

    return do


def api(link: HTTPConnection, token: str) -> Door:
    """An agent, by the HTTP API."""

    def do(operation: str, *, path: str = "", text: str = "", to: str = "", version: str = "") -> Any:
        page = f"pages/{quote(path)}"
        method, route, body = {
            "search": ("GET", f"search?{urlencode({'q': text})}", None),
            "list": ("GET", f"pages?{urlencode({'folder': path})}", None),
            "read": ("GET", page, None),
            "links": ("GET", f"links/{quote(path)}", None),
            "write": ("PUT", page, text),
            "append": ("PATCH", page, json.dumps({"edits": [{"op": "append", "value": text}]})),
            "move": ("POST", "move", json.dumps({"path": path, "to": to})),
            "remove": ("DELETE", page, None),
        }[operation]
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        headers["Content-Type"] = "text/markdown" if method == "PUT" else "application/json"
        if version:
            headers["If-Match"] = f'"{version}"'
        link.request(method, f"/vault/v1/{route}", body, headers)
        answer = link.getresponse()
        said = json.load(answer)
        if answer.status >= 400:
            raise RefusedError(said["code"])
        return said

    return do


def mcp(relay: "subprocess.Popen[str]") -> Door:
    """An agent, by `pcpd mcp`."""
    numbers = count()

    def send(message: object) -> None:
        assert relay.stdin
        relay.stdin.write(json.dumps(message) + "\n")
        relay.stdin.flush()

    def say(method: str, **params: Any) -> Any:
        number = next(numbers)
        send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert relay.stdout
        answer = json.loads(relay.stdout.readline())
        assert answer["id"] == number
        return answer["result"]

    info = {"name": "test", "version": "1"}
    say("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
    send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def do(operation: str, *, path: str = "", text: str = "", to: str = "", version: str = "") -> Any:
        tool, arguments = {
            "search": ("search_memory", {"query": text}),
            "list": ("list_pages", {"folder": path}),
            "read": ("read_page", {"path": path}),
            "links": ("page_links", {"path": path}),
            "write": ("write_page", {"path": path, "content": text, "if_version": version}),
            "append": ("edit_page", {"path": path, "op": "append", "content": text}),
            "move": ("move_page", {"path": path, "to": to, "if_version": version}),
            "remove": ("remove_page", {"path": path, "if_version": version}),
        }[operation]
        result = say("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise RefusedError(result["_meta"]["pcpd/error"]["code"])
        return result["structuredContent"]

    return do


def refusal(door: Door, operation: str, **arguments: str) -> str:
    """The code with which a door refuses; empty where it does not."""
    try:
        door(operation, **arguments)
    except RefusedError as error:
        return str(error)
    return ""


def ends(answer: Any) -> list[tuple[str, str]]:
    """Where links begin and end; a link to nowhere ends at the empty text. MCP's names for both are its own."""
    links = [*answer["outgoing"], *answer["backlinks"]]
    return sorted(
        (each.get("source") or each["from"], each.get("target") or each.get("to") or "") for each in links
    )


def play(door: Door, mark: str) -> dict[str, Any]:
    """Plays the scene; gives what a door answered, as far as it does not hang on who asks and when."""
    said: dict[str, Any] = {}
    for query in ("heat", "tag:heat", '"heat pump"', "Öl", "nothing of that"):
        found = door("search", text=query)
        said[query] = [found["total"], [each["path"] for each in found["results"]]]
    for folder in ("house", "garden", "nowhere"):
        found = door("list", path=folder)
        said[folder] = [found["total"], [(each["path"], each["title"]) for each in found["pages"]]]
    for file in PAGES:
        found = door("read", path=file.removesuffix(".md"))
        said[file] = [found["path"], found["version"], found.get("text", found.get("content"))]
    said["links"] = ends(door("links", path="house/boiler"))
    return said | _changes(door, f"notes/{mark}")


def _changes(door: Door, page: str) -> dict[str, Any]:
    """The part of the scene that changes pages, and is refused to."""
    said: dict[str, Any] = {"created": door("write", path=page, text="One.\n")["outcome"]}
    old = door("read", path=page)["version"]
    said["appended"] = door("append", path=page, text="Two.")["outcome"]
    now = door("read", path=page)
    said["text"] = str(now.get("text", now.get("content"))).endswith("One.\nTwo.\n")
    said["refused"] = [
        refusal(door, "read", path="no/such page"),
        refusal(door, "read", path=".git/config"),
        refusal(door, "read", path="../outside"),
        refusal(door, "links", path="no/such page"),
        refusal(door, "write", path=page, text="Three.\n"),
        refusal(door, "write", path=page, text="Three.\n", version=old),
        refusal(door, "write", path=f"{page}-absent", text="Three.\n", version="0" * 64),
        refusal(door, "move", path=page, to="house/roof", version=now["version"]),
        refusal(door, "remove", path=page, version=old),
    ]
    said["moved"] = (
        door("move", path=page, to=f"{page}-moved", version=now["version"])["path"] == f"{page}-moved"
    )
    version = door("read", path=f"{page}-moved")["version"]
    said["removed"] = door("remove", path=f"{page}-moved", version=version)["outcome"]
    said["gone"] = refusal(door, "read", path=f"{page}-moved")
    return said


@contextmanager
def relay(machine: Machine, token: str) -> Iterator["subprocess.Popen[str]"]:
    """What an MCP client starts."""
    command = [sys.executable, "-m", "pcpd", "--vault", str(machine.vault), "mcp", "--principal", AGENT]
    with subprocess.Popen(
        command, env={**machine.env, "PCPD_TOKEN": token}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        yield started
        assert started.stdin
        started.stdin.close()


def test_the_same_scene_has_the_same_answers_at_every_door(machine: Machine) -> None:
    """What is found, listed, read, linked, written and refused, and with which codes."""
    (machine.vault / "boiler.md").unlink()
    for file, text in PAGES.items():
        (machine.vault / file).parent.mkdir(exist_ok=True)
        (machine.vault / file).write_text(text)
    machine.run()
    token = machine.json("token", "create", "--principal", AGENT)["token"]
    machine.pcpd("grant", AGENT, "--rights", "read,write")
    address = machine.json("status")["owner"]["url"].removeprefix("http://")
    by_person = play(command_line(machine), "a")
    assert by_person["heat"][0] == 3
    assert ("house/boiler", "house/roof") in by_person["links"]
    assert "" not in by_person["refused"]
    with closing(HTTPConnection(address, timeout=60)) as link:
        assert play(api(link, token), "b") == by_person
    with relay(machine, token) as started:
        assert play(mcp(started), "c") == by_person

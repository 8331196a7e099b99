"""Paths that page routes take: decoded once, inside the vault, and in none of the closed folders, however spelled."""

import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pcpd.pages.paths import is_closed
from pcpd.policy.grants import CATEGORIES, Grant
from tests.doors import Doors

SECRET = b"zyxsecret\n"
OUTWARD = [
    "..%2Fsecret", "%2e%2e/secret", "%2E%2E%2Fsecret", "a/../../secret", "a/%2e%2e/%2e%2e/secret", "..", "../secret",
    ".", "./boiler", "a/./b", "a//b", "{secret}", "//{secret}", "file://{secret}",
    "file:%2F%2F%2F{secret}", "..%5Csecret", "..\\secret", "..%00", "boiler%00", "%00",
    "boiler%00.md", "..%c0%af..%c0%afsecret", "..%ef%bc%8fsecret", "....//secret", "..;/secret", "%2e%2e%2e/secret",
]  # fmt: skip
"""None of these is a page, for nobody."""
NAMES = [
    "%252e%252e%252fsecret", "%252e%252e/secret", "%25252e/x", "%255c..%255csecret", "%5C%5Chost%5Cshare%5Cx",
    "C:%5CWindows%5Cx", "C:/Windows/x", "a%5C..%5C..%5Csecret", "file:x",
]  # fmt: skip
"""Decoded once, these are names of files in the vault, with percent signs, backslashes and colons in them."""
CLOSED = [
    ".git/config", ".GIT/config", ".Git/config", "a/.git/config", ".git%2Fconfig", "%2egit/config", ".git%20/config",
    ".git./config", ".git%3A%3A$INDEX_ALLOCATION/config", "%E2%80%8C.git/config", ".g%E2%80%8Cit/config",
    "GIT~1/config", "git~1/config", ".obsidian/app", ".Obsidian/app", "OBSIDI~1/app", ".pcp/context", ".PCP/context",
    ".pcp/context.yaml", "PCP~1/context", "%EF%BB%BF.pcp/context", ".pcpignore", ".gitignore", "a/.hidden/x", ".git",
    ".pcp", ".obsidian",
    ".git/", ".git/config.md", "boiler/.git/config", ".%67it/config",
]  # fmt: skip


def places(doors: Doors) -> dict[str, bytes]:
    """Every file in and around the vault, without state and without what git changes by itself."""
    base = doors.opened.root.parent
    found = {}
    for file in base.rglob("*"):
        parts = file.relative_to(base).parts
        if (
            file.is_file()
            and "state" not in parts
            and (".git" not in parts or file.name.startswith("config"))
        ):
            found["/".join(parts)] = file.read_bytes()
    return found


@pytest.fixture
def guarded(doors: Doors) -> Doors:
    """A vault with something in each closed folder, and a secret beside it."""
    root = doors.opened.root
    (root.parent / "secret.md").write_bytes(SECRET)
    for file in (".git/config.md", ".obsidian/app.md", ".pcp/context.md", ".pcp/x.yaml", ".hidden.md"):
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_bytes(SECRET)
    doors.opened.memory.access.grant(Grant("agent:claude", ("personal",), CATEGORIES, ("read", "write")))
    return doors


def changes(raw: str, path: str) -> list[tuple[str, str, Any]]:
    """Every way to change something at a path."""
    return [
        ("PUT", f"pages/{raw}?overwrite=1", b"x"), ("PUT", f"pages/{raw}", b"x"), ("DELETE", f"pages/{raw}", None),
        ("PATCH", f"pages/{raw}", {"edits": [{"op": "append", "value": "x"}]}),
        ("POST", "move", {"path": "boiler", "to": path}), ("POST", "move", {"path": path, "to": "taken"}),
        ("POST", "restore", {"path": path, "rev": "HEAD"}),
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["person", "agent"])
@pytest.mark.parametrize("raw", [*OUTWARD, *CLOSED])
def test_no_spelling_leads_out_of_the_vault_or_into_a_closed_folder(
    guarded: Doors, raw: str, by: str
) -> None:
    """Nothing is read, listed, written, moved there or away; and nothing that is said tells what is there."""
    headers = {"Authorization": f"Bearer {guarded.token()}"} if by == "agent" else {}
    raw = raw.format(secret=guarded.opened.root.parent / "secret")
    path = _decoded(raw)
    before = places(guarded)
    for route in (f"pages/{raw}", f"links/{raw}", f"history/{raw}", f"show/{raw}?rev=HEAD"):
        answer = guarded.vault("GET", route, headers=headers)
        # Of any file the person may know what git has; of these it may have something.
        is_versioned = path.startswith((".pcp/", ".gitignore", ".pcpignore"))
        is_past = by == "person" and route.startswith(("history", "show"))
        assert answer.status in {400, 404, 422} or (
            is_past and (is_versioned or answer.json() == {"versions": []})
        ), route
        assert SECRET.strip() not in answer.data
    assert guarded.vault("GET", f"pages?folder={raw}", headers=headers).json()["pages"] == []
    for method, route, body in changes(raw, path):
        answer = guarded.vault(method, route, headers=headers, body=body)
        assert 400 <= answer.status < 500, (method, route, answer.data)
        assert SECRET.strip() not in answer.data
    assert places(guarded) == before


@pytest.mark.parametrize("raw", NAMES)
def test_what_means_something_elsewhere_is_a_name_inside_the_vault(guarded: Doors, raw: str) -> None:
    """As the person wrote it; agents cannot give such names."""
    before = places(guarded)
    assert guarded.vault("GET", f"pages/{raw}").code == "page.not-found"
    token = {"Authorization": f"Bearer {guarded.token()}"}
    assert guarded.vault("PUT", f"pages/{raw}", body=b"x", headers=token).code == "path.strict"
    made = guarded.vault("PUT", f"pages/{raw}", body=b"x")
    assert made.json()["path"] == _decoded(raw)
    assert (guarded.opened.root / f"{_decoded(raw)}.md").read_bytes() == b"x"
    assert places(guarded).items() >= before.items()


@pytest.mark.parametrize(
    "target",
    ["/../../vault/v1/status", "/vault/v1/pages/../status", "/vault/v1/./status", "/vault/v1//status",
     "//vault/v1/status", "/vault/v1/pages/..%2fstatus"],
)  # fmt: skip
def test_dots_lead_from_no_route_to_another(guarded: Doors, target: str) -> None:
    """A path is not normalised behind the gate's back: what it looked at is what is served."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(60)
        link.connect(os.fspath(guarded.http_socket))
        link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert link.recv(65536).startswith(b"HTTP/1.1 404 ")


def test_file_whose_name_is_no_text_has_an_address(guarded: Doors) -> None:
    """Its bytes, escaped; the server's sign for such bytes is another file's name."""
    odd = os.fsencode(guarded.opened.root) + b"/caf\xe9.md"
    Path(os.fsdecode(odd)).write_bytes(b"odd\n")
    (guarded.opened.root / "caf\ufffd.md").write_bytes(b"other\n")
    assert guarded.vault("GET", "pages/caf%E9").data == b"odd\n"
    assert guarded.vault("GET", "pages/caf%EF%BF%BD").data == b"other\n"


PIECES = st.sampled_from(
    [".", "..", "/", "\\", "%2e", "%2f", "%5c", "%252e", "%00", "git", "pcp", "obsidian", "GIT~1", "a", "~1", "%20",
     "%E2%80%8C", ":", "C:", "file:", "secret", "boiler", ".md", "?", "%ff", "%0a"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES, min_size=1, max_size=8))
def test_no_mixture_of_pieces_reads_or_changes_what_is_closed(guarded: Doors, pieces: list[str]) -> None:
    """Whatever is asked, closed folders and what lies outside stay as they are, and unseen."""
    raw = "".join(pieces)
    kept = {name: data for name, data in places(guarded).items() if _is_kept(name)}
    for method, body in (("GET", None), ("PUT", b"x"), ("DELETE", None)):
        answer = guarded.vault(method, f"pages/{raw}", body=body)
        assert answer.status < 500, answer.data
        assert SECRET.strip() not in answer.data
    assert {name: data for name, data in places(guarded).items() if _is_kept(name)} == kept
    assert {each.name for each in guarded.opened.root.parent.iterdir()} == {
        "vault",
        "state",
        "config",
        "secret.md",
    }


def _is_kept(name: str) -> bool:
    folder, _, file = name.partition("/")
    return folder != "vault" or is_closed(file)


def _decoded(raw: str) -> str:
    return unquote(raw, errors="surrogateescape")

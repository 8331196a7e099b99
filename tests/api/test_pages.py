"""Routes of single pages, as the person's programs ask them on the Unix socket."""

import hashlib
import subprocess
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.doors import Doors
from tests.waiting import until

PAGE = b"---\ntitle: Boiler\n---\nGas or heat pump?\n"


def version_of(data: bytes) -> str:
    """The version of bytes."""
    return hashlib.sha256(data).hexdigest()


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a vault but git's own, with bytes and time."""
    return {
        str(file.relative_to(root)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in root.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(root).parts
    }


def test_page_comes_as_it_is_on_disk_with_its_version(doors: Doors) -> None:
    """Every byte, also those that are no UTF-8."""
    odd = b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\n\xff\x00 no text\r\n"
    doors.opened.save("odd.md", odd)
    for name, data in (("boiler", PAGE), ("odd", odd)):
        answer = doors.vault("GET", f"pages/{name}")
        assert (answer.status, answer.data) == (200, data)
        assert answer.headers["etag"] == f'"{version_of(data)}"'
        assert answer.headers["content-type"].startswith("text/markdown")


def test_page_is_made_replaced_and_never_overwritten_by_accident(doors: Doors) -> None:
    """A replacement names what it is based on, or says that it does not care."""
    made = doors.vault("PUT", "pages/a%20b/%C3%BC", body="Gr\xfc\xdfe\n".encode())
    assert (made.status, made.json()["outcome"], made.json()["path"]) == (201, "created", "a b/\xfc")
    assert made.headers["location"] == "/vault/v1/pages/a%20b/%C3%BC"
    assert doors.ask("GET", made.headers["location"]).data == "Gr\xfc\xdfe\n".encode()
    assert (doors.opened.root / "a b/\xfc.md").read_bytes() == "Gr\xfc\xdfe\n".encode()
    route, tag = "pages/a%20b/%C3%BC", made.headers["etag"]
    second = version_of(b"2\n")
    again = doors.vault("PUT", route, body=b"2\n")
    assert (again.status, again.code, again.headers["etag"]) == (409, "page.exists", tag)
    replaced = doors.vault("PUT", route, body=b"2\n", headers={"If-Match": tag})
    assert (replaced.status, replaced.json()["outcome"]) == (200, "replaced")
    assert replaced.headers["etag"] == f'"{second}"'
    stale = doors.vault("PUT", route, body=b"3\n", headers={"If-Match": tag})
    assert (stale.status, stale.code, stale.json()["details"]["version"]) == (412, "page.stale", second)
    assert stale.headers["etag"] == f'"{second}"'
    assert doors.vault("PUT", f"{route}?overwrite=1", body=b"4\n").json()["outcome"] == "replaced"
    assert doors.vault("PUT", f"{route}?overwrite=1", body=b"4\n").json()["outcome"] == "unchanged"
    only_new = doors.vault("PUT", f"{route}?overwrite=1", body=b"5\n", headers={"If-None-Match": "*"})
    assert (only_new.status, only_new.code) == (412, "page.exists")


@pytest.mark.parametrize("tag", ["*", '"a", "b"', '"', "x" * 200, '"\xe9"'])
def test_entity_tag_that_names_no_one_version_is_refused(doors: Doors, tag: str) -> None:
    """Never taken for permission."""
    for method in ("PUT", "DELETE"):
        answer = doors.vault(method, "pages/boiler", body=b"", headers={"If-Match": tag})
        assert answer.code == "http.malformed"
    assert doors.opened.root.joinpath("boiler.md").read_bytes() == PAGE


def test_edits_are_made_all_or_none(doors: Doors) -> None:
    """Every other byte stays."""
    edits = [
        {"op": "set", "where": "importance", "value": 0.5},
        {"op": "replace_text", "where": "heat pump", "value": "district heating"},
        {"op": "append", "value": "Paid."},
    ]
    tag = doors.vault("GET", "pages/boiler").headers["etag"]
    done = doors.vault("PATCH", "pages/boiler", body={"edits": edits}, headers={"If-Match": tag})
    assert done.json()["outcome"] == "replaced"
    after = doors.opened.root.joinpath("boiler.md").read_bytes()
    assert after == b"---\ntitle: Boiler\nimportance: 0.5\n---\nGas or district heating?\nPaid.\n"
    failing = [{"op": "append", "value": "x"}, {"op": "replace_text", "where": "absent", "value": "y"}]
    assert doors.vault("PATCH", "pages/boiler", body={"edits": failing}).status == 404
    stale = doors.vault("PATCH", "pages/boiler", body={"edits": edits}, headers={"If-Match": tag})
    assert (stale.status, stale.code) == (412, "page.stale")
    assert doors.opened.root.joinpath("boiler.md").read_bytes() == after


def test_page_is_moved_removed_and_restored(make_doors: Callable[..., Doors]) -> None:
    """Its versions stay, and bring it back."""
    doors = make_doors({"boiler.md": PAGE})
    moved = doors.vault("POST", "move", body={"path": "boiler", "to": "house/boiler"})
    assert (moved.json()["outcome"], moved.json()["path"]) == ("moved", "house/boiler")
    tag = moved.headers["etag"]
    stale = doors.vault("POST", "move", body={"path": "house/boiler", "to": "b"}, headers={"If-Match": '"0"'})
    assert stale.code == "page.stale"
    assert doors.vault("DELETE", "pages/house/boiler", headers={"If-Match": '"0"'}).code == "page.stale"
    assert (
        doors.vault("DELETE", "pages/house/boiler", headers={"If-Match": tag}).json()["outcome"] == "removed"
    )
    assert doors.vault("GET", "pages/house/boiler").code == "page.not-found"
    removed = until(
        lambda: [
            each["change"] for each in doors.vault("GET", "history/house/boiler").json().get("versions", [])
        ].count("removed")
    )
    assert removed == 1
    rev = doors.vault("GET", "history/house/boiler").json()["versions"][1]["rev"]
    assert doors.vault("GET", f"show/house/boiler?rev={rev}").data == PAGE
    assert (
        doors.vault("GET", f"diff?path=house/boiler&old={rev}")
        .headers["content-type"]
        .startswith("text/x-diff")
    )
    restored = doors.vault("POST", "restore", body={"path": "house/boiler", "rev": rev})
    assert restored.json()["outcome"] == "restored"
    assert doors.vault("GET", "pages/house/boiler").data == PAGE


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("..%2Fx", "path.invalid"), ("%2e%2e/x", "path.invalid"), ("a/../b", "path.invalid"), ("./a", "path.invalid"),
        ("a//b", "path.invalid"), ("%2Fetc%2Fpasswd", "path.invalid"), ("/etc/passwd", "path.invalid"),
        ("file:///etc/passwd", "path.invalid"), ("a%00b", "path.invalid"), ("a%00", "path.invalid"),
        (".git/config", "path.closed"), (".git/zz", "path.closed"), ("sub/.git/zz", "path.closed"),
        (".obsidian/x", "path.closed"), (".pcp/yy", "path.closed"), (".pcp/context.yaml", "path.closed"),
        (".pcp/context", "path.closed"), ("ignored/x", "path.closed"),
    ],
)  # fmt: skip
def test_places_that_are_no_pages_are_closed_to_every_page_route(doors: Doors, raw: str, code: str) -> None:
    """Outside the vault, in dot folders, in ignored ones: nothing is read, written, moved there or away."""
    root = doors.opened.root
    doors.opened.save(".gitignore", b"ignored/\n")
    for file in (".git/zz.md", ".obsidian/x.md", ".pcp/yy.md", "ignored/x.md"):
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).write_text("hidden\n")
    doors.vault("POST", "rebuild")
    until(lambda: doors.opened.memory.ignore.folder("ignored"))
    before, config = tree(root), (root / ".git/config").read_bytes()
    path = urllib.parse.unquote(raw)
    for method, route, body in (
        ("PUT", f"pages/{raw}?overwrite=1", b"x"), ("DELETE", f"pages/{raw}", None),
        ("PATCH", f"pages/{raw}", {"edits": [{"op": "append", "value": "x"}]}),
        ("POST", "move", {"path": "boiler", "to": path}), ("POST", "move", {"path": path, "to": "x"}),
    ):  # fmt: skip
        assert doors.vault(method, route, body=body).code == code, (method, route)
    assert doors.vault("GET", f"pages/{raw}").code == "page.not-found"
    assert doors.vault("GET", f"links/{raw}").code == "page.not-found"
    assert doors.vault("POST", "restore", body={"path": path, "rev": "0" * 40}).code in {
        code,
        "history.no-version",
    }
    assert doors.vault("GET", f"show/{raw}?rev=HEAD").status in {404, 422}
    assert tree(root) == before
    assert (root / ".git/config").read_bytes() == config
    assert not (root.parent / "x.md").exists()


def test_path_is_decoded_once(doors: Doors) -> None:
    """What is encoded twice is a name with a percent sign, and leads nowhere."""
    assert doors.vault("PUT", "pages/%252e%252e", body=b"x").json()["path"] == "%2e%2e"
    assert (doors.opened.root / "%2e%2e.md").exists()


def test_links_do_not_lead_out_of_the_vault(doors: Doors, tmp_path: Path) -> None:
    """Neither a file nor a folder that is a link is read or written through."""
    (tmp_path / "secret.md").write_text("zyxsecret\n")
    (doors.opened.root / "file.md").symlink_to(tmp_path / "secret.md")
    (doors.opened.root / "folder").symlink_to(tmp_path)
    for path in ("file", "folder/secret"):
        assert b"zyxsecret" not in doors.vault("GET", f"pages/{path}").data
        assert doors.vault("PUT", f"pages/{path}?overwrite=1", body=b"x").status >= 400
    assert doors.vault("PUT", "pages/folder/new", body=b"x").status >= 400
    assert (tmp_path / "secret.md").read_text() == "zyxsecret\n"
    assert not (tmp_path / "new.md").exists()


def test_largest_page_is_written_edited_and_read(doors: Doors) -> None:
    """10 MiB of it, in letters that take six bytes each in JSON; one byte more is refused."""
    text = ("蝶番図鑑" * 873_813)[: 10 * 1024 * 1024 // 3 - 10]
    data = text.encode() + b"\n"
    assert doors.vault("PUT", "pages/big", body=data).status == 201
    assert doors.vault("GET", "pages/big").data == data
    edit = {"edits": [{"op": "replace_body", "value": text[::-1] + "\n"}]}
    assert doors.vault("PATCH", "pages/big", body=edit).status == 200
    assert doors.vault("GET", "pages/big").data == text[::-1].encode() + b"\n"


@pytest.mark.parametrize("body", [b"\xff", b"ok\xe9", b"\xed\xa0\x80", "x".encode("utf-16")])
def test_text_that_is_no_utf8_is_not_written(doors: Doors, body: bytes) -> None:
    """The place of the first bad byte is named, and nothing of the text."""
    answer = doors.vault("PUT", "pages/new", body=body)
    assert (answer.status, answer.code) == (422, "page.content")
    assert not (doors.opened.root / "new.md").exists()


def test_write_that_is_sent_again_is_made_once(doors: Doors) -> None:
    """By its idempotency key, a day long; a key that is too long is refused, not cut."""
    headers = {"Idempotency-Key": "k1"}
    first = doors.vault("PUT", "pages/new", body=b"1\n", headers=headers)
    doors.vault("DELETE", "pages/new")
    again = doors.vault("PUT", "pages/new", body=b"1\n", headers=headers)
    assert (again.status, again.json()) == (201, first.json())
    assert not (doors.opened.root / "new.md").exists()
    long = doors.vault("PUT", "pages/new", body=b"1\n", headers={"Idempotency-Key": "k" * 201})
    assert long.code == "http.malformed"


def test_reads_change_nothing(doors: Doors) -> None:
    """No file of the vault, and nothing in git, whatever is read."""
    until(lambda: doors.vault("GET", "history").json()["versions"])
    git = ["git", "-C", str(doors.opened.root)]
    until(lambda: not subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout)
    before = (
        tree(doors.opened.root),
        subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True),
    )
    routes = (
        "health status work search?q=heat pages pages/boiler recent links/boiler history history/boiler"
        " show/boiler?rev=HEAD diff tokens grants pages/absent"
    )
    for route in routes.split():
        for method in ("GET", "HEAD"):
            assert doors.vault(method, route).status < 500, route
    after = (
        tree(doors.opened.root),
        subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True),
    )
    assert (after[0], after[1].stdout) == (before[0], before[1].stdout)


@pytest.mark.parametrize("name", ["two\nlines", "ends so\n", "\n", "tab\tand \r", "a?b#c%d&e=f;g"])
def test_page_of_any_name_is_served(make_doors: Callable[..., Doors], name: str) -> None:
    """Whatever characters a person's file has in its name."""
    doors = make_doors({f"{name}.md": PAGE})
    raw = quote(name, safe="")
    assert doors.vault("GET", f"pages/{raw}").data == PAGE
    assert doors.vault("GET", f"links/{raw}").status == 200
    assert (
        doors.vault("PATCH", f"pages/{raw}", body={"edits": [{"op": "append", "value": "x"}]}).status == 200
    )
    until(lambda: doors.vault("GET", f"history/{raw}").json().get("versions"))
    assert doors.vault("GET", f"show/{raw}?rev=HEAD").status == 200
    assert doors.vault("DELETE", f"pages/{raw}").json()["outcome"] == "removed"

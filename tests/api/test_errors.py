"""How errors are told over HTTP: as problem documents, with code and hint, and nothing that is nobody's business."""

import json
import logging
import os
import socket
from collections.abc import Callable
from http import HTTPStatus

import pytest

from pcpd import __version__, errors
from pcpd.api.errors import STATUS, problem, status_of
from pcpd.memory import read
from tests.doors import Answer, Doors

PROBLEM = {"type", "title", "status", "detail", "code", "hint", "details"}


def kinds() -> list[type[errors.PcpError]]:
    """Every class of the tree."""
    return errors.PcpError.__subclasses__()


@pytest.mark.parametrize("kind", kinds())
def test_every_class_has_its_status(kind: type[errors.PcpError]) -> None:
    """A class that is added without one fails here."""
    assert kind in STATUS
    error = kind("room.what", "what happened", hint="do that", details={"version": "1"})
    said = json.loads(bytes(problem(error).body))
    assert set(said) == PROBLEM
    assert (said["status"], said["code"], said["hint"]) == (status_of(error), "room.what", "do that")
    assert said["details"] == {"version": "1"}
    assert said["title"] == HTTPStatus(said["status"]).phrase  # RFC 9457, 4.2.1


def test_classes_below_are_told_like_the_one_above() -> None:
    """Statuses are found by what an error is."""

    class Busy(errors.Unavailable):
        pass

    assert status_of(Busy("x.y", "z")) == 503


@pytest.mark.parametrize("kind", kinds())
def test_what_an_act_raises_reaches_the_client(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, kind: type[errors.PcpError]
) -> None:
    """Through the whole door, with our version on it."""

    def failing(*_: object, **__: object) -> None:
        raise kind("room.what", "what happened", hint="do that")

    monkeypatch.setattr(read, "search", failing)
    answer = doors.vault("GET", "search?q=x")
    assert (answer.code, answer.status) == ("room.what", STATUS[kind])
    assert answer.headers["pcpd-version"] == __version__


def test_fault_of_ours_is_logged_and_told_without_its_words(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No traceback, no text of a page, no secret reaches the client; the log has it all; the door goes on."""
    monkeypatch.setattr(logging.getLogger("pcpd"), "propagate", True)

    def failing(*_: object, **__: object) -> None:
        raise KeyError("zyxsecret of a page")

    monkeypatch.setattr(read, "search", failing)
    answer = doors.vault("GET", "search?q=x")
    assert (answer.status, answer.code) == (500, "owner.fault")
    assert b"zyxsecret" not in answer.data
    assert b"Traceback" not in answer.data
    assert answer.json()["hint"]
    assert "KeyError in api/search.py:" in answer.json()["detail"]
    assert "zyxsecret" in caplog.text
    monkeypatch.undo()
    assert doors.vault("GET", "search?q=x").status == 200


def test_what_the_system_refuses_is_told(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its reason: the person can look at their disk."""

    def failing(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "boiler.md")

    monkeypatch.setattr(read, "read_page", failing)
    answer = doors.vault("GET", "pages/boiler")
    assert (answer.status, answer.code) == (500, "owner.system")
    assert "Permission denied" in answer.json()["detail"]


@pytest.mark.parametrize(
    "failure",
    [
        PermissionError(13, "Permission denied", "/home/sam/vault/boiler.md"),
        errors.Broken("ledger.full", "the ledger /home/sam/state/ledger.sqlite cannot grow"),
        errors.Unavailable(
            "vault.vanished", "the vault /home/sam/vault is gone", details={"root": "/home/sam/vault"}
        ),
    ],
)
def test_agents_are_not_told_where_on_the_disk_something_failed(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """They get the code; the person, who asks for the same, is told all of it."""

    def failing(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(read, "read_page", failing)
    token = {"Authorization": f"Bearer {doors.token()}"}
    told = doors.vault("GET", "pages/boiler", headers=token, tcp=True)
    assert told.code == errors.as_told(failure).code
    assert b"sam" not in told.data
    assert b"/home/sam" in doors.vault("GET", "pages/boiler").data


JSON_ROUTES = [
    ("PATCH", "pages/boiler"), ("POST", "move"), ("POST", "restore"), ("POST", "tokens"), ("POST", "grants"),
    ("POST", "revoke"), ("POST", "accept"), ("POST", "doctor"), ("POST", "handover"),
]  # fmt: skip
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense zyxsecret", b"\xff\xfe", b"[]", b"3", b'"zyxsecret"', DEEP, b'{"edits": ' + DEEP + b"}"],
    ids=["none", "half", "text", "bytes", "list", "number", "string", "deep", "deep inside"],
)  # fmt: skip
def test_bodies_that_are_not_what_they_should_be(doors: Doors, body: bytes) -> None:
    """On every route that takes JSON: refused, and not repeated."""
    for method, route in JSON_ROUTES:
        answer = doors.vault(method, route, body=body, headers={"Content-Type": "application/json"})
        is_ok = route in {"accept", "doctor", "handover"} and b'"edits"' in body
        assert answer.status == 400 or (is_ok and answer.status < 500), (route, answer.data)
        assert answer.status != 400 or answer.code == "http.malformed"
        assert b"zyxsecret" not in answer.data
        assert len(answer.data) < 5_000
    assert doors.handed_over in ([], [""])


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_json_is_only_taken_as_json(doors: Doors, kind: str) -> None:
    """A form of a web page could send the other kinds without being asked."""
    body = json.dumps({"path": "boiler", "to": "x"}).encode()
    refused = doors.vault("POST", "move", body=body, headers={"Content-Type": kind})
    assert (refused.status, refused.code) == (415, "http.media-type")
    assert (doors.opened.root / "boiler.md").exists()


@pytest.mark.parametrize(
    ("method", "route", "body"),
    [
        ("PATCH", "pages/boiler", {"edits": "append"}), ("PATCH", "pages/boiler", {"edits": [{"op": "burn"}]}),
        ("PATCH", "pages/boiler", {"edits": [{"op": "append", "value": {"a": 1}}]}),
        ("PATCH", "pages/boiler", {"edits": [7] * 50_000}), ("POST", "move", {"path": 1, "to": None}),
        ("POST", "tokens", {"principal": ["agent:x"]}), ("POST", "grants", {"principal": "agent:x", "rights": "read"}),
        ("POST", "doctor", {"deep": "perhaps"}), ("GET", "search?q=x&limit=zyxsecret", None),
        ("GET", "search?q=x&limit=0", None), ("GET", "search?q=x&limit=1001", None), ("GET", "recent?limit=-1", None),
        ("GET", "search?q=x&limit=" + "9" * 5000, None), ("GET", "history?limit=0", None),
        ("GET", "links/boiler?depth=99", None), ("GET", "show/boiler", None),
        ("PUT", "pages/boiler?overwrite=perhaps", None), ("POST", "revoke", {}),
    ],
)  # fmt: skip
def test_wrong_types_are_refused(doors: Doors, method: str, route: str, body: object) -> None:
    """As malformed, with the place of the fault, in a short answer."""
    answer = doors.vault(method, route, body=body)
    assert answer.status == 400, answer.data
    assert answer.code in {"http.malformed", "edit.value", "consent.nobody"}
    assert b"zyxsecret" not in answer.data
    assert len(answer.data) < 2_000


@pytest.mark.parametrize("cursor", ["x", "%00", "x" * 10_000, "%F0%9F%98%80", "../../x", "MTIz", "%ff"])
@pytest.mark.parametrize("route", ["search?q=heat", "search?q=", "pages?folder=", "recent?limit=5"])
def test_cursor_that_we_did_not_make_is_refused(doors: Doors, route: str, cursor: str) -> None:
    """However it looks."""
    assert doors.vault("GET", f"{route}&cursor={cursor}").code == "cursor.invalid"


def test_what_was_asked_for_is_quoted_shortly(doors: Doors) -> None:
    """A name as long as a request may be is not sent back whole."""
    answer = doors.vault("POST", "move", body={"path": "x" * 5_000_000, "to": "y"})
    assert answer.status in {404, 422}
    assert len(answer.data) < 5_000
    assert len(doors.vault("GET", "pages/" + "x" * 50_000).data) < 5_000


def test_letters_that_are_none_are_no_fault(doors: Doors) -> None:
    """JSON can name half a character; no route stumbles over it."""
    for method, route, text in (
        ("POST", "move", '{"path": "\\ud800", "to": "x"}'),
        ("POST", "move", '{"path": "boiler", "to": "\\udcff\\ud800"}'),
        ("POST", "tokens", '{"principal": "agent:\\ud800"}'),
        ("PATCH", "pages/boiler", '{"edits": [{"op": "append", "value": "\\ud800"}]}'),
        ("PATCH", "pages/boiler", '{"edits": [{"op": "set", "where": "a", "value": "\\ud800"}]}'),
    ):
        answer = doors.vault(method, route, body=text.encode(), headers={"Content-Type": "application/json"})
        assert 400 <= answer.status < 500, (route, text, answer.data)
        answer.data.decode()


def test_unknown_routes_and_methods_are_problems_too(doors: Doors) -> None:
    """Programs need one way to read errors."""
    for route in ("", "nowhere", "health/", "pages/", "Health"):
        answer = doors.vault("GET", route)
        assert answer.code in {"http.no-route", "page.not-found"}, route
    for path in ("/", "/docs", "/redoc", "/vault/v1", "/api/v1/topics", "/r/x", "/s/x"):
        assert doors.ask("GET", path).code == "http.no-route", path


@pytest.mark.parametrize(
    ("method", "route", "allowed"),
    [
        ("POST", "health", "GET, HEAD"), ("DELETE", "status", "GET, HEAD"), ("OPTIONS", "tokens", "GET, HEAD, POST"),
        ("POST", "pages/boiler", "DELETE, GET, HEAD, PATCH, PUT"), ("GET", "rebuild", "POST"),
        ("GET", "move", "POST"), ("HEAD", "move", "POST"), ("PROPFIND", "search", "GET, HEAD"),
    ],
)  # fmt: skip
def test_wrong_method_is_told_with_the_right_ones(
    doors: Doors, method: str, route: str, allowed: str
) -> None:
    """All that the path has, not those of one of its routes alone."""
    answer = doors.vault(method, route)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert method == "HEAD" or answer.code == "http.wrong-method"


def test_before_it_is_ready_the_owner_says_so(doors: Doors) -> None:
    """Only health, status and work answer, and a newer owner may take over."""
    doors.opened.memory.health.ready = False
    for method, route, body in (
        ("GET", "search?q=x", None), ("GET", "pages", None), ("GET", "pages/boiler", None), ("GET", "recent", None),
        ("PUT", "pages/x", b"x"), ("DELETE", "pages/boiler", None), ("GET", "links/boiler", None),
        ("PATCH", "pages/boiler", {"edits": []}), ("POST", "move", {"path": "boiler", "to": "x"}),
        ("GET", "history", None), ("GET", "show/boiler?rev=HEAD", None), ("GET", "diff", None),
        ("POST", "restore", {"path": "boiler", "rev": "HEAD"}), ("POST", "rebuild", None),
        ("POST", "doctor", {"deep": True}), ("POST", "accept", {}), ("GET", "tokens", None),
        ("POST", "tokens", {"principal": "agent:x"}), ("GET", "grants", None),
    ):  # fmt: skip
        answer = doors.vault(method, route, body=body)
        assert (answer.status, answer.code) == (503, "owner.starting"), route
        assert answer.headers["retry-after"] == "1"
    assert doors.vault("GET", "health").json()["ready"] is False
    assert doors.vault("GET", "status").status == 200
    assert doors.vault("GET", "work").json() == {"work": None}
    assert doors.vault("POST", "handover", body={"version": "9"}).json() == {"ends": True}


def test_tokens_and_text_of_pages_are_in_no_error(make_doors: Callable[..., Doors]) -> None:
    """Nor what a request carried beside what it asked for."""
    doors = make_doors({"boiler.md": "---\ntitle: [zyxsecret\n---\nzyxsecret\n"})
    token = doors.vault("POST", "tokens", body={"principal": "agent:x"}).json()["token"]
    answers: list[Answer] = [
        doors.vault("PUT", "pages/boiler", body=b"zyxsecret"),
        doors.vault("PUT", "pages/boiler", body=b"zyxsecret", headers={"If-Match": '"0"'}),
        doors.vault("PUT", "pages/new", body=b"zyxsecret\xff"),
        doors.vault(
            "PATCH", "pages/boiler", body={"edits": [{"op": "set", "where": "a", "value": "zyxsecret"}]}
        ),
        doors.vault("GET", "nowhere", headers={"Authorization": f"Bearer {token}"}),
        doors.ask("GET", "/vault/v1/status", headers={"Authorization": f"Bearer {token}"}, tcp=True),
    ]
    for answer in answers:
        assert answer.status >= 400
        assert b"zyxsecret" not in answer.data
        assert token.encode() not in answer.data


def test_client_that_goes_away_is_no_fault(doors: Doors, caplog: pytest.LogCaptureFixture) -> None:
    """In the middle of its body, again and again; the log stays quiet and the door open."""
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(os.fspath(doors.http_socket))
            link.sendall(
                b"PUT /vault/v1/pages/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"
            )
    assert doors.vault("GET", "health").status == 200
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert not (doors.opened.root / "x.md").exists()


def test_agents_are_told_what_is_wrong_with_a_file_that_they_name(doors: Doors) -> None:
    """By the name that it has in the vault."""
    (doors.opened.root / "file").write_text("no folder")
    doors.opened.agent("agent:claude", "read", "write")
    token = {"Authorization": f"Bearer {doors.token()}"}
    told = doors.vault("PUT", "pages/file/page", body=b"text", headers=token, tcp=True)
    assert (told.status, told.code) == (422, "vault.link")
    assert "file/page" in told.json()["detail"]

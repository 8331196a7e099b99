"""Requests over the owner's socket."""

import json
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.client.http import Connection, problem, quoted
from pcpd.client.owner import Owner, find
from pcpd.errors import Broken, Conflict, Denied, Invalid, NotFound, Unavailable, Usage
from tests.client import fake_owner
from tests.client.conftest import Scene
from tests.client.fake_owner import Asked, Die, Reply, ok


def connection(scene: Scene) -> Connection:
    """A connection to whoever owns the vault."""

    def present() -> Owner:
        found = find(scene.root, scene.settings)
        assert found
        return found

    return Connection(present(), present)


def die(asked: Asked) -> Reply:
    """Dies instead of answering."""
    raise Die


def test_bytes_and_version_come_back(scene: Scene) -> None:
    """The version is the entity tag."""
    scene.owner(http=lambda asked: ok(b"\xff\x00text", {"ETag": '"abc"'}))
    answer = connection(scene).request("GET", "pages/x")
    assert (answer.data, answer.version) == (b"\xff\x00text", "abc")


def test_what_is_sent_arrives(scene: Scene) -> None:
    """Names of any kind, queries without empty values, JSON and bytes."""
    owner = scene.owner(http=lambda asked: ok({}))
    talk = connection(scene)
    talk.request("PUT", f"pages/{quoted('a b/ü?#%')}", query={"overwrite": 1, "x": None}, body=b"\xff")
    talk.request("POST", "move", body={"to": "ä"})
    put, post = owner.asked[-2:]
    assert (put.route, put.query, put.body) == ("pages/a b/ü?#%", {"overwrite": "1"}, b"\xff")
    assert (post.json(), post.headers["content-type"]) == ({"to": "ä"}, "application/json")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@settings(deadline=None)
def test_any_path_survives_quoting(path: str) -> None:
    """No name can end the route or begin a query."""
    assert unquote(quoted(path)) == path
    assert not set(quoted(path)) & set("?# \r\n")


def test_name_that_is_not_utf8_survives_quoting() -> None:
    """Python spells such bytes as lone surrogates."""
    assert quoted("a\udcff") == "a%FF"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Usage), (401, Denied), (403, Denied), (404, NotFound), (409, Conflict), (422, Invalid), (500, Broken),
     (503, Unavailable), (413, Usage), (421, Usage), (599, Broken)],
)  # fmt: skip
def test_problems_become_the_errors_that_they_were(scene: Scene, status: int, kind: type[Exception]) -> None:
    """Code, words, hint and details."""
    scene.owner(http=lambda asked: fake_owner.problem(status, "a.b", "why", "do", {"version": "v"}))
    with pytest.raises(kind) as caught:
        connection(scene).request("GET", "x")
    error = caught.value
    assert isinstance(error, Usage | Denied | NotFound | Conflict | Invalid | Broken | Unavailable)
    assert (error.code, error.message, error.hint, error.details) == ("a.b", "why", "do", {"version": "v"})


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"code": "x"}', b'"text"'])
def test_problem_without_a_reason_is_one_all_the_same(data: bytes) -> None:
    """Whatever an owner of another version sends."""
    assert problem(500, data).code == "owner.answer"


def test_read_goes_to_the_next_owner(scene: Scene) -> None:
    """When the first dies under it, and when the first has died before."""
    scene.owner(http=die)
    talk = connection(scene)
    talk._another = lambda: next_owner(scene)
    assert talk.request("GET", "search").json() == {"n": 2}


def next_owner(scene: Scene) -> Owner:
    """Another owner, which answers."""
    scene.owner(http=lambda asked: ok({"n": 2}))
    found = find(scene.root, scene.settings)
    assert found
    return found


def test_write_whose_fate_is_unknown_is_not_repeated(scene: Scene) -> None:
    """Appending twice would be worse than asking the person to look."""
    first = scene.owner(http=die)
    talk = connection(scene)
    talk._another = lambda: next_owner(scene)
    with pytest.raises(Unavailable) as caught:
        talk.request("PATCH", "pages/x", body={})
    assert caught.value.code == "owner.lost"
    assert [each.method for each in first.asked if each.route == "pages/x"] == ["PATCH"]
    assert len(scene.owners) == 1


def test_write_that_was_never_sent_goes_to_the_next_owner(scene: Scene) -> None:
    """Nobody listened, so nothing was done."""
    first = scene.owner()
    talk = connection(scene)
    first.kill()
    talk._another = lambda: next_owner(scene)
    assert talk.request("PATCH", "pages/x", body={}).json() == {"n": 2}


def test_two_owners_that_die_under_a_read_are_an_error(scene: Scene) -> None:
    """The third is left alone."""
    scene.owner(http=die)
    talk = connection(scene)

    def another() -> Owner:
        scene.owner(http=die)
        found = find(scene.root, scene.settings)
        assert found
        return found

    talk._another = another
    with pytest.raises(Unavailable):
        talk.request("GET", "search")
    assert len(scene.owners) == 2


def test_answer_that_is_no_object_is_an_error(scene: Scene) -> None:
    """It is never shown half understood."""
    scene.owner(http=lambda asked: ok(json.dumps([1]).encode()))
    with pytest.raises(Broken) as caught:
        connection(scene).request("GET", "search").json()
    assert caught.value.code == "owner.answer"

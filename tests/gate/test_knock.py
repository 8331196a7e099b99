"""What may pass the gate, whoever sends it: decided from Host, Origin, sizes and kind of body, before any route."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.errors import PcpError
from pcpd.gate.knock import (
    BODY_LIMIT,
    HEADERS_LIMIT,
    MOST_HEADERS,
    URL_LIMIT,
    Knock,
    knock_of,
    refusal,
    wrong_kind,
)

LOCAL_HOSTS = ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:65535", "[::1]", "[::1]:8080"]
FOREIGN_HOSTS = [
    None, "", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.",
    "127.0.0.1.", "a@127.0.0.1", "127.0.0.1@evil.example", "127.0.0.1:80@evil.example", "127.0.0.1:", "127.1",
    "0.0.0.0",  # noqa: S104
    "2130706433", "0x7f000001", "127.0.0.2", "::1", "[::1", "[::ffff:127.0.0.1]", "localhost, evil.example",
    "evil.example, localhost", "localhost\n", "localhost\t", " localhost", "http://localhost", "localhost/",
    "localhost:8a",    "localhost:\u0661\u0662", "localhost:123456", "lo\u212aalhost", "loc\u0430lhost",
]  # fmt: skip
ORIGINS = [
    "null", "http://127.0.0.1", "http://localhost:3000", "https://evil.example", "file://", "", "https://localhost",
    "http://localhost, http://evil.example", "http://localhost/", " http://localhost", "http://localhost:80",
]  # fmt: skip
"""None of these is the page of an owner that is asked as `localhost` or as `127.0.0.1:7717`."""


def knock(**changes: Any) -> Knock:
    """A request that may pass, but for what is named."""
    usual = {"is_local": True, "path": "/vault/v1/status", "host": "localhost"}
    return Knock(**{**usual, **changes})


def why(asked: Knock) -> tuple[str, int] | None:
    """The code and status with which a request is refused."""
    refused = refusal(asked) or wrong_kind(asked)
    if refused is None:
        return None
    error, status = refused
    assert isinstance(error, PcpError)
    return error.code, status


@pytest.mark.parametrize("host", LOCAL_HOSTS)
def test_names_of_this_machine_are_served(host: str) -> None:
    """With any port, in any case."""
    assert why(knock(host=host)) is None


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize("is_local", [True, False])
def test_any_other_host_is_refused_on_every_way_and_route(host: str | None, *, is_local: bool) -> None:
    """A name that somebody let point here, or that only looks like ours, serves nothing: not even health."""
    for path in ("/vault/v1/status", "/vault/v1/health", "/"):
        assert why(knock(host=host, is_local=is_local, path=path)) == ("http.foreign-host", 421)


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("is_local", [True, False])
def test_what_comes_from_a_web_page_is_refused(origin: str, *, is_local: bool) -> None:
    """Also from another page of this machine, from a file (`null`), on the Unix socket, and for health."""
    for path in ("/vault/v1/status", "/vault/v1/health", "/mcp"):
        for host in ("localhost", "127.0.0.1:7717"):
            asked = knock(origin=origin, is_local=is_local, path=path, host=host)
            assert why(asked) == ("http.foreign-origin", 403)


def test_an_owner_s_own_page_may_ask_it() -> None:
    """By exactly the name and port that it asks; on the Unix socket there are no pages at all."""
    for host in LOCAL_HOSTS:
        own = knock(is_local=False, host=host, origin=f"http://{host.lower()}", site="same-origin")
        assert why(own) is None
        assert why(knock(is_local=True, host=host, origin=f"http://{host.lower()}")) is not None
    for host, origin in (
        ("127.0.0.1:7717", "http://localhost:7717"),
        ("localhost:7717", "http://localhost:7718"),
        ("localhost:7717", "http://localhost"),
        ("localhost", "http://localhost:7717"),
        ("localhost:7717", "https://localhost:7717"),
    ):
        assert why(knock(is_local=False, host=host, origin=origin)) == ("http.foreign-origin", 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "CROSS-SITE", "none, cross-site", "x"])
def test_what_a_browser_asks_for_another_site_is_refused(site: str) -> None:
    """Another port of this machine is the same site, and another program all the same."""
    assert why(knock(is_local=False, site=site, path="/vault/v1/health")) == ("http.foreign-origin", 403)


def test_what_a_person_types_into_a_browser_passes() -> None:
    """No page asks then."""
    assert why(knock(is_local=False, site="none")) is None


def test_preflight_is_refused_whatever_it_says() -> None:
    """Also one that names no page."""
    asked = scope((b"host", b"localhost"), (b"access-control-request-method", b"PUT"))
    assert why(knock_of(asked)) == ("http.foreign-origin", 403)


def test_bodies_over_the_limit_are_refused_by_their_length() -> None:
    """At the limit they pass."""
    assert why(knock(length=BODY_LIMIT)) is None
    assert why(knock(length=BODY_LIMIT + 1)) == ("http.too-large", 413)


def test_heads_over_their_limits_are_refused() -> None:
    """The URL, how many headers there are, and how long they are together."""
    most = knock(url=URL_LIMIT, headers=MOST_HEADERS, head=HEADERS_LIMIT)
    assert why(most) is None
    assert why(knock(url=URL_LIMIT + 1)) == ("http.too-long", 414)
    assert why(knock(headers=MOST_HEADERS + 1)) == ("http.headers", 431)
    assert why(knock(head=HEADERS_LIMIT + 1)) == ("http.headers", 431)


SIMPLE = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
"""What a web page can send unasked."""
NO_JSON = [
    None, "", "text/json", "application/json5", "application/jsonx", "application/x+json", "xapplication/json",
    "text/plain; application/json", "application/json, text/plain", "application/json; charset=utf-16",
    "application/json; a=b, text/plain", "application/json; charset=utf-8, text/plain", "application /json",
]  # fmt: skip


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("media", [*SIMPLE, *NO_JSON])
def test_json_is_taken_as_json_alone(method: str, media: str | None) -> None:
    """On every route, so that no form of a web page is one."""
    asked = knock(method=method, media=media, has_body=True)
    assert why(asked) == ("http.media-type", 415)


@pytest.mark.parametrize(
    "media", ["application/json", "Application/JSON; Charset=UTF-8", 'application/json;charset="utf-8"; v=1']
)
def test_json_in_utf8_is_json_however_it_is_spelled(media: str) -> None:
    """Parameters that nobody knows do not matter."""
    assert why(knock(method="POST", media=media, has_body=True)) is None


def test_text_of_a_page_is_put_as_text() -> None:
    """Or without saying what it is; JSON, forms and other letters are no text of a page."""
    for good in (
        None,
        "text/markdown",
        "text/markdown; charset=utf-8; variant=GFM",
        "text/plain",
        "application/octet-stream",
    ):
        assert why(knock(method="PUT", media=good, has_body=True)) is None, good
    for bad in ("application/json", "text/html", *SIMPLE[1:], "text/markdown; charset=latin-1", ""):
        assert why(knock(method="PUT", media=bad, has_body=True)) == ("http.media-type", 415), bad


def test_kind_of_no_body_does_not_matter() -> None:
    """A body is one that has a length, or comes in chunks."""
    for method in ("GET", "DELETE", "POST", "PATCH", "PUT"):
        assert why(knock(method=method, media="text/plain")) is None
    for header, has_body in (
        ((b"content-length", b"0"), False), ((b"content-length", b"00"), False), ((b"content-length", b"1"), True),
        ((b"content-length", b"x"), True), ((b"transfer-encoding", b"chunked"), True), ((b"x", b"y"), False),
    ):  # fmt: skip
        assert knock_of(scope(header)).has_body == has_body, header


LETTERS = st.sampled_from([*string.printable, "\u212a", "\u0131", "\u0660", "\xe9"])


@given(host=st.text(LETTERS, max_size=30) | st.sampled_from(LOCAL_HOSTS), more=st.text(LETTERS, max_size=4))
def test_host_is_one_of_a_short_list_or_nothing_is_served(host: str, more: str) -> None:
    """Whatever stands there, before or behind."""
    for text in (host, host + more, more + host):
        name, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            name = text
        is_ours = name.isascii() and name.lower() in {"127.0.0.1", "localhost", "[::1]"}
        has_port = not colon or (port.isascii() and port.isdigit() and len(port) <= 5)
        assert (why(knock(host=text)) is None) == (is_ours and has_port)


@given(
    st.fixed_dictionaries(
        {
            "is_local": st.booleans(),
            "path": st.sampled_from(["/vault/v1/health", "/vault/v1/status", "/x"]),
            "host": st.sampled_from([*LOCAL_HOSTS, *FOREIGN_HOSTS]),
            "origin": st.sampled_from([None, "null", "https://evil.example"]),
            "length": st.sampled_from([None, 0, BODY_LIMIT, BODY_LIMIT + 1, 10**30]),
            "headers": st.sampled_from([0, MOST_HEADERS, MOST_HEADERS + 1]),
            "site": st.sampled_from([None, "none", "cross-site"]),
        }
    )
)
def test_one_fault_is_enough(said: dict[str, Any]) -> None:
    """A request passes only if nothing at all speaks against it."""
    assert (why(Knock(**said)) is None) == (
        said["host"] in LOCAL_HOSTS
        and said["origin"] is None
        and said["site"] != "cross-site"
        and said["headers"] <= MOST_HEADERS
        and (said["length"] or 0) <= BODY_LIMIT
    )


def scope(*headers: tuple[bytes, bytes], server: object = ("/run/x/socket", None)) -> dict[str, object]:
    """An ASGI scope as uvicorn makes it."""
    return {"type": "http", "path": "/vault/v1/status", "headers": list(headers), "server": server}


def test_two_host_headers_agree_with_nothing() -> None:
    """Neither is picked, however they stand."""
    both = scope((b"host", b"localhost"), (b"Host", b"evil.example"))
    assert why(knock_of(both)) == ("http.foreign-host", 421)
    assert why(knock_of(scope((b"host", b"localhost"), (b"host", b"localhost")))) is not None


@pytest.mark.parametrize(
    ("name", "kept"), [("authorization", "authorization"), ("origin", "origin"), ("content-type", "media"),
                       ("sec-fetch-site", "site")],
)  # fmt: skip
def test_header_that_comes_twice_has_both_values(name: str, kept: str) -> None:
    """So that neither is picked, and none is on a list."""
    twice = knock_of(scope((name.encode(), b"a"), (name.title().encode(), b"b")))
    assert getattr(twice, kept) == "a, b"
    assert knock_of(scope((b"content-length", b"5"), (b"content-length", b"6"))).length is None


def test_sizes_are_those_of_what_came() -> None:
    """Every header counts, also those that the gate does not know."""
    asked = {**scope((b"host", b"localhost"), (b"x", b"yy")), "raw_path": b"/a%20b", "query_string": b"q=1"}
    seen = knock_of(asked)
    assert (seen.headers, seen.head, seen.url) == (2, 4 + 9 + 1 + 2, 6 + 3)


def test_path_is_decoded_once_and_keeps_bytes_that_are_no_letters() -> None:
    """A server puts a sign of its own for those; a file of such a name has an address all the same."""
    for raw, path, kept in (
        (b"/x/%252e%252e", "/x/%2e%2e", "/x/%2e%2e"), (b"/x/%2e%2e/y", "/x/../y", "/x/../y"),
        (b"/%ff%C3%BC", "/\ufffd\xfc", "/\udcff\xfc"), (b"/%EF%BF%BD", "/\ufffd", "/\ufffd"),
    ):  # fmt: skip
        assert knock_of({**scope(), "path": path, "raw_path": raw}).path == kept


def test_way_is_told_by_the_server_s_address() -> None:
    """A Unix socket has no port. What is not known to be one is treated as TCP."""
    assert knock_of(scope()).is_local
    assert not knock_of(scope(server=("127.0.0.1", 80))).is_local
    assert not knock_of(scope(server=None)).is_local


@pytest.mark.parametrize(
    ("said", "length"),
    [
        (b"5", 5),
        (b"", None),
        (b"9" * 5000, None),
        (b"-1", None),
        (b"+5", None),
        (b"5, 5", None),
        (b"\xb2", None),
        (b"1e3", None),
    ],
)
def test_length_that_is_no_number_is_none(said: bytes, length: int | None) -> None:
    """The body is then counted as it comes."""
    assert knock_of(scope((b"content-length", said))).length == length

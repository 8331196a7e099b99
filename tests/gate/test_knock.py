"""Who may knock at the HTTP doors: decided from Host, Origin, way and size, before any route runs."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.errors import PcpError
from pcpd.gate.knock import BODY_LIMIT, Knock, knock_of, refusal

LOCAL_HOSTS = ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:65535", "[::1]", "[::1]:8080"]
FOREIGN_HOSTS = [
    None, "", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.",
    "127.0.0.1.", "a@127.0.0.1", "127.0.0.1@evil.example", "127.0.0.1:80@evil.example", "127.0.0.1:", "127.1",
    "0.0.0.0",  # noqa: S104
    "2130706433", "0x7f000001", "127.0.0.2", "::1", "[::1", "[::ffff:127.0.0.1]", "localhost, evil.example",
    "evil.example, localhost", "localhost\n", "localhost\t", " localhost", "http://localhost", "localhost/",
    "localhost:8a",    "localhost:\u0661\u0662", "localhost:123456", "lo\u212aalhost", "loc\u0430lhost",
]  # fmt: skip
ORIGINS = ["null", "http://127.0.0.1", "http://localhost:3000", "https://evil.example", "file://", ""]


def knock(
    *, is_local: bool = True, path: str = "/vault/v1/status", host: str | None = "localhost",
    origin: str | None = None, length: int | None = None,
) -> Knock:  # fmt: skip
    """A request that may pass, but for what is named."""
    return Knock(is_local, path, host, origin, length)


def why(asked: Knock) -> tuple[str, int] | None:
    """The code and status with which a request is refused."""
    refused = refusal(asked)
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
    """Also from a page of this machine, from a file (`null`), on the Unix socket, and for health."""
    for path in ("/vault/v1/status", "/vault/v1/health"):
        asked = knock(origin=origin, is_local=is_local, path=path)
        assert why(asked) == ("http.foreign-origin", 403)


@pytest.mark.parametrize(
    "path", ["/", "", "/vault/v1", "/vault/v1/health/", "/vault/v1/health/x", "/vault/v1/healthz", "//vault/v1/health",
             "/VAULT/v1/health", "/vault/v1/../v1/health", "http://127.0.0.1/vault/v1/health", "/mcp"],
)  # fmt: skip
def test_on_tcp_only_the_closed_list_is_open(path: str) -> None:
    """Nothing that looks like it, and nothing unknown."""
    assert why(knock(is_local=False, path=path)) == ("http.no-token", 401)
    assert why(knock(is_local=False, path="/vault/v1/health")) is None


def test_bodies_over_the_limit_are_refused_by_their_length() -> None:
    """At the limit they pass."""
    assert why(knock(length=BODY_LIMIT)) is None
    assert why(knock(length=BODY_LIMIT + 1)) == ("http.too-large", 413)


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
    is_local=st.booleans(), path=st.sampled_from(["/vault/v1/health", "/vault/v1/status", "/x"]),
    host=st.sampled_from([*LOCAL_HOSTS, *FOREIGN_HOSTS]), origin=st.sampled_from([None, *ORIGINS]),
    length=st.sampled_from([None, 0, BODY_LIMIT, BODY_LIMIT + 1, 10**30]),
)  # fmt: skip
def test_one_fault_is_enough(
    is_local: bool,
    path: str,
    host: str | None,
    origin: str | None,
    length: int | None,
) -> None:
    """A request passes only if nothing at all speaks against it."""
    passes = why(Knock(is_local, path, host, origin, length)) is None
    assert passes == (
        host in LOCAL_HOSTS
        and origin is None
        and (is_local or path == "/vault/v1/health")
        and (length is None or length <= BODY_LIMIT)
    )


def scope(*headers: tuple[bytes, bytes], server: object = ("/run/x/socket", None)) -> dict[str, object]:
    """An ASGI scope as uvicorn makes it."""
    return {"type": "http", "path": "/vault/v1/status", "headers": list(headers), "server": server}


def test_two_host_headers_agree_with_nothing() -> None:
    """Neither is picked, however they stand."""
    both = scope((b"host", b"localhost"), (b"Host", b"evil.example"))
    assert why(knock_of(both)) == ("http.foreign-host", 421)
    assert why(knock_of(scope((b"host", b"localhost"), (b"host", b"localhost")))) is not None


def test_way_is_told_by_the_server_s_address() -> None:
    """A Unix socket has no port. What is not known to be one is treated as TCP."""
    assert knock_of(scope()).is_local
    assert not knock_of(scope(server=("127.0.0.1", 80))).is_local
    assert not knock_of(scope(server=None)).is_local


@pytest.mark.parametrize(
    ("said", "length"),
    [(b"5", 5), (b"", None), (b"-1", None), (b"+5", None), (b"5, 5", None), (b"\xb2", None), (b"1e3", None)],
)
def test_length_that_is_no_number_is_none(said: bytes, length: int | None) -> None:
    """The body is then counted as it comes."""
    assert knock_of(scope((b"content-length", said))).length == length

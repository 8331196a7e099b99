"""The addresses of pages as MCP resources: `pcp://page/{+path}`, percent-encoded once, and `pcp://profile`."""

from urllib.parse import quote, unquote

from pcpd.errors import NotFound

PAGES = "pcp://page/"
TEMPLATE = PAGES + "{+path}"
PROFILE = "pcp://profile"
URI_LIMIT = 16 * 1024
"""Characters: more than any path takes with every byte encoded."""

_MEANT_BY_URIS = "%#?"


def uri_of(path: str) -> str:
    """Gives the address of a page. Everything that a URI could mean otherwise is encoded: `#`, `?`, `%`, spaces."""
    return PAGES + quote(path, safe="/", errors="surrogateescape")


def path_of(uri: str) -> str | None:
    """Gives the path that an address names, decoded once; None for what is no address of a page.

    Clients that expand the template leave `#`, `?` and letters of other scripts as they are, so all of the rest
    is the path.
    """
    head, rest = uri[: len(PAGES)], uri[len(PAGES) :]
    if head.lower() != PAGES or not rest or len(uri) > URI_LIMIT:
        return None
    return unquote(rest, errors="surrogateescape")


def value_of(path: str) -> str:
    """Gives what a client may put into the template for `path`, so that its expansion gives the page's address.

    Expansion encodes what no URI holds, leaves `%41` as it is, and takes `#` and `?` for what they mean in a URI.
    """
    return "".join(quote(sign) if sign in _MEANT_BY_URIS or sign < " " else sign for sign in path)


def typed(value: str) -> tuple[str, ...]:
    """Gives the beginnings of paths that a person may mean who typed `value` into the template."""
    return tuple(dict.fromkeys((unquote(value, errors="surrogateescape"), value)))


def is_profile(uri: str) -> bool:
    """Tells whether an address is the profile's."""
    return uri.lower().removesuffix("/") == PROFILE


def no_resource(code: str) -> NotFound:
    """Gives the one answer to an address that is none, is absent, or may not be seen."""
    return NotFound(
        code,
        "there is no such resource",
        hint=f"addresses are {TEMPLATE} and {PROFILE}; search, or list the resources",
    )

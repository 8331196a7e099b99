"""How routes take a page's path: whole, also where it holds a line break, as any file name may.

Importing this module lets routes say `{path:page}`.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

from fastapi.routing import iter_route_contexts
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import BaseRoute, compile_path

Methods = Sequence[tuple[re.Pattern[str], frozenset[str]]]


class PagePathConvertor(PathConvertor):
    """The rest of the URL. Starlette's own `path` ends at a line break, so that such a page had no route."""

    regex = "(?s:.*)"


PAGE = "{path:page}"
"""A page's path at the end of a route."""
PREFIX = "/vault/v1"

register_url_convertor("page", PagePathConvertor())


def address_of(path: str) -> str:
    """Gives where a page is served: a path that every client sends back as it is."""
    return f"{PREFIX}/pages/{quote(path, safe='/', errors='surrogateescape')}"


def methods_of(routes: Sequence[BaseRoute]) -> Methods:
    """Gives the patterns of all routes with the methods of each; who serves GET serves HEAD."""
    found = []
    for route in iter_route_contexts(routes):
        methods = frozenset(route.methods or ())
        pattern, _, _ = compile_path(route.path or "/")
        found.append((pattern, methods | {"HEAD"} if "GET" in methods else methods))
    return found


def templates_of(routes: Sequence[BaseRoute]) -> dict[int, str]:
    """Gives the template of each route's path, by the identity of the route that the framework notes as matched."""
    return {id(route.original_route): route.path_format or "" for route in iter_route_contexts(routes)}


def methods_at(known: Methods, path: str) -> list[str]:
    """Gives every method that a path has, whichever of its routes the framework came to first."""
    return sorted({method for pattern, methods in known if pattern.fullmatch(path) for method in methods})

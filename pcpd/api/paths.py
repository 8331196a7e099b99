"""How routes take a page's path: whole, also where it holds a line break, as any file name may.

Importing this module lets routes say `{path:page}`.
"""

from starlette.convertors import PathConvertor, register_url_convertor


class PagePathConvertor(PathConvertor):
    """The rest of the URL. Starlette's own `path` ends at a line break, so that such a page had no route."""

    regex = "(?s:.*)"


PAGE = "{path:page}"
"""A page's path at the end of a route."""

register_url_convertor("page", PagePathConvertor())

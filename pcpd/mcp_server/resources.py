"""Pages as MCP resources: the template, the list, and what reading one gives.

A page that is absent, one outside the caller's grants, and an address that is none all get the same answer. What
is read is whole, or refused where it is too long: clients put a resource into a conversation as it is.
"""

from typing import Any, Literal

import mcp_types as types

from pcpd.errors import Invalid, NotFound
from pcpd.index.rows import PageRow
from pcpd.mcp_server.answers import DATA_NOTE, TITLE_BYTES, said, source, source_of
from pcpd.mcp_server.asking import Asking, Context
from pcpd.mcp_server.budget import shortened
from pcpd.mcp_server.subscriptions import Subscriptions
from pcpd.mcp_server.uris import PROFILE, TEMPLATE, is_profile, no_resource, path_of, uri_of
from pcpd.memory import read
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import PageRead
from pcpd.memory.profile import Profile, read_profile, sees_profile

MARKDOWN = "text/markdown"
PAGES_LISTED = 50
PROFILE_PAGES = 20
BYTES = 200_000
"""Of one resource: some 50,000 tokens, beyond which no conversation wants a page whole."""
AUDIENCE: list[Literal["user", "assistant"]] = ["user", "assistant"]

_TEMPLATES = types.ListResourceTemplatesResult(
    resource_templates=[
        types.ResourceTemplate(
            uri_template=TEMPLATE,
            name="page",
            title="Page",
            description=f"A page of the person's memory by its path, such as pcp://page/notes/boiler. {DATA_NOTE}",
            mime_type=MARKDOWN,
        )
    ]
)
_PROFILE_RESOURCE = types.Resource(
    uri=PROFILE,
    name="profile",
    title="Profile",
    description=f"What the person wants agents to know first. {DATA_NOTE}",
    mime_type=MARKDOWN,
    annotations=types.Annotations(audience=AUDIENCE, priority=1.0),
)


class Resources:
    """The handlers of `resources/list`, `resources/templates/list` and `resources/read`."""

    def __init__(self, asking: Asking, subscriptions: Subscriptions) -> None:
        self._asking, self._subscriptions = asking, subscriptions

    async def templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Gives the one template."""
        return _TEMPLATES

    async def listing(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Lists the profile, where there is one to read, then pages, those that changed last first."""
        cursor = (params.cursor if params else None) or None
        await self._subscriptions.listed(ctx)
        return await self._asking.answer(
            ctx, "list_resources", lambda memory, caller: _listed(memory, caller, cursor)
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Reads a page or the profile."""
        return await self._asking.answer(
            ctx, "read_resource", lambda memory, caller: _read(memory, caller, params.uri)
        )


def _listed(memory: Memory, caller: Caller, cursor: str | None) -> types.ListResourcesResult:
    found = read.recent(memory, caller, limit=PAGES_LISTED, cursor=cursor)
    first = [_PROFILE_RESOURCE] if cursor is None and sees_profile(memory, caller) else []
    return types.ListResourcesResult(
        resources=[*first, *(_resource(row) for row in found.pages)], next_cursor=found.cursor
    )


def _resource(row: PageRow) -> types.Resource:
    return types.Resource(
        uri=uri_of(row.path),
        name=row.path,
        title=shortened(row.title, TITLE_BYTES),
        mime_type=MARKDOWN,
        size=row.size,
        annotations=types.Annotations(audience=AUDIENCE, last_modified=row.updated),
        _meta=_meta(source(row.origin, row.review, row.updated), row.version),
    )


def _read(memory: Memory, caller: Caller, uri: str) -> types.ReadResourceResult:
    path = path_of(uri)
    try:
        if is_profile(uri):
            return _profile(read_profile(memory, caller, most_pages=PROFILE_PAGES, most_bytes=BYTES))
        if path is not None:
            return types.ReadResourceResult(contents=_contents(read.read_page(memory, caller, path)))
    except NotFound:
        raise no_resource("page.not-found") from None
    raise no_resource("resource.unknown")


def _profile(found: Profile) -> types.ReadResourceResult:
    contents = [content for page in found.pages for content in _contents(page)]
    if found.more:
        more = f"{found.more} more pages of the profile are not here: list_pages lists them, read_page reads them."
        contents.append(types.TextResourceContents(uri=PROFILE, mime_type="text/plain", text=more))
    return types.ReadResourceResult(contents=list(contents))


def _contents(found: PageRead) -> list[types.TextResourceContents | types.BlobResourceContents]:
    """Gives a page's text, and beside it what it is: some clients show nothing but texts to their model."""
    if len(found.data) > BYTES:
        raise Invalid(
            "page.too-long",
            f"the page has {len(found.data)} bytes; a resource has {BYTES} at most",
            hint="read it in parts, with the tool read_page",
        )
    text, uri = found.data.decode("utf-8", "replace"), uri_of(found.path)
    is_exact = text.encode("utf-8", "replace") == found.data
    version = found.version if is_exact else None
    comes_from = source_of(found)
    which = f"version {version}" if version else "not all of it is text, so not to be written back"
    meta = _meta(comes_from, version)
    head = f"{found.path} ({which}; {said(comes_from)}). {DATA_NOTE}"
    return [
        types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text, _meta=meta),
        types.TextResourceContents(uri=uri, mime_type="text/plain", text=head, _meta=meta),
    ]


def _meta(comes_from: dict[str, str | None], version: str | None) -> dict[str, Any]:
    known = {**comes_from, "version": version, "note": DATA_NOTE}
    return {f"pcpd/{name}": value for name, value in known.items() if value is not None}

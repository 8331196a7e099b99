"""Which links lose their page when it is moved or removed, as far as the caller may see the pages they stand on."""

from dataclasses import dataclass

from pcpd.index import links
from pcpd.index.links import Edge
from pcpd.memory.memory import Caller, Memory
from pcpd.pages.page import Link

PAGES_NAMED = 1000


@dataclass(frozen=True, slots=True)
class Linked:
    """The links of one page and those that lead to it, before it is moved."""

    outgoing: tuple[Edge, ...]
    incoming: tuple[Edge, ...]


def linked(memory: Memory, caller: Caller, path: str) -> Linked:
    """Gives the links from and to a page as they are now; at most PAGES_NAMED of those to it."""
    visible = memory.visible_to(caller)
    with memory.index.reader() as conn:
        return Linked(
            tuple(links.outgoing(conn, path, visible)),
            tuple(links.backlinks(conn, path, visible, limit=PAGES_NAMED)),
        )


def broken(memory: Memory, caller: Caller, path: str, before: Linked, now: str | None) -> tuple[str, ...]:
    """Gives the pages with a link that led to the page when it was at `path`, and does not now that it is at `now`.

    None: it is gone. The page itself is among them, by its new path, where one of its own links leads elsewhere now.
    """
    after = linked(memory, caller, now) if now is not None else Linked((), ())

    def key(edge: Edge) -> tuple[str, Link]:
        return now if edge.source == path and now is not None else edge.source, edge.link

    kept = {key(edge) for edge in after.incoming}
    pages = {key(edge)[0] for edge in before.incoming if key(edge) not in kept}
    if now is None:
        return tuple(sorted(pages - {path}))
    was = [now if edge.target == path else edge.target for edge in before.outgoing]
    leads = [edge.target for edge in after.outgoing]
    if any(old is not None and old != new for old, new in zip(was, leads, strict=False)):
        pages.add(now)
    return tuple(sorted(pages))

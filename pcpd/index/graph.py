"""The shape of the link graph: pages that nobody links to, and the pages around one. Single links are `links`'."""

from collections.abc import Iterator
from dataclasses import dataclass

from pcpd.index import bookmarks
from pcpd.index.lookup import Lookup
from pcpd.index.resolve import Named
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A page at `distance` links, in either direction, from where the walk began.

    `origin`, `review` and `updated` say where its title comes from, as in a search's `Hit`.
    """

    path: str
    title: str
    distance: int
    origin: str
    review: str | None
    updated: str
    category: str


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pages around one, nearest first; `complete` unless the limit cut some off."""

    pages: tuple[Neighbour, ...]
    complete: bool


def orphans(
    reads: Reads, visible: Visibility, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[str], str | None]:
    """Gives pages to which no other page links, by path, and the cursor to go on with, or None.

    Raises `Invalid` (`cursor.invalid`).
    """
    lookup = Lookup(reads, visible)
    after = bookmarks.read("orphans", cursor, ("", ""))
    found: list[str] = []
    for row in reads.execute(
        f"SELECT p.id, p.path, p.key FROM pages AS p WHERE {lookup.condition}"  # noqa: S608
        " AND p.key >= ? AND (p.key, p.path) > (?, ?) ORDER BY p.key, p.path",
        (*lookup.values, after[0], *after),
    ):
        page = Named(*row)
        if any(source != page.number for source in lookup.sources(page)):
            continue
        if len(found) == limit:
            return found, bookmarks.write("orphans", (lookup_key(found[-1]), found[-1]))
        found.append(page.path)
    return found, None


def neighbours(
    reads: Reads, path: str, visible: Visibility, *, depth: int = 1, limit: int = 200
) -> Neighbours:
    """Gives the pages within `depth` links of a page, in either direction, without it; at most `limit`."""
    lookup = Lookup(reads, visible)
    start = lookup.page(path)
    if start is None:
        return Neighbours((), complete=True)
    distances = {start.number: 0}
    rim = [start.number]
    for distance in range(1, depth + 1):
        reached: list[int] = []
        for beside in (number for source in rim for number in _beside(lookup, source)):
            if beside in distances:
                continue
            if len(distances) > limit:
                return Neighbours(_described(reads, distances), complete=False)
            distances[beside] = distance
            reached.append(beside)
        if not reached:
            break
        rim = reached
    return Neighbours(_described(reads, distances), complete=True)


def _beside(lookup: Lookup, number: int) -> Iterator[int]:
    """Gives the pages one link away, with repetitions."""
    page = lookup.numbered(number)
    yield from (target.number for target in lookup.targets(page))
    yield from lookup.sources(page)


def _described(reads: Reads, distances: dict[int, int]) -> tuple[Neighbour, ...]:
    pages = []
    for number, distance in distances.items():
        if distance:
            path, title, *source = reads.execute(
                "SELECT path, title, coalesce(origin, 'user'), review_state, updated, category"
                " FROM pages WHERE id = ?",
                (number,),
            ).fetchone()
            pages.append(Neighbour(path, title, distance, *source))
    pages.sort(key=lambda page: (page.distance, lookup_key(page.path), page.path))
    return tuple(pages)

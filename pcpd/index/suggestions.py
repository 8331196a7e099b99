"""Suggests pages while a name is typed: those whose path, file name, alias or title begins so."""

from collections.abc import Iterator

from pcpd.index.resolve import is_storable
from pcpd.index.visible import where
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

TYPED_LIMIT = 1024
"""Characters of what was typed; hardly any path is longer."""
_LAST = "\U0010ffff"
_NAMED = "pages AS p WHERE p.tail >= ? AND p.tail < ?"
_ALIASED = "aliases AS a JOIN pages AS p ON p.id = a.page WHERE a.tail >= ? AND a.tail < ?"


def suggest(reads: Reads, visible: Visibility, typed: str, *, limit: int = 20) -> list[str]:
    """Gives paths of pages that may be meant by what was typed so far, whatever its case; at most `limit`.

    First those whose path begins so, then by file name, then by alias, then by title; those of one kind by path.
    """
    key = lookup_key(typed.lstrip("/")) if is_storable(typed) else _LAST
    if len(key) > TYPED_LIMIT or limit < 1:
        return []
    found: dict[str, None] = {}
    for path in _matches(reads, visible, key, limit):
        found[path] = None
        if len(found) == limit:
            break
    return list(found)


def _matches(reads: Reads, visible: Visibility, key: str, limit: int) -> Iterator[str]:
    """Gives the paths of each kind in turn, with repetitions; asks for a kind only when it is wanted."""
    condition, values = where(visible)
    bounds = (key, key + _LAST)
    order = f"AND {condition} ORDER BY p.key, p.path LIMIT {int(limit)}"
    sources = [("pages AS p WHERE p.key >= ? AND p.key < ?", bounds)]
    if key and "/" not in key:
        sources += [(_NAMED, bounds), (_ALIASED, bounds)]
    for source, asked in sources:
        rows = reads.execute(f"SELECT p.path FROM {source} {order}", (*asked, *values))  # noqa: S608
        yield from (path for (path,) in rows.fetchall())
    if key:
        yield from _by_title(reads, visible, key)


def _by_title(reads: Reads, visible: Visibility, key: str) -> Iterator[str]:
    """Looks at the titles themselves: no table keeps them folded."""
    condition, values = where(visible)
    if key.isascii():
        condition += " AND p.title LIKE ? ESCAPE '\\'"
        escaped = key.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values = [*values, f"{escaped}%"]
    rows = reads.execute(
        f"SELECT p.path, p.title FROM pages AS p WHERE {condition} ORDER BY p.key, p.path",  # noqa: S608
        values,
    )
    return (path for path, title in rows if lookup_key(title).startswith(key))

"""Which page a link names: the rule, over candidates that somebody has looked up. Pure; no SQL here.

As Obsidian resolves (pages.md §3): the page whose whole path it is; else a page whose path ends with it,
those in the linking page's folder or below first, then the shortest path; else a page with that alias, in the
same order. Upper and lower case and Unicode forms do not count. Targets that begin with `/`, `./` or `../`
are whole paths. Of two pages that only differ by case or form, the one that sorts first.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pcpd.pages.paths import lookup_key

_TARGET_LIMIT = 4096  # characters; no path is longer


class Form(NamedTuple):
    """What a link looks for: `tail` is its lookup form with reversed segments, empty if nothing can match."""

    tail: str
    exact: bool


class Named(NamedTuple):
    """A page that may be meant: its number, path and lookup form."""

    number: int
    path: str
    key: str


class Candidates:
    """All pages that one form may mean, in the order of preference from any folder."""

    def __init__(self, form: Form, named: Iterable[Named], aliased: Iterable[Named]) -> None:
        """Takes the pages whose path ends with the form, and those that have it as an alias."""
        key = tail_of(form.tail)
        ordered = _ordered(named)
        self._whole = next((page for page in ordered if page.key == key), None)
        self._exact = form.exact
        self._best = _best_in_folders(ordered) or _best_in_folders(_ordered(aliased))

    def seen_from(self, folder: str) -> Named | None:
        """Gives the page that is meant in `folder` (its lookup form, empty for the root), or None."""
        if self._whole is not None or self._exact:
            return self._whole
        return self._best.get(folder) or self._best.get("")


def form_of(target: str, folder: str) -> Form:
    """Gives what a target, as written on a page in `folder`, looks for.

    `Plan`, `Plan.md`, `a/Plan`, `a//Plan` name ends of paths; `/a/Plan`, `./Plan`, `../Plan` whole paths.
    """
    text = target.strip()
    if text[-3:].lower() == ".md":
        text = text[:-3]
    if len(text) > _TARGET_LIMIT or not is_storable(text):
        return Form("", exact=True)
    segments = text.split("/")
    is_relative = segments[0] in {".", ".."}
    place = folder.split("/") if is_relative and folder else []
    for segment in segments:
        if segment == "..":
            if not place:
                return Form("", exact=True)
            place.pop()
        elif segment not in {"", "."}:
            place.append(segment)
    return Form(tail_of(lookup_key("/".join(place))), exact=is_relative or text.startswith("/"))


def tail_of(key: str) -> str:
    """Reverses the segments of a lookup form: `a/b/c` gives `c/b/a`."""
    return key if "/" not in key else "/".join(reversed(key.split("/")))


def folder_of(key: str) -> str:
    """Gives the folder's lookup form from a page's."""
    return key.rpartition("/")[0]


def is_storable(text: str) -> bool:
    """Tells whether text can be asked for at all: half characters (lone surrogates) are in no path and no name."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def tails_naming(tail: str) -> list[str]:
    """Gives every tail that may name the page with `tail`: `c/b/a` gives `c`, `c/b` and `c/b/a`."""
    segments = tail.split("/")
    return ["/".join(segments[:count]) for count in range(1, len(segments) + 1)]


def _ordered(pages: Iterable[Named]) -> list[Named]:
    return sorted(pages, key=lambda page: (len(page.key), page.key, page.path))


def _best_in_folders(ordered: Iterable[Named]) -> dict[str, Named]:
    """Gives, for each folder at any height (the root is ''), the first of the pages in it or below."""
    best: dict[str, Named] = {}
    for page in ordered:
        folder = folder_of(page.key)
        while folder not in best:
            best[folder] = page
            folder = folder_of(folder)
    return best

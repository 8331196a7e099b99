"""Looks up which page a link means, for one reader: candidates from the tables, the rule from `resolve`."""

from collections.abc import Iterator

from pcpd.index.resolve import Candidates, Form, Named, folder_of, is_storable, tail_of, tails_naming
from pcpd.index.visible import where
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads


class Lookup:
    """Resolves links among the pages that one reader sees, and remembers what it found for one answer.

    `condition` and `values` are the reader's sight as SQL over the alias `p` of `pages`.
    """

    def __init__(self, reads: Reads, visible: Visibility) -> None:
        """Looks up nothing yet."""
        self.reads = reads
        self.condition, self.values = where(visible)
        self._candidates: dict[Form, Candidates] = {}
        self._sources: dict[str, dict[int, list[int]]] = {}

    def page(self, path: str) -> Named | None:
        """Gives the page at exactly this path, or None."""
        if not is_storable(path):
            return None
        found = self._pages("pages AS p WHERE p.key = ? AND p.path = ?", lookup_key(path), path)
        return found[0] if found else None

    def numbered(self, number: int) -> Named:
        """Gives a page by the number of its row."""
        return self._pages("pages AS p WHERE p.id = ?", number)[0]

    def target(self, form: Form, folder: str) -> Named | None:
        """Gives the page that a form means from `folder` (its lookup form), or None."""
        if not form.tail:
            return None
        if form not in self._candidates:
            self._candidates[form] = self._find(form)
        return self._candidates[form].seen_from(folder)

    def targets(self, page: Named) -> Iterator[Named]:
        """Gives the pages that a page links to, once for each link."""
        forms = self.reads.execute("SELECT tail, exact FROM links WHERE page = ?", (page.number,)).fetchall()
        for tail, exact in forms:
            target = self.target(Form(tail, bool(exact)), folder_of(page.key))
            if target is not None:
                yield target

    def sources(self, page: Named) -> Iterator[int]:
        """Gives the numbers of the pages that link to a page, once for each link.

        All links of one name are resolved together: a name that many pages share costs no more than others.
        """
        for tail in self.tails(page):
            if tail not in self._sources:
                self._sources[tail] = self._sources_of(tail)
            yield from self._sources[tail].get(page.number, ())

    def tails(self, page: Named) -> list[str]:
        """Gives every tail that a link to this page can have."""
        aliases = self.reads.execute("SELECT tail FROM aliases WHERE page = ?", (page.number,))
        return list(dict.fromkeys([*tails_naming(tail_of(page.key)), *(row[0] for row in aliases)]))

    def _sources_of(self, tail: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        rows = self.reads.execute(
            f"SELECT l.exact, p.id, p.key FROM links AS l JOIN pages AS p ON p.id = l.page"  # noqa: S608
            f" WHERE l.tail = ? AND {self.condition}",
            (tail, *self.values),
        )
        for exact, source, key in rows:
            target = self.target(Form(tail, bool(exact)), folder_of(key))
            if target is not None:
                found.setdefault(target.number, []).append(source)
        return found

    def _find(self, form: Form) -> Candidates:
        whole = self._pages("pages AS p WHERE p.tail = ?", form.tail)
        if form.exact:
            return Candidates(form, whole, ())
        below = self._pages("pages AS p WHERE p.tail > ? AND p.tail < ?", f"{form.tail}/", f"{form.tail}0")
        if whole or below:
            return Candidates(form, [*whole, *below], ())
        aliased = self._pages("aliases AS a JOIN pages AS p ON p.id = a.page WHERE a.tail = ?", form.tail)
        return Candidates(form, (), aliased)

    def _pages(self, source: str, *values: str | int) -> list[Named]:
        rows = self.reads.execute(
            f"SELECT p.id, p.path, p.key FROM {source} AND {self.condition}",  # noqa: S608
            (*values, *self.values),
        )
        return [Named(*row) for row in rows]

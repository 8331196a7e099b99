"""A query as SQL: which pages it finds. How they are ordered is `rank`'s.

Text goes to FTS5 as quoted strings of tokens alone, so nothing a person types is FTS5 syntax.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pcpd.index import tokens, visible
from pcpd.index.query import Clause, Filter, Piece, Query, Term, as_text, literal_clauses
from pcpd.pages.paths import lookup_key
from pcpd.policy.decide import Visibility
from pcpd.sqlite import Reads

_LAST_CHARACTER = "\U0010ffff"
_VALUE = 200  # characters of a property's value that the index keeps


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on alias `p` of pages, in parentheses, with its values in order."""

    sql: str = "(TRUE)"
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that is ranked by: what to ask `stems` for, and the term that it stands for."""

    stems: str
    term: Term


@dataclass(frozen=True, slots=True)
class Matching:
    """What pages must hold. `units` are asked of `stems`, all of them (groups are alternatives) or any.

    `prefix` is asked of `words` where there are no units; `where` is all the rest. What is visible is `sight`.
    """

    groups: tuple[tuple[Unit, ...], ...]
    prefix: str
    sight: Condition
    where: Condition | None

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units, each once."""
        return tuple(dict.fromkeys(unit for group in self.groups for unit in group))


def matching(conn: Reads, query: Query, seen: Visibility) -> Matching:
    """Gives what the pages of a query must hold."""
    query = _without_unknown_properties(conn, query, seen)
    with_literals = literal_clauses(query)
    groups: list[tuple[Unit, ...]] = []
    prefixes: list[str] = []
    sight, values = visible.where(seen)
    conditions: list[Condition] = []
    for clause in query.clauses:
        terms = [piece for piece in clause if _is_ranked(piece)]
        if len(terms) == len(clause):
            groups.append(tuple(Unit(phrase(term.words), term) for term in terms if isinstance(term, Term)))
        only = clause[0] if len(clause) == 1 else None
        if isinstance(only, Term) and only.kind == "prefix":
            prefixes.append(_prefix(only))
        elif any(not _is_ranked(piece) or _is_exact(piece) for piece in clause):
            conditions.append(_any(clause, literals=with_literals))
    driver = "" if groups or not prefixes else prefixes.pop(0)
    conditions += [_in_words(prefix) for prefix in prefixes]
    conditions += [_not(_condition(piece, excluded=True)) for piece in query.excluded]
    where = all_hold(conditions) if conditions else None
    return Matching(tuple(groups), driver, Condition(sight, tuple(values)), where)


def phrase(words: Sequence[str]) -> str:
    """Gives tokens as an FTS5 string."""
    return f'"{" ".join(words)}"'


def all_of(groups: Sequence[Sequence[str]]) -> str:
    """Gives the FTS5 expression for: of each group, one."""
    return " AND ".join(f"({' OR '.join(group)})" for group in groups)


def exact(units: Sequence[Unit]) -> str:
    """Gives the FTS5 expression, for `words`, of pages that hold all words of all units as typed."""
    return " AND ".join(dict.fromkeys(phrase((word,)) for unit in units for word in unit.term.words))


def loosened(groups: Sequence[Sequence[Unit]]) -> tuple[Unit, ...]:
    """Gives what to look for when no page holds everything: each unit, and the parts of unquoted phrases.

    Parts are words; of a run of characters that stand alone, pairs of neighbours (one says too little).
    """
    units: dict[str, Unit] = {}
    for unit in (unit for group in groups for unit in group):
        units.setdefault(unit.stems, unit)
        if unit.term.kind == "phrase" and not unit.term.quoted:
            for words in _parts(unit.term.words):
                text = "".join(words) if len(words) > 1 else words[0]
                part = Term("phrase" if len(words) > 1 else "word", text, words)
                units.setdefault(phrase(words), Unit(phrase(words), part))
    return tuple(units.values())


def _parts(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    alone = [tokens.is_alone(word) for word in words]
    for position, word in enumerate(words):
        if not alone[position]:
            yield (word,)
        elif position + 1 < len(words) and alone[position + 1]:
            yield (word, words[position + 1])
        elif position == 0 or not alone[position - 1]:
            yield (word,)


def _is_ranked(piece: Piece) -> bool:
    return isinstance(piece, Term) and piece.kind in {"word", "phrase"}


def _is_exact(piece: Piece) -> bool:
    return isinstance(piece, Term) and piece.quoted


def _prefix(term: Term) -> str:
    *whole, last = term.words
    return " AND ".join([*(phrase((word,)) for word in whole), f"{phrase((last,))} *"])


def _condition(piece: Piece, *, excluded: bool = False) -> Condition:
    if isinstance(piece, Filter):
        return _fact(piece)
    if piece.kind == "prefix":
        return _in_words(_prefix(piece))
    if piece.kind == "literal":
        return Condition(
            "(p.id IN (SELECT page FROM texts WHERE instr(title, ?) OR instr(body, ?)))", (piece.text,) * 2
        )
    words = exact([Unit("", piece)])
    if excluded and len(piece.words) == 1:
        return _in_words(words)
    stems = Condition("(p.id IN (SELECT rowid FROM stems WHERE stems MATCH ?))", (phrase(piece.words),))
    return all_hold([stems, _in_words(words)]) if piece.quoted else stems


def _in_words(expression: str) -> Condition:
    return Condition("(p.id IN (SELECT rowid FROM words WHERE words MATCH ?))", (expression,))


def _fact(piece: Filter) -> Condition:  # noqa: PLR0911 - one return a kind of filter
    value = piece.value
    match piece.key:
        case "type" | "partition" | "lifecycle":
            return Condition(f"(p.{piece.key} = ? COLLATE NOCASE)", (value,))
        case "tag":
            tag = lookup_key(value.lstrip("#").rstrip("/"))
            # A tag also stands for those below it, as in Obsidian: `0` follows `/` in every encoding.
            return Condition(
                "(p.id IN (SELECT page FROM tags WHERE key = ? OR (key > ? AND key < ?)))",
                (tag, f"{tag}/", f"{tag}0"),
            )
        case "path":
            begin = lookup_key(value.lstrip("/").removesuffix("*"))
            return Condition("(p.key >= ? AND p.key < ?)", (begin, f"{begin}{_LAST_CHARACTER}"))
        case "is":
            return Condition("(p.review_state = ?)", (value,))
        case "has":
            return Condition("(p.problems > 0)")
        case "before":
            return Condition("(p.updated < ?)", (value,))
        case "after":
            return Condition("(p.updated >= ?)", (value,))
        case "property":
            keys = _property_keys(piece.name)
            marks = ", ".join("?" * len(keys))
            return Condition(
                f"(p.id IN (SELECT page FROM properties WHERE key IN ({marks})"  # noqa: S608 - marks
                " AND (value = ? OR ? = '*')))",
                (*keys, lookup_key(value[:_VALUE]), value),
            )


def _property_keys(name: str) -> tuple[str, ...]:
    """`x-status:` finds the key `status` and, as foreign keys are written, `x_status`."""
    key = lookup_key(name)
    return tuple(dict.fromkeys((key, f"x_{key}", f"x-{key}")))


def _without_unknown_properties(conn: Reads, query: Query, seen: Visibility) -> Query:
    """Takes `x-<key>:value` as literal text (`x-ray:chest`) where no visible page has such a key."""
    sight, values = visible.where(seen)

    def known(piece: Filter) -> bool:
        keys = _property_keys(piece.name)
        sql = (
            "SELECT EXISTS (SELECT 1 FROM properties JOIN pages AS p ON p.id = properties.page"  # noqa: S608
            f" WHERE properties.key IN ({', '.join('?' * len(keys))}) AND {sight})"
        )
        return bool(conn.execute(sql, (*keys, *values)).fetchone()[0])

    def kept(piece: Piece) -> Piece:
        is_unknown = isinstance(piece, Filter) and piece.key == "property" and not known(piece)
        return as_text(piece) if is_unknown and isinstance(piece, Filter) else piece

    return Query(
        tuple(tuple(map(kept, clause)) for clause in query.clauses),
        tuple(map(kept, query.excluded)),
        query.is_question,
    )


def _any(clause: Clause, *, literals: bool) -> Condition:
    parts = [
        _condition(piece)
        for piece in clause
        if literals or not (isinstance(piece, Term) and piece.kind == "literal")
    ]
    if not parts:
        return Condition()
    return Condition(f"({' OR '.join(part.sql for part in parts)})", _values(parts))


def all_hold(parts: Sequence[Condition]) -> Condition:
    """Joins conditions."""
    return Condition(f"({' AND '.join(part.sql for part in parts)})", _values(parts))


def _not(part: Condition) -> Condition:
    return Condition(f"(NOT {part.sql})", part.values)


def _values(parts: Sequence[Condition]) -> tuple[object, ...]:
    return tuple(value for part in parts for value in part.values)

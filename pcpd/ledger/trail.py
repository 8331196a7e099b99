"""The audit trail as a whole: which one it is, where it ends, and what each principal did in numbers."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from pcpd.ledger.audit import ALL, Filter, where_of
from pcpd.ledger.ledger import Ledger

_SUMS = """
SELECT principal,
    sum(outcome = 'ok' AND action NOT IN (SELECT value FROM json_each(?))) AS reads,
    sum(outcome = 'ok' AND action IN (SELECT value FROM json_each(?))) AS writes,
    sum(CASE outcome WHEN 'ok' THEN 0 ELSE coalesce(json_extract(counts, '$.refused'), 1) END) AS refused,
    min(at) AS first_at, max(at) AS last_at
FROM audit WHERE {} GROUP BY principal ORDER BY principal
"""
_PAGES = """
SELECT principal, count(DISTINCT value) FROM audit, json_each(object_ids)
WHERE outcome = 'ok' AND {} GROUP BY principal
"""


@dataclass(frozen=True, slots=True)
class Activity:
    """What one principal did, in numbers: acts that read, acts that changed pages, refusals, and different pages.

    `first_at` and `last_at` are the times of the first and the last of these rows.
    """

    principal: str
    reads: int
    writes: int
    refused: int
    pages: int
    first_at: str
    last_at: str


def activity(ledger: Ledger, wanted: Filter = ALL, *, writes: Collection[str]) -> list[Activity]:
    """Gives what each principal did, by name; `writes` are the actions that change pages.

    Refused knocks that one row counts together count as many.
    """
    condition, values = where_of(wanted)
    actions = json.dumps(sorted(writes))
    with ledger.beside() as connection:
        found = connection.execute(_SUMS.format(condition), (actions, actions, *values)).fetchall()
        named = connection.execute(_PAGES.format(condition), values).fetchall()
    pages: dict[str, int] = {row[0]: row[1] for row in named}
    return [Activity(**dict(row), pages=pages.get(row["principal"], 0)) for row in found]


def end(ledger: Ledger) -> tuple[str, int]:
    """Gives the random id of the trail, 8 hex digits, and the number of its last row; `("", 0)` before the first."""
    with ledger.reading() as connection:
        row = connection.execute("SELECT id, rows FROM trail").fetchone()
    return ("", 0) if row is None else (str(row["id"]), int(row["rows"]))

"""Changes that have begun and are not accounted for yet: what is done and never told would be missing in the trail.

Noted before a file is touched, so that a ledger that cannot be written refuses the change; done with once the
audit row of that id is there. What a dead owner left is written into the trail at the next start.
"""

import json
from dataclasses import asdict
from typing import Any

from pcpd.ledger.audit import AuditRow
from pcpd.ledger.ledger import Ledger


def add(ledger: Ledger, row: AuditRow) -> None:
    """Notes the audit row, with an `id`, that a change gets if nobody lives to account for it. Raises `Broken`."""
    with ledger.transaction(durable=False) as tx:
        tx.execute("DELETE FROM begun WHERE id IN (SELECT id FROM audit)")
        tx.execute("INSERT INTO begun VALUES (?, ?)", (row.id, json.dumps(asdict(row))))


def left(ledger: Ledger) -> list[AuditRow]:
    """Gives the rows of changes that began and were never accounted for. For the owner's start."""
    with ledger.reading() as connection:
        found = connection.execute("SELECT row FROM begun WHERE id NOT IN (SELECT id FROM audit)").fetchall()
    return [_row(json.loads(row["row"])) for row in found]


def _row(said: dict[str, Any]) -> AuditRow:
    return AuditRow(
        **{**said, "categories": tuple(said["categories"]), "object_ids": tuple(said["object_ids"])}
    )

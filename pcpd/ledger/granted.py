"""Since when each grant is in force, as far as an owner saw: access.yaml does not say."""

import json
from collections.abc import Collection

from pcpd.ledger.ledger import Ledger


def see(ledger: Ledger, lines: Collection[str], at: str) -> None:
    """Notes which grants are in force now, each a line of YAML: new ones since `at`, and none that has gone."""
    wanted = json.dumps(sorted(lines), ensure_ascii=False)
    with ledger.transaction(durable=False) as tx:
        tx.execute("DELETE FROM granted WHERE line NOT IN (SELECT value FROM json_each(?))", (wanted,))
        tx.execute(
            "INSERT INTO granted SELECT value, ? FROM json_each(?) WHERE TRUE ON CONFLICT DO NOTHING",
            (at, wanted),
        )


def since(ledger: Ledger) -> dict[str, str]:
    """Gives since when each grant is in force."""
    with ledger.reading() as connection:
        found = connection.execute("SELECT line, since FROM granted").fetchall()
    return {str(row["line"]): str(row["since"]) for row in found}

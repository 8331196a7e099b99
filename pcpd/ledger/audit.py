"""The audit trail: one row per act of an agent, without content, in a chain under a key of this device.

Rows name pages by opaque numbers; the table from number to path stands outside the chain and can be erased.
The key lies in the same file, so the chain shows edits by hand or by programs that do not know pcpd, not
those of a program of the same user that does. Source: pages.md §6, erasure.md.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pcpd.ledger import chain, keys
from pcpd.ledger.ledger import Ledger
from pcpd.sqlite import Reads, Transaction

KEY = "audit"
LOOKED_BACK = 100_000
"""Rows among which a principal's last act is looked for: a trail may have millions."""

COLUMNS = "number, id, at, principal, action, channel, categories, outcome, object_ids, counts, duration_ms"
_sorted = json.JSONEncoder(sort_keys=True).encode
_ADD = f"INSERT INTO audit ({COLUMNS}, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One act. `at` is RFC 3339 UTC; `channel` is mcp, http, cli, management or disk; `outcome` ok or a code.

    Without an `id` the ledger gives one; a row whose `id` is in the trail already is not added again.
    `number` is its place in the trail, given by the ledger.
    """

    at: str
    principal: str
    action: str
    channel: str
    outcome: str
    categories: tuple[str, ...] = ()
    object_ids: tuple[int, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    duration_ms: float = 0.0
    id: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows to list; None does not ask. `since` is inclusive, `until` exclusive, both RFC 3339 UTC.

    The outcome `refused` is every one but ok. `category` and `object_id` ask for rows that name it among others.
    """

    principal: str | None = None
    action: str | None = None
    channel: str | None = None
    outcome: str | None = None
    category: str | None = None
    object_id: int | None = None
    since: str | None = None
    until: str | None = None
    not_channel: str | None = None


ALL = Filter()
REFUSED = "refused"


def record(ledger: Ledger, rows: Sequence[AuditRow]) -> None:
    """Adds rows in their order, all or none, and returns when they are committed. Raises `Broken`.

    They survive the end of this process; a power cut may take the last moments, and leaves a whole trail.
    """
    if not rows:
        return
    with ledger.transaction(durable=False) as tx:
        key = keys.key_in(tx, ledger, KEY)
        trail_id, number, head = _end_of_trail(tx, ledger, key)
        known = _known_ids(tx, [row.id for row in rows if row.id])
        added = []
        for row in rows:
            if row.id in known:
                continue
            known |= {row.id} if row.id else set()
            number += 1
            columns = _columns(row, number, row.id or f"aud_{trail_id}_{number}")
            head = chain.mac_of(key, head, columns)
            added.append((*columns, head))
        tx.executemany(_ADD, added)
        tx.execute(
            "UPDATE trail SET rows = ?, head = ?, seal = ?", (number, head, chain.seal_of(key, number, head))
        )


def rows(
    ledger: Ledger,
    wanted: Filter = ALL,
    *,
    before: int | None = None,
    after: int | None = None,
    limit: int = 100,
) -> list[AuditRow]:
    """Gives rows, newest first; those with a lower number than `before`; with `after`, later ones, oldest first.

    Read beside the writer: looking at a long trail holds no act up.
    """
    where, values = where_of(wanted)
    for condition, bound in (("number < ?", before), ("number > ?", after)):
        if bound is not None:
            where, values = f"{where} AND {condition}", [*values, bound]
    order = "DESC" if after is None else "ASC"
    sql = f"SELECT {COLUMNS} FROM audit WHERE {where} ORDER BY number {order} LIMIT ?"  # noqa: S608
    with ledger.beside() as connection:
        return [_row(row) for row in connection.execute(sql, (*values, limit))]


def row(ledger: Ledger, id_: str) -> AuditRow | None:
    """Gives the row of that id."""
    with ledger.beside() as connection:
        found = connection.execute(f"SELECT {COLUMNS} FROM audit WHERE id = ?", (id_,)).fetchone()  # noqa: S608
    return None if found is None else _row(found)


def where_of(wanted: Filter) -> tuple[str, list[object]]:
    """Gives a filter as a condition on the rows of `audit`, and its values in order."""
    is_refused = wanted.outcome == REFUSED
    asked = {
        "principal = ?": wanted.principal,
        "action = ?": wanted.action,
        "channel = ?": wanted.channel,
        "outcome <> ?" if is_refused else "outcome = ?": "ok" if is_refused else wanted.outcome,
        "EXISTS (SELECT 1 FROM json_each(categories) WHERE value = ?)": wanted.category,
        "EXISTS (SELECT 1 FROM json_each(object_ids) WHERE value = ?)": wanted.object_id,
        "at >= ?": wanted.since,
        "at < ?": wanted.until,
        "channel <> ?": wanted.not_channel,
    }
    given = {condition: value for condition, value in asked.items() if value is not None}
    return " AND ".join(given) or "TRUE", list(given.values())


def last_acts(ledger: Ledger) -> dict[str, str]:
    """Gives when each principal last did something, as far as the newest rows tell (`LOOKED_BACK`)."""
    with ledger.beside() as connection:
        found = connection.execute(
            "SELECT principal, at, max(number) FROM"
            " (SELECT principal, at, number FROM audit ORDER BY number DESC LIMIT ?) GROUP BY principal",
            (LOOKED_BACK,),
        ).fetchall()
    return {str(row["principal"]): str(row["at"]) for row in found}


def object_numbers(ledger: Ledger, paths: Iterable[str]) -> list[int]:
    """Gives the opaque number of each path, in order; a path that had none gets the next one."""
    wanted = [_storable(path) for path in paths]
    with ledger.reading() as connection:
        known = _numbers(connection, wanted)
    missing = [path for path in dict.fromkeys(wanted) if path not in known]
    if missing:
        with ledger.transaction(durable=False) as tx:
            tx.executemany(
                "INSERT INTO objects (path) VALUES (?) ON CONFLICT DO NOTHING", [(path,) for path in missing]
            )
            known |= _numbers(tx, missing)
    return [known[path] for path in wanted]


def object_paths(ledger: Ledger, numbers: Iterable[int]) -> dict[int, str]:
    """Gives the path of each number that still has one."""
    wanted = json.dumps(list(numbers))
    with ledger.reading() as connection:
        found = connection.execute(
            "SELECT number, path FROM objects WHERE number IN (SELECT value FROM json_each(?))", (wanted,)
        ).fetchall()
    return {int(row["number"]): str(row["path"]) for row in found}


def object_number(ledger: Ledger, path: str) -> int | None:
    """Gives the number of a path; None where no row ever named it."""
    with ledger.reading() as connection:
        return _numbers(connection, [_storable(path)]).get(_storable(path))


def forget_objects(ledger: Ledger, paths: Iterable[str]) -> int:
    """Erases the paths' rows, so that the trail no longer tells which pages they were; gives how many.

    The rows leave the file and its log too; the numbers are never used again.
    """
    wanted = json.dumps([_storable(path) for path in paths], ensure_ascii=False)
    with ledger.transaction() as tx:
        done = tx.execute(
            "DELETE FROM objects WHERE path IN (SELECT value FROM json_each(?))", (wanted,)
        ).rowcount
    ledger.checkpoint()
    return done


def _end_of_trail(tx: Transaction, ledger: Ledger, key: bytes) -> tuple[str, int, bytes]:
    row = tx.execute("SELECT id, rows, head FROM trail").fetchone()
    if row is not None:
        return str(row["id"]), int(row["rows"]), bytes(row["head"])
    trail_id = ledger.entropy(4).hex()
    head = chain.first_head(key, trail_id)
    tx.execute("INSERT INTO trail VALUES (1, ?, 0, ?, ?)", (trail_id, head, chain.seal_of(key, 0, head)))
    return trail_id, 0, head


def _known_ids(tx: Transaction, ids: Sequence[str]) -> set[str]:
    if not ids:
        return set()
    found = tx.execute(
        "SELECT id FROM audit WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
    )
    return {str(row[0]) for row in found}


def _columns(row: AuditRow, number: int, id_: str) -> tuple[chain.Column, ...]:
    return (
        number,
        id_,
        row.at,
        row.principal,
        row.action,
        row.channel,
        json.dumps(row.categories),
        row.outcome,
        json.dumps(row.object_ids),
        _sorted(dict(row.counts)),
        float(row.duration_ms),
    )


def _row(row: sqlite3.Row) -> AuditRow:
    values = dict(row)
    values["categories"] = tuple(json.loads(values["categories"]))
    values["object_ids"] = tuple(json.loads(values["object_ids"]))
    values["counts"] = json.loads(values["counts"])
    return AuditRow(**values)


def _numbers(reads: Reads, paths: Sequence[str]) -> dict[str, int]:
    found = reads.execute(
        "SELECT path, number FROM objects WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps(paths, ensure_ascii=False),),
    )
    return {str(row["path"]): int(row["number"]) for row in found}


def _storable(path: str) -> str:
    # A name that is no UTF-8 carries lone surrogates, which SQLite cannot hold.
    return path.encode("utf-8", "backslashreplace").decode()

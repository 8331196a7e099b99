-- One row per act of an agent, written by `ledger.audit` in the order of acts and never changed or removed.
-- `number` counts from 1 without gaps. No content: pages are named by numbers of `objects`; `categories`,
-- `object_ids` and `counts` are JSON. `mac` is HMAC-SHA256, under the key `audit`, of the mac before it and all
-- other columns: an edited, inserted or missing row shows. `at` is RFC 3339 UTC (`…Z`).
CREATE TABLE audit (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    at          TEXT NOT NULL,
    principal   TEXT NOT NULL,
    action      TEXT NOT NULL,
    channel     TEXT NOT NULL,
    categories  TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    object_ids  TEXT NOT NULL,
    counts      TEXT NOT NULL,
    duration_ms REAL NOT NULL,
    mac         BLOB NOT NULL
) STRICT;

-- Exactly one row: where the trail ends. Written in the transaction that adds rows to `audit`. `rows` is the
-- number of the last one and `head` its mac; `seal` is an HMAC over both, so that rows cut off the end show as
-- well. `id` is random, made with the trail, and begins the ids of its rows.
CREATE TABLE trail (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    id   TEXT NOT NULL,
    rows INTEGER NOT NULL,
    head BLOB NOT NULL,
    seal BLOB NOT NULL
) STRICT;

-- One row per page that an audit row names, written by `ledger.audit`. The only place where a number meets a
-- path, outside the chain, so that erasing a page erases its row here and leaves the trail whole. Must hold:
-- numbers are never used again (AUTOINCREMENT), or an old audit row would name another page.
CREATE TABLE objects (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    path   TEXT NOT NULL UNIQUE
) STRICT;

-- One row per file whose version on disk is not in git yet, written with the index rows of that version and
-- cleared when its commit is durable. `pace` names the waiting times that apply (pages, conversations).
-- `first_ns` and `last_ns` are the wall-clock times of the first and the last change since the last commit.
CREATE TABLE to_commit (
    file     TEXT NOT NULL PRIMARY KEY,
    pace     TEXT NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per effect that an index transaction still owes the world outside (an audit row, a subscriber, an
-- entry of the person's git index). `payload` is JSON. Written in that transaction, deleted when the effect
-- is done; whoever drains it does each effect at least once, so effects are safe to repeat.
CREATE TABLE outbox (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_kind ON outbox (kind, id);

-- At most one row: the stub that old rows of the audit trail left when they were removed for their age, written by
-- `ledger.retention`. `number` is the last one removed and `mac` its mac, from which the chain goes on; all rows up to
-- it are gone. `before` is the time that they were older than, `at` when that was done, both RFC 3339 UTC (`…Z`).
-- Must hold: `seal` is an HMAC over all of it, so that rows cut off the beginning show.
CREATE TABLE pruned (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    mac    BLOB NOT NULL,
    before TEXT NOT NULL,
    at     TEXT NOT NULL,
    seal   BLOB NOT NULL
) STRICT;

-- One row per change by an agent that has begun, written by `ledger.begun` before a file is touched: `row` is its
-- audit row as JSON, as it is to read if the owner dies before the act is accounted for. Must hold: a row whose
-- `id` is in `audit` means nothing, and is gone at the next change.
CREATE TABLE begun (
    id  TEXT PRIMARY KEY,
    row TEXT NOT NULL
) STRICT, WITHOUT ROWID;

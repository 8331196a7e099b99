-- One row per secret key of this device, made when it is first asked for: `audit` seals the trail, later ones
-- seal receipts. Written by `ledger.keys` alone. Must hold: a key never changes and is never exported, since
-- what was sealed with it could not be checked any more, or could be forged.
CREATE TABLE keys (
    name    TEXT PRIMARY KEY,
    key     BLOB NOT NULL,
    made_at TEXT NOT NULL
) STRICT;

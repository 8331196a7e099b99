-- One row per principal that the person has paused, written by `ledger.pauses`; `*` is everybody with a token. Must
-- hold: a row is there from the moment of the pause until the person ends it, over every restart. `at` is RFC 3339
-- UTC (`…Z`).
CREATE TABLE paused (
    principal TEXT PRIMARY KEY,
    at        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per grant in force, as one line of YAML, written by `ledger.granted`: since when it stands in access.yaml,
-- as far as an owner saw, in RFC 3339 UTC (`…Z`). Must hold: a grant that goes and comes back begins anew. What is
-- lost here costs nothing but these dates: access.yaml alone says what is granted.
CREATE TABLE granted (
    line  TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT, WITHOUT ROWID;

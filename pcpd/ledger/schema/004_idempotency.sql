-- One row per write that a client named by an idempotency key: what it means to do, then the answer it got, as
-- JSON, so that a repeated request is answered again and not done again. Written by `ledger.idempotency`. Must
-- hold: rows older than a day are gone at the next write. `at` is RFC 3339 UTC (`…Z`).
CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    key       TEXT NOT NULL,
    at        TEXT NOT NULL,
    answer    TEXT NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_at ON idempotency (at);

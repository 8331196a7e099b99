-- One row per token ever issued, written by `ledger.tokens`. `prefix` is the part of the token that may be
-- shown; of the rest only an Argon2id hash is kept. Must hold: revoked rows stay, so that the use of a revoked
-- token is recognised as such in the audit trail and not as a stranger. Times are RFC 3339 UTC (`…Z`).
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    prefix     TEXT NOT NULL UNIQUE,
    hash       TEXT NOT NULL,
    principal  TEXT NOT NULL,
    label      TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE INDEX tokens_principal ON tokens (principal);

-- One row per file that holds a proposal: a file of `.pcp/proposals/`, or a page that is proposed or rejected (`op` new,
-- `id` its path). All columns follow from the file's bytes and name, also the declared facts of what would become
-- (`type` is empty where nothing is said); where the target is, and what it is now, is looked up when asked.
-- `state`: open, rejected or approved, or invalid for a file there that is no proposal (`summary` says why).
-- `digest` is that by which the same is known again; `also_by` a JSON list of names. Written by the keeper.
CREATE TABLE proposals (
    file            TEXT NOT NULL PRIMARY KEY,
    id              TEXT NOT NULL,
    op              TEXT NOT NULL,
    target          TEXT NOT NULL,
    moved_to        TEXT NOT NULL,
    target_id       TEXT NOT NULL,
    base            TEXT NOT NULL,
    by              TEXT NOT NULL,
    at              TEXT NOT NULL,
    also_by         TEXT NOT NULL,
    summary         TEXT NOT NULL,
    state           TEXT NOT NULL,
    digest          TEXT NOT NULL,
    decided_by      TEXT NOT NULL,
    decided_at      TEXT NOT NULL,
    reason          TEXT NOT NULL,
    type            TEXT NOT NULL,
    declared        TEXT,
    sensitivity     TEXT NOT NULL,
    is_conversation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX proposals_waiting ON proposals (state, at, id);
CREATE INDEX proposals_id ON proposals (id);
CREATE INDEX proposals_digest ON proposals (digest);

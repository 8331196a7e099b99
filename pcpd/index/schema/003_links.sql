-- One row per link of a page, in the order of the text. Targets are kept as written and resolved when asked,
-- so that no order of edits matters. `tail` is the target's lookup form with reversed segments; `exact` tells
-- that it is a whole path (written `/a`, `./a` or `../a`), not just the end of one. An empty tail resolves
-- to nothing. `target` is left out where turning the tail round gives it.
CREATE TABLE links (
    page    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    target  TEXT,
    tail    TEXT NOT NULL,
    exact   INTEGER NOT NULL,
    rel     TEXT NOT NULL,
    heading TEXT NOT NULL,
    alias   TEXT NOT NULL,
    line    INTEGER,
    PRIMARY KEY (page, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_tail ON links (tail);

-- One row per page's text, as it is shown; its number is the page's. `extra` holds what else is searched: the
-- file's name and the values of front matter keys that pcpd does not know. Written by `fulltext` alone, after
-- the page's own row, with one row of lengths.
CREATE TABLE texts (
    page  INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    tags  TEXT NOT NULL,
    extra TEXT NOT NULL,
    body  TEXT NOT NULL
) STRICT;

-- One row per text, narrow so that ranking reads little: `tokens` of all columns as FTS5 counted them, and
-- `class`, a copy of the page's facts, so that statistics over visible pages need no scan.
CREATE TABLE lengths (
    page   INTEGER PRIMARY KEY,
    class  INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

-- One row per combination of the facts that access depends on, with the number of texts in it and of their
-- tokens. The columns are named as in pages, so that a grant's SQL applies to both. Kept by
-- `fulltext` as texts come and go, and by the triggers below where a page's facts change.
CREATE TABLE classes (
    id          INTEGER PRIMARY KEY,
    partition   TEXT NOT NULL,
    category    TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    hidden      INTEGER NOT NULL,
    pages       INTEGER NOT NULL DEFAULT 0,
    tokens      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (partition, category, sensitivity, hidden)
) STRICT;

CREATE TRIGGER lengths_moved AFTER UPDATE OF class ON lengths WHEN old.class <> new.class BEGIN
    UPDATE classes SET pages = pages - 1, tokens = tokens - old.tokens WHERE id = old.class;
    UPDATE classes SET pages = pages + 1, tokens = tokens + new.tokens WHERE id = new.class;
END;
CREATE TRIGGER pages_reclassed AFTER UPDATE OF partition, category, sensitivity, hidden ON pages BEGIN
    INSERT OR IGNORE INTO classes (partition, category, sensitivity, hidden)
        VALUES (new.partition, new.category, new.sensitivity, new.hidden);
    UPDATE lengths SET class = (
        SELECT id FROM classes WHERE partition = new.partition AND category = new.category
            AND sensitivity = new.sensitivity AND hidden = new.hidden
    ) WHERE page = new.id;
END;

-- Stems with their places, for phrases and ranking. Contentless: the text stands once, in texts, and the row
-- is taken out by giving FTS5 the same text again, prepared by the same `tokens.prepared`.
CREATE VIRTUAL TABLE stems USING fts5(
    title, tags, extra, body, content = '',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
);

-- Words as written (folded), without places: prefixes, and which pages hold the exact form. `head` is title and
-- tags.
CREATE VIRTUAL TABLE words USING fts5(
    head, body, content = '', columnsize = 0, detail = column, prefix = '2 3',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
);

-- Merging is not the writer's work: a new segment a transaction, merged when the owner is idle
-- (`fulltext.merge_step`). The bound is near the most that FTS5 can hold: reaching it costs one writer a second.
INSERT INTO stems (stems, rank) VALUES ('automerge', 0), ('crisismerge', 1500), ('hashsize', 4194304);
INSERT INTO words (words, rank) VALUES ('automerge', 0), ('crisismerge', 1500), ('hashsize', 4194304);

-- What the two hold, term by term; no storage of their own. For counting and for comparing with a rebuild.
CREATE VIRTUAL TABLE stems_terms USING fts5vocab (stems, row);
CREATE VIRTUAL TABLE words_terms USING fts5vocab (words, row);

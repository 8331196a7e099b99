-- One row per fact about the whole index, such as whether it was compared with HEAD. Written by the keeper;
-- nothing here is part of what a rebuild must reproduce.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per file of the vault that is not ignored, page or not, as it was when last read: name, kind, stat,
-- digest of its bytes (32 bytes of SHA-256; empty where it was not read, `note` says why). A scan is compared
-- with it. `wide` holds the stat as JSON where a number does not fit 64 signed bits (inodes of some file
-- systems, times after the year 2262); the columns then hold 0. `tail` is an attachment's lookup form with its
-- segments reversed, for links that lead to it.
CREATE TABLE files (
    file       TEXT NOT NULL PRIMARY KEY,
    kind       TEXT NOT NULL,
    tail       TEXT,
    size       INTEGER NOT NULL,
    mtime_ns   INTEGER NOT NULL,
    ctime_ns   INTEGER NOT NULL,
    inode      INTEGER NOT NULL,
    mode       INTEGER NOT NULL,
    wide       TEXT,
    read_at_ns INTEGER NOT NULL,
    version    BLOB NOT NULL,
    note       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX files_wide ON files (file) WHERE wide IS NOT NULL;
CREATE INDEX files_tail ON files (tail) WHERE tail IS NOT NULL;

-- One row per page, whose file is `path` and `.md`; `id` is the number by which other tables name it. `key` is the path's lookup form (NFC, case folded), kept in `folded`
-- where the path differs from it; `tail` is the same with its segments reversed, so that every way of naming
-- the page by its last segments is a prefix.
-- `partition` and `category` are what access is decided by, remade when context.yaml changes; `declared` is
-- the partition that the page itself names. `hidden`: proposed or rejected. `updated` is the page's own where
-- `is_dated`, else the file's time. Several pages may share a key or an own_id: clashes, which are shown.
CREATE TABLE pages (
    id              INTEGER PRIMARY KEY,
    path            TEXT NOT NULL,
    folded          TEXT,
    key             TEXT NOT NULL GENERATED ALWAYS AS (coalesce(folded, path)) VIRTUAL,
    tail            TEXT NOT NULL,
    title           TEXT NOT NULL,
    own_id          TEXT,
    type            TEXT NOT NULL,
    declared        TEXT,
    partition       TEXT NOT NULL,
    category        TEXT NOT NULL,
    sensitivity     TEXT NOT NULL,
    hidden          INTEGER NOT NULL,
    lifecycle       TEXT NOT NULL,
    review_state    TEXT,
    updated         TEXT NOT NULL,
    is_dated        INTEGER NOT NULL,
    recorded_at     TEXT,
    valid_from      TEXT,
    valid_until     TEXT,
    expires         TEXT,
    importance      REAL,
    confidence      REAL,
    origin          TEXT,
    author          TEXT,
    is_conversation INTEGER NOT NULL,
    problems        INTEGER NOT NULL
) STRICT;
CREATE INDEX pages_key ON pages (key);
CREATE INDEX pages_tail ON pages (tail);
CREATE INDEX pages_updated ON pages (updated);
CREATE INDEX pages_own_id ON pages (own_id) WHERE own_id IS NOT NULL;

-- One row per different tag of a page: `key` is its lookup form, `tag` the first spelling on the page where
-- that differs.
CREATE TABLE tags (
    page INTEGER NOT NULL,
    key  TEXT NOT NULL,
    tag  TEXT,
    PRIMARY KEY (page, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_key ON tags (key);

-- One row per different alias of a page, another name that links may use; `tail` as in pages.
CREATE TABLE aliases (
    page  INTEGER NOT NULL,
    tail  TEXT NOT NULL,
    alias TEXT NOT NULL,
    PRIMARY KEY (page, tail)
) STRICT, WITHOUT ROWID;
CREATE INDEX aliases_tail ON aliases (tail);

-- One row per different scalar of a page's front matter under a key that pcpd does not know, for filters: key
-- and value in their lookup form, values cut at 200 characters.
CREATE TABLE properties (
    page  INTEGER NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (page, key, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX properties_key ON properties (key, value);

-- One row per problem of a page, in the order found; `line` is 1-based in the file.
CREATE TABLE problems (
    page    INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    code    TEXT NOT NULL,
    message TEXT NOT NULL,
    line    INTEGER,
    PRIMARY KEY (page, seq)
) STRICT, WITHOUT ROWID;

-- One row at most, once changes are kept: the first scan of an empty index makes no news. `epoch` tells this run of
-- numbers from those of any other index; `seq` is the last number given. Written by the keeper, as are the two
-- tables below; none is part of what a rebuild must reproduce.
CREATE TABLE event_clock (
    epoch INTEGER NOT NULL,
    seq   INTEGER NOT NULL
) STRICT;

-- One row per combination of facts that a changed page had or has; the columns are named as in pages, so that a
-- grant's SQL applies. `kept` counts the class's rows in events; those up to number `floor` were dropped for age.
CREATE TABLE event_classes (
    id          INTEGER PRIMARY KEY,
    partition   TEXT NOT NULL,
    category    TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    hidden      INTEGER NOT NULL,
    kept        INTEGER NOT NULL DEFAULT 0,
    floor       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (partition, category, sensitivity, hidden)
) STRICT;

-- One row per change of a page and class that the page was in before (`was`) or is in after it (`now`): a page that
-- is reclassed has two rows of one number, so that what a reader may see, and how much of it is kept, hangs on
-- no other class. `version` as in files, where the page is in the class now.
CREATE TABLE events (
    class   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    path    TEXT NOT NULL,
    was     INTEGER NOT NULL,
    now     INTEGER NOT NULL,
    version BLOB,
    at      TEXT NOT NULL,
    PRIMARY KEY (class, seq)
) STRICT, WITHOUT ROWID;

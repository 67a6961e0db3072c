-- What people keep about their sessions, beside what is projected from the journals.
ALTER TABLE sessions ADD COLUMN pinned    BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE sessions ADD COLUMN archived  BOOLEAN NOT NULL DEFAULT FALSE;
-- Each between line breaks, so that one is found by LIKE.
ALTER TABLE sessions ADD COLUMN tags      TEXT    NOT NULL DEFAULT '';
-- Grows with every change of the three above.
ALTER TABLE sessions ADD COLUMN marked    BIGINT  NOT NULL DEFAULT 0;
-- When a session that was given up is deleted; until then it can come back.
ALTER TABLE sessions ADD COLUMN delete_at BIGINT;
-- The journal version whose texts are in the index.
ALTER TABLE sessions ADD COLUMN indexed   BIGINT  NOT NULL DEFAULT 0;

DROP INDEX sessions_newest;
CREATE INDEX sessions_newest
    ON sessions (tenant, owner, archived, pinned DESC, updated_at DESC, id DESC);
CREATE INDEX sessions_given_up ON sessions (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX sessions_unindexed ON sessions (updated_at) WHERE indexed < version;

-- Where each text of a session stands; the texts themselves are the journal's.
CREATE TABLE texts (
    -- Millisecond and place in it, so that newest first is the order of the keys.
    id      INTEGER NOT NULL PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    -- 0 is the title.
    seq     BIGINT  NOT NULL,
    part    BIGINT  NOT NULL,
    kind    TEXT    NOT NULL,
    version BIGINT  NOT NULL,
    UNIQUE (tenant, session, seq, part)
);

-- Words that we have made ourselves, and ids of owner and session, which have an underscore. It keeps
-- no text.
CREATE VIRTUAL TABLE texts_index USING fts5 (
    words, content = '', contentless_delete = 1, prefix = '2 3', tokenize = "ascii tokenchars '_'"
);

CREATE TRIGGER texts_leave_index AFTER DELETE ON texts BEGIN
    DELETE FROM texts_index WHERE rowid = OLD.id;
END;

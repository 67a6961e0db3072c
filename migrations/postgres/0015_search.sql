-- What people keep about their sessions, beside what is projected from the journals.
ALTER TABLE sessions ADD COLUMN pinned    BOOLEAN          NOT NULL DEFAULT FALSE;
ALTER TABLE sessions ADD COLUMN archived  BOOLEAN          NOT NULL DEFAULT FALSE;
-- Each between line breaks, so that one is found by LIKE.
ALTER TABLE sessions ADD COLUMN tags      TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Grows with every change of the three above.
ALTER TABLE sessions ADD COLUMN marked    BIGINT           NOT NULL DEFAULT 0;
-- When a session that was given up is deleted; until then it can come back.
ALTER TABLE sessions ADD COLUMN delete_at BIGINT;
-- The journal version whose texts are in the index.
ALTER TABLE sessions ADD COLUMN indexed   BIGINT           NOT NULL DEFAULT 0;

DROP INDEX sessions_newest;
CREATE INDEX sessions_newest
    ON sessions (tenant, owner, archived, pinned DESC, updated_at DESC, id DESC);
CREATE INDEX sessions_given_up ON sessions (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX sessions_unindexed ON sessions (updated_at) WHERE indexed < version;

-- Where each text of a session stands; the texts themselves are the journal's.
CREATE TABLE texts (
    -- Millisecond and place in it, so that newest first is the order of the keys.
    id      BIGINT           NOT NULL PRIMARY KEY,
    tenant  TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    -- 0 is the title.
    seq     BIGINT           NOT NULL,
    part    BIGINT           NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    version BIGINT           NOT NULL,
    -- Words that we have made ourselves, and ids of owner and session, which have an underscore.
    words   TSVECTOR         NOT NULL,
    UNIQUE (tenant, session, seq, part)
);
CREATE INDEX texts_newest ON texts (tenant, owner, id DESC);
CREATE INDEX texts_index ON texts USING GIN (words);

-- Names sort by their bytes, as in SQLite: a library that changes its rules spoils no index.

-- The journal is the only truth of a session; its key is the fence.
CREATE TABLE journal (
    tenant    TEXT COLLATE "C" NOT NULL,
    session   TEXT COLLATE "C" NOT NULL,
    version   BIGINT           NOT NULL,
    commit_id TEXT COLLATE "C" NOT NULL,
    first_seq BIGINT           NOT NULL,
    last_seq  BIGINT           NOT NULL,
    body      BYTEA            NOT NULL,
    PRIMARY KEY (tenant, session, version)
);

-- Clients ask by `seq`, which grows with `version` but has holes.
CREATE INDEX journal_by_seq ON journal (tenant, session, last_seq);

CREATE TABLE snapshots (
    tenant        TEXT COLLATE "C" NOT NULL,
    session       TEXT COLLATE "C" NOT NULL,
    version       BIGINT           NOT NULL,
    schema        BIGINT           NOT NULL,
    is_compressed BOOLEAN          NOT NULL,
    body          BYTEA            NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Unfinished sessions; a start claims them.
CREATE TABLE active (
    tenant  TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session)
);

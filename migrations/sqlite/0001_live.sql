-- The journal is the only truth of a session; its key is the fence.
CREATE TABLE journal (
    tenant    TEXT   NOT NULL,
    session   TEXT   NOT NULL,
    version   BIGINT NOT NULL,
    commit_id TEXT   NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    body      BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, version)
);

-- Clients ask by `seq`, which grows with `version` but has holes.
CREATE INDEX journal_by_seq ON journal (tenant, session, last_seq);

CREATE TABLE snapshots (
    tenant         TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    version        BIGINT  NOT NULL,
    schema         BIGINT  NOT NULL,
    is_compressed  BOOLEAN NOT NULL,
    body           BLOB    NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Unfinished sessions; a start claims them.
CREATE TABLE active (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
);

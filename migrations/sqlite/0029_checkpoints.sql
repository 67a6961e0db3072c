-- The history of sessions' workspaces: what each step changed. The oldest steps go first.
CREATE TABLE workspace_changes (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    -- Counts the steps of a session, from 1.
    number  BIGINT NOT NULL,
    made_at BIGINT NOT NULL,
    -- Who or what changed files, as JSON.
    cause   TEXT   NOT NULL,
    -- How many entries changed, as JSON.
    counts  TEXT   NOT NULL,
    -- Each path with its entry before and after, as JSON in gzip.
    changes BLOB    NOT NULL,
    PRIMARY KEY (tenant, session, number)
);

-- All entries of a workspace after one of its steps; those after later ones follow from the steps.
CREATE TABLE workspace_states (
    tenant   TEXT   NOT NULL,
    session  TEXT   NOT NULL,
    number   BIGINT NOT NULL,
    made_at  BIGINT NOT NULL,
    -- Each path with its entry, as JSON in gzip.
    entries  BLOB   NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- Contents of files that workspaces have or had: once in a session.
CREATE TABLE workspace_contents (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    -- SHA-256 of the content, in hex.
    hash    TEXT   NOT NULL,
    made_at BIGINT NOT NULL,
    -- Of the file itself.
    bytes   BIGINT NOT NULL,
    -- A byte that says how the rest is stored: 0 = as it is, 1 = in gzip.
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, session, hash)
);

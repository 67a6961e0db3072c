-- What was used, projected from the journals; kept when a session is deleted, because it was paid for.
-- A row is named by its commit, not by its version: a store that came back shorter gives versions again.

-- One row for each attempt of a model request.
CREATE TABLE model_requests (
    tenant                  TEXT    NOT NULL,
    session                 TEXT    NOT NULL,
    commit_id               TEXT    NOT NULL,
    -- The event within the commit.
    place                   BIGINT  NOT NULL,
    at                      BIGINT  NOT NULL,
    -- Whose session it was.
    owner                   TEXT    NOT NULL,
    turn                    BIGINT  NOT NULL,
    iteration               BIGINT  NOT NULL,
    attempt                 BIGINT  NOT NULL,
    -- Whether it became an answer.
    is_answer               BOOLEAN NOT NULL,
    provider                TEXT    NOT NULL,
    model                   TEXT    NOT NULL,
    input_tokens            BIGINT  NOT NULL,
    cached_tokens           BIGINT  NOT NULL,
    cache_write_tokens      BIGINT  NOT NULL,
    cache_write_long_tokens BIGINT  NOT NULL,
    output_tokens           BIGINT  NOT NULL,
    reasoning_tokens        BIGINT  NOT NULL,
    -- Counted by us, because the provider reported nothing.
    is_estimated            BOOLEAN NOT NULL,
    -- Millionths of a US dollar; null = the price was unknown.
    cost                    BIGINT,
    price_version           TEXT,
    -- What the input was for; what is missing to `input_tokens` was never told.
    part_system             BIGINT  NOT NULL,
    part_tools              BIGINT  NOT NULL,
    part_history            BIGINT  NOT NULL,
    part_results            BIGINT  NOT NULL,
    part_message            BIGINT  NOT NULL,
    part_attachments        BIGINT  NOT NULL,
    part_reasoning          BIGINT  NOT NULL,
    PRIMARY KEY (tenant, session, commit_id, place)
);
CREATE INDEX model_requests_at ON model_requests (tenant, at);
CREATE INDEX model_requests_of_owner ON model_requests (tenant, owner, at);

-- `part_tools` by server.
CREATE TABLE request_tools (
    tenant    TEXT   NOT NULL,
    session   TEXT   NOT NULL,
    commit_id TEXT   NOT NULL,
    place     BIGINT NOT NULL,
    server    TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    owner     TEXT   NOT NULL,
    tokens    BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, commit_id, place, server)
);
CREATE INDEX request_tools_at ON request_tools (tenant, at);

-- One row for each call of a tool that has its result.
CREATE TABLE tool_calls (
    tenant        TEXT   NOT NULL,
    session       TEXT   NOT NULL,
    commit_id     TEXT   NOT NULL,
    place         BIGINT NOT NULL,
    at            BIGINT NOT NULL,
    owner         TEXT   NOT NULL,
    server        TEXT   NOT NULL,
    tool          TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    duration_ms   BIGINT NOT NULL,
    -- Estimated.
    result_tokens BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, commit_id, place)
);
CREATE INDEX tool_calls_at ON tool_calls (tenant, at);

-- The version of the journal up to which these tables have what it says.
ALTER TABLE sessions ADD COLUMN usage_version BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sessions_behind ON sessions (tenant, id) WHERE usage_version < version;

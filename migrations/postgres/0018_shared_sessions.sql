-- Sessions that their owners let others read, as they were at that moment.
CREATE TABLE shared_sessions (
    tenant     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    session    TEXT   NOT NULL,
    -- `tenant`: whoever is signed in there; `link`: whoever has the secret.
    audience   TEXT   NOT NULL,
    -- Of the secret; null where no secret opens it.
    hash       TEXT   UNIQUE,
    -- The last event that is shown.
    seq        BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Null = it does not end by itself.
    expires_at BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX shared_sessions_of_session ON shared_sessions (tenant, session);

-- Whether people of the tenant may share by link.
ALTER TABLE tenants ADD COLUMN allows_links BOOLEAN NOT NULL DEFAULT FALSE;

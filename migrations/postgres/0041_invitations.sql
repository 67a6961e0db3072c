-- Links by which new people enter a tenant, each once.
CREATE TABLE invitations (
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    id         TEXT   NOT NULL,
    -- The hash of the secret.
    hash       TEXT   NOT NULL UNIQUE,
    -- The role that the new person gets.
    role       TEXT   NOT NULL,
    -- For whom it is meant, in the words of who invites; may be empty.
    note       TEXT   NOT NULL,
    -- Who invites; null = the operator, on the command line.
    invited_by TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Who came by it, and when; null = nobody yet.
    used_by    TEXT,
    used_at    BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

-- Null = the key is valid until it is revoked.
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;

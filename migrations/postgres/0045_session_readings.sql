-- Permissions to read a session of somebody else for a limited time.
CREATE TABLE session_readings (
    tenant     TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id         TEXT COLLATE "C" NOT NULL,
    session    TEXT COLLATE "C" NOT NULL,
    -- The owner of the session, who is told.
    owner      TEXT COLLATE "C" NOT NULL,
    reader     TEXT COLLATE "C" NOT NULL,
    -- Why, in the words of the reader.
    reason     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- When the owner said that they have seen it; null = not yet.
    seen_at    BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, owner) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, reader) REFERENCES users (tenant, id)
);
CREATE INDEX session_readings_of_owner ON session_readings (tenant, owner, created_at);
CREATE INDEX session_readings_of_reader ON session_readings (tenant, reader, created_at);

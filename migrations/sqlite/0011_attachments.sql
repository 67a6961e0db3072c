-- Contents of attachments: by hash within a tenant, so that nobody learns what others have.
CREATE TABLE blobs (
    tenant  TEXT   NOT NULL,
    id      TEXT   NOT NULL,
    content BLOB   NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Which session holds which content. A content goes with the last session that holds it.
CREATE TABLE attachments (
    tenant     TEXT   NOT NULL,
    session    TEXT   NOT NULL,
    blob       TEXT   NOT NULL,
    -- The facts, as JSON.
    body       TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, blob),
    FOREIGN KEY (tenant, blob) REFERENCES blobs (tenant, id)
);
CREATE INDEX attachments_of_blob ON attachments (tenant, blob);

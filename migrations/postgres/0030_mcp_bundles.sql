-- Bundles of MCP servers (`.mcpb`) that admins of a tenant uploaded.
CREATE TABLE mcp_bundles (
    tenant     TEXT   NOT NULL,
    -- SHA-256 of the file, in hex.
    sha256     TEXT   NOT NULL,
    -- What its manifest says, as it was read (JSON).
    facts      TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    -- When somebody last looked at it or used it: what no server uses is removed some time after.
    used_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant, sha256)
);

-- The files, in parts of 1 MiB.
CREATE TABLE mcp_bundle_parts (
    tenant  TEXT   NOT NULL,
    sha256  TEXT   NOT NULL,
    -- From 0.
    part    BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (tenant, sha256, part)
);

-- The resources and prompts that servers offered, under the hash of their tools. Content, so no tenant.
CREATE TABLE server_offers (
    hash  TEXT NOT NULL PRIMARY KEY,
    -- A JSON object.
    offer TEXT NOT NULL
);

-- Each definition of a tool that a tenant was offered, when it was first seen after another.
CREATE TABLE tool_versions (
    tenant     TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    tool       TEXT   NOT NULL,
    first_seen BIGINT NOT NULL,
    hash       TEXT   NOT NULL,
    -- A JSON object.
    definition TEXT   NOT NULL,
    PRIMARY KEY (tenant, server, tool, first_seen)
);

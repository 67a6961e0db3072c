-- The resources and prompts that servers offered, under the hash of their tools. Content, so no tenant.
CREATE TABLE server_offers (
    hash  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- A JSON object.
    offer TEXT COLLATE "C" NOT NULL
);

-- Each definition of a tool that a tenant was offered, when it was first seen after another.
CREATE TABLE tool_versions (
    tenant     TEXT COLLATE "C"   NOT NULL,
    server     TEXT COLLATE "C"   NOT NULL,
    tool       TEXT COLLATE "C"   NOT NULL,
    first_seen BIGINT NOT NULL,
    hash       TEXT COLLATE "C"   NOT NULL,
    -- A JSON object.
    definition TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, server, tool, first_seen)
);

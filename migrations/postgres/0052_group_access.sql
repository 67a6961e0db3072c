-- The models and MCP servers that groups name. What at least one group names is open only to members of those
-- groups.
CREATE TABLE group_access (
    tenant   TEXT COLLATE "C" NOT NULL,
    group_id TEXT COLLATE "C" NOT NULL,
    -- `model` or `server`.
    kind     TEXT COLLATE "C" NOT NULL,
    -- A provider, a model as `provider/model`, or a server.
    name     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, group_id, kind, name),
    FOREIGN KEY (tenant, group_id) REFERENCES user_groups (tenant, id)
);
CREATE INDEX group_access_of_name ON group_access (tenant, kind, name);

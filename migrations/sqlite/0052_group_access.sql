-- The models and MCP servers that groups name. What at least one group names is open only to members of those
-- groups.
CREATE TABLE group_access (
    tenant   TEXT NOT NULL,
    group_id TEXT NOT NULL,
    -- `model` or `server`.
    kind     TEXT NOT NULL,
    -- A provider, a model as `provider/model`, or a server.
    name     TEXT NOT NULL,
    PRIMARY KEY (tenant, group_id, kind, name),
    FOREIGN KEY (tenant, group_id) REFERENCES user_groups (tenant, id)
);
CREATE INDEX group_access_of_name ON group_access (tenant, kind, name);

-- What a session's workspace is called, for the janitor of sandboxes.
ALTER TABLE sessions ADD COLUMN sandbox TEXT COLLATE "C";

-- `scope` is `installation` or the id of a tenant. Keys lie sealed.
CREATE TABLE providers (
    scope      TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    base_url   TEXT COLLATE "C",
    api        TEXT COLLATE "C",
    -- A JSON list of names.
    models     TEXT COLLATE "C" NOT NULL,
    sealed_key TEXT COLLATE "C",
    updated_at BIGINT           NOT NULL,
    PRIMARY KEY (scope, id)
);

CREATE TABLE secrets (
    scope      TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    sealed     TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT           NOT NULL,
    PRIMARY KEY (scope, name)
);

CREATE TABLE mcp_servers (
    tenant     TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name       TEXT COLLATE "C" NOT NULL,
    -- JSON, as `/api/mcp` spells it.
    config     TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT           NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- What servers offered, by a hash that its reader chose. Content, so no tenant.
CREATE TABLE tool_definitions (
    hash  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- A JSON list of tools.
    tools TEXT COLLATE "C" NOT NULL
);

-- Each change of what a server offered a tenant; an unchanged list adds nothing.
CREATE TABLE tool_definition_history (
    tenant     TEXT COLLATE "C" NOT NULL,
    server     TEXT COLLATE "C" NOT NULL,
    first_seen BIGINT           NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, server, first_seen)
);

CREATE TABLE mcp_tool_settings (
    tenant     TEXT COLLATE "C" NOT NULL,
    server     TEXT COLLATE "C" NOT NULL,
    tool       TEXT COLLATE "C" NOT NULL,
    is_enabled BOOLEAN          NOT NULL,
    -- `ask`, `allow` or `deny`.
    effect     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, server, tool)
);

-- What a session's workspace is called, for the janitor of sandboxes.
ALTER TABLE sessions ADD COLUMN sandbox TEXT;

-- Sessions from before: the first commit of a journal says it.
UPDATE sessions SET sandbox = (
    SELECT json_extract(CAST(j.body AS TEXT), '$.events[0].sandbox') FROM journal j
    WHERE j.tenant = sessions.tenant AND j.session = sessions.id AND j.version = 1
        AND json_valid(CAST(j.body AS TEXT))
);

-- `scope` is `installation` or the id of a tenant. Keys lie sealed.
CREATE TABLE providers (
    scope      TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    base_url   TEXT,
    api        TEXT,
    -- A JSON list of names.
    models     TEXT   NOT NULL,
    sealed_key TEXT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, id)
);

CREATE TABLE secrets (
    scope      TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    sealed     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (scope, name)
);

CREATE TABLE mcp_servers (
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    name       TEXT   NOT NULL,
    -- JSON, as `/api/mcp` spells it.
    config     TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- What servers offered, by a hash that its reader chose. Content, so no tenant.
CREATE TABLE tool_definitions (
    hash  TEXT NOT NULL PRIMARY KEY,
    -- A JSON list of tools.
    tools TEXT NOT NULL
);

-- Each change of what a server offered a tenant; an unchanged list adds nothing.
CREATE TABLE tool_definition_history (
    tenant     TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    first_seen BIGINT NOT NULL,
    hash       TEXT   NOT NULL,
    PRIMARY KEY (tenant, server, first_seen)
);

CREATE TABLE mcp_tool_settings (
    tenant     TEXT    NOT NULL,
    server     TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    -- `ask`, `allow` or `deny`.
    effect     TEXT    NOT NULL,
    PRIMARY KEY (tenant, server, tool)
);

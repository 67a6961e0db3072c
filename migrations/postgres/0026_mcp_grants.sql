-- What people allowed at remote MCP servers (OAuth), each for themselves.
CREATE TABLE mcp_grants (
    -- Whose entry it is: a tenant, or the installation.
    scope        TEXT   NOT NULL,
    server       TEXT   NOT NULL,
    tenant       TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    -- Tokens and whose they are, sealed; without them the person is not connected.
    sealed       TEXT,
    -- Scopes that were allowed, separated by spaces.
    scopes       TEXT   NOT NULL,
    connected_at BIGINT,
    -- Counts the tokens, so that each refresh token is used once.
    version      BIGINT NOT NULL,
    -- Who renews the tokens of this version, and until when nobody else may.
    lease        TEXT,
    lease_until  BIGINT,
    -- Since when the server wants the person, and what for, as JSON.
    needed_since BIGINT,
    challenge    TEXT,
    PRIMARY KEY (scope, server, tenant, user_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX mcp_grants_of_user ON mcp_grants (tenant, user_id);

-- People who are at an authorisation server: each answer counts once, at any gateway.
CREATE TABLE mcp_authorizations (
    -- Hash of the state.
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    scope      TEXT   NOT NULL,
    server     TEXT   NOT NULL,
    -- What has to be known at the answer, sealed.
    sealed     TEXT   NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX mcp_authorizations_ended ON mcp_authorizations (expires_at);

-- Registrations of ours at authorisation servers.
CREATE TABLE mcp_clients (
    scope      TEXT   NOT NULL,
    -- Hash of issuer, endpoints and the address that people are sent back to.
    hash       TEXT   NOT NULL,
    sealed     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (scope, hash)
);

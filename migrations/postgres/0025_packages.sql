-- Installations of the packages of MCP servers; one of each server.
CREATE TABLE package_installations (
    -- A tenant, or `installation` for the servers of all tenants.
    scope         TEXT   NOT NULL,
    server        TEXT   NOT NULL,
    -- What was asked for, how far it is, and what came of it (JSON).
    body          TEXT   NOT NULL,
    -- Which packages were taken, with their hashes: by it the same is installed again. Null = not known yet.
    pins          TEXT,
    -- The same of a newer version that nobody uses yet.
    next_pins     TEXT,
    -- Counts the changes: who changes it has read the one before.
    revision      BIGINT NOT NULL,
    -- The gateway that installs, and until when the others leave it to it.
    lease_gateway TEXT,
    lease_until   BIGINT NOT NULL,
    PRIMARY KEY (scope, server)
);

-- What was installed, each at one engine or on one machine.
CREATE TABLE package_volumes (
    -- The sandbox in whose workspace it is.
    sandbox  TEXT    NOT NULL PRIMARY KEY,
    -- What keeps that workspace.
    engine   TEXT    NOT NULL,
    scope    TEXT    NOT NULL,
    server   TEXT    NOT NULL,
    -- The hash of all that was installed; empty while it is.
    content  TEXT    NOT NULL,
    -- The gateway that made it.
    gateway  TEXT    NOT NULL
);
CREATE INDEX package_volumes_of_server ON package_volumes (scope, server);

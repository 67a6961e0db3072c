-- Assistants: what sessions are started with. Each change is a version of its own.
CREATE TABLE assistants (
    tenant      TEXT   NOT NULL REFERENCES tenants (id),
    id          TEXT   NOT NULL,
    -- The person who made it for themselves; empty = it is the team's.
    owner       TEXT   NOT NULL,
    -- Those of the newest version, for lists.
    name        TEXT   NOT NULL,
    description TEXT   NOT NULL,
    -- The newest version.
    version     BIGINT NOT NULL,
    created_by  TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_by  TEXT   NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Every version, which is never changed.
CREATE TABLE assistant_versions (
    tenant        TEXT   NOT NULL,
    assistant     TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    -- All of it, as JSON.
    definition    TEXT   NOT NULL,
    made_by       TEXT   NOT NULL,
    made_at       BIGINT NOT NULL,
    -- The earlier version that this one repeats; null = none.
    restored_from BIGINT,
    PRIMARY KEY (tenant, assistant, version),
    FOREIGN KEY (tenant, assistant) REFERENCES assistants (tenant, id)
);

-- Who may do what with an assistant.
CREATE TABLE assistant_access (
    tenant    TEXT NOT NULL,
    assistant TEXT NOT NULL,
    -- Empty = everybody of the tenant.
    person    TEXT NOT NULL,
    -- see, use, edit or own; each includes those before it.
    level     TEXT NOT NULL,
    PRIMARY KEY (tenant, assistant, person),
    FOREIGN KEY (tenant, assistant) REFERENCES assistants (tenant, id)
);
CREATE INDEX assistant_access_of_person ON assistant_access (tenant, person);

-- The files of all versions.
CREATE TABLE assistant_files (
    tenant    TEXT   NOT NULL,
    assistant TEXT   NOT NULL,
    blob      TEXT   NOT NULL,
    -- Name, kind and size, as JSON.
    body      TEXT   NOT NULL,
    bytes     BIGINT NOT NULL,
    PRIMARY KEY (tenant, assistant, blob),
    FOREIGN KEY (tenant, assistant) REFERENCES assistants (tenant, id),
    FOREIGN KEY (tenant, blob) REFERENCES blobs (tenant, id)
);
CREATE INDEX assistant_files_of_blob ON assistant_files (tenant, blob);

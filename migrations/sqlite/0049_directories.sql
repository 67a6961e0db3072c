-- Tokens by which a company's directory manages people and groups of a tenant (SCIM).
CREATE TABLE scim_tokens (
    tenant       TEXT    NOT NULL REFERENCES tenants (id),
    id           TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    hash         TEXT    NOT NULL UNIQUE,
    -- The role of people whom the directory makes.
    role         TEXT    NOT NULL,
    -- True if a person whom the directory deletes is deleted here for good.
    deletes      BOOLEAN NOT NULL,
    -- Null = the operator made it.
    created_by   TEXT,
    created_at   BIGINT  NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (tenant, id)
);

-- The people whom the directory of their tenant made, or to whom it was linked.
CREATE TABLE directory_people (
    tenant        TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    -- The name in the directory.
    user_name     TEXT    NOT NULL,
    -- The name as names are compared.
    user_name_key TEXT    NOT NULL,
    -- The directory's own id of the person; null = it gave none.
    external_id   TEXT,
    -- What else the directory says of them, as JSON.
    profile       TEXT    NOT NULL,
    -- True if the person was here before the directory.
    is_linked     BOOLEAN NOT NULL,
    -- True if it is the directory that keeps the person out.
    is_disabled   BOOLEAN NOT NULL,
    -- When the directory deleted the person, and sees them no longer.
    removed_at    BIGINT,
    changed_at    BIGINT  NOT NULL,
    PRIMARY KEY (tenant, user_id),
    UNIQUE (tenant, user_name_key),
    UNIQUE (tenant, external_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- The groups that the directory of their tenant made, or to which it was linked.
CREATE TABLE directory_groups (
    tenant      TEXT    NOT NULL,
    group_id    TEXT    NOT NULL,
    external_id TEXT,
    is_linked   BOOLEAN NOT NULL,
    changed_at  BIGINT  NOT NULL,
    PRIMARY KEY (tenant, group_id),
    FOREIGN KEY (tenant, group_id) REFERENCES user_groups (tenant, id)
);

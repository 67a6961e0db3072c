-- Roles that a tenant made for itself: named sets of rights.
CREATE TABLE custom_roles (
    tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id          TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    -- The name as names are compared.
    name_key    TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    -- The names of the rights, separated by spaces.
    rights      TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name_key)
);

-- The people who were given a custom role themselves.
CREATE TABLE role_holders (
    tenant  TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    role_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, user_id, role_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, role_id) REFERENCES custom_roles (tenant, id)
);
CREATE INDEX role_holders_of_role ON role_holders (tenant, role_id);

-- Groups of people of a tenant.
CREATE TABLE user_groups (
    tenant      TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id          TEXT COLLATE "C" NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    name_key    TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name_key)
);

CREATE TABLE group_members (
    tenant   TEXT COLLATE "C" NOT NULL,
    user_id  TEXT COLLATE "C" NOT NULL,
    group_id TEXT COLLATE "C" NOT NULL,
    -- The issuer whose groups made the person a member, at their last sign-in; null = somebody added them here.
    issuer   TEXT COLLATE "C",
    PRIMARY KEY (tenant, user_id, group_id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id),
    FOREIGN KEY (tenant, group_id) REFERENCES user_groups (tenant, id)
);
CREATE INDEX group_members_of_group ON group_members (tenant, group_id);

-- The custom roles that the members of a group have.
CREATE TABLE group_roles (
    tenant   TEXT COLLATE "C" NOT NULL,
    group_id TEXT COLLATE "C" NOT NULL,
    role_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, group_id, role_id),
    FOREIGN KEY (tenant, group_id) REFERENCES user_groups (tenant, id),
    FOREIGN KEY (tenant, role_id) REFERENCES custom_roles (tenant, id)
);
CREATE INDEX group_roles_of_role ON group_roles (tenant, role_id);

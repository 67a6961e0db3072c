-- Times are milliseconds since 1970. Every table but `tenants` carries the tenant.
CREATE TABLE tenants (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at BIGINT           NOT NULL
);

CREATE TABLE users (
    tenant                TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id                    TEXT COLLATE "C" NOT NULL,
    name                  TEXT COLLATE "C" NOT NULL,
    -- Lowercase: `Ann` and `ann` are one person.
    name_key              TEXT COLLATE "C" NOT NULL,
    role                  TEXT COLLATE "C" NOT NULL,
    is_installation_admin BOOLEAN          NOT NULL,
    is_disabled           BOOLEAN          NOT NULL,
    -- The person of `auth.mode none`, until the setup gives them a name.
    is_local              BOOLEAN          NOT NULL,
    password_hash         TEXT COLLATE "C",
    created_at            BIGINT           NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name_key)
);

CREATE TABLE api_keys (
    tenant       TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at   BIGINT           NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Browsers that are signed in.
CREATE TABLE web_sessions (
    tenant       TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at   BIGINT           NOT NULL,
    last_seen_at BIGINT           NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX web_sessions_of_user ON web_sessions (tenant, user_id);

-- Secrets that open once: the setup (no user) and sign-in links.
CREATE TABLE links (
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant     TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    user_id    TEXT COLLATE "C",
    expires_at BIGINT           NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Projected from the journals, for lists.
CREATE TABLE sessions (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL,
    title      TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL,
    waiting    BIGINT           NOT NULL,
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,
    version    BIGINT           NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_newest ON sessions (tenant, owner, updated_at DESC, id DESC);

-- Times are milliseconds since 1970. Every table but `tenants` carries the tenant.
CREATE TABLE tenants (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE users (
    tenant                TEXT    NOT NULL REFERENCES tenants (id),
    id                    TEXT    NOT NULL,
    name                  TEXT    NOT NULL,
    -- Lowercase: `Ann` and `ann` are one person.
    name_key              TEXT    NOT NULL,
    role                  TEXT    NOT NULL,
    is_installation_admin BOOLEAN NOT NULL,
    is_disabled           BOOLEAN NOT NULL,
    -- The person of `auth.mode none`, until the setup gives them a name.
    is_local              BOOLEAN NOT NULL,
    password_hash         TEXT,
    created_at            BIGINT  NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, name_key)
);

CREATE TABLE api_keys (
    tenant       TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    hash         TEXT   NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Browsers that are signed in.
CREATE TABLE web_sessions (
    tenant       TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    hash         TEXT   NOT NULL UNIQUE,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX web_sessions_of_user ON web_sessions (tenant, user_id);

-- Secrets that open once: the setup (no user) and sign-in links.
CREATE TABLE links (
    hash       TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL REFERENCES tenants (id),
    user_id    TEXT,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);

-- Projected from the journals, for lists.
CREATE TABLE sessions (
    tenant     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    owner      TEXT   NOT NULL,
    title      TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    waiting    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_newest ON sessions (tenant, owner, updated_at DESC, id DESC);

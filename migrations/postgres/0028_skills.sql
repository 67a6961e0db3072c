-- Skills: folders with a `SKILL.md` that tenants and their people keep for their sessions.
CREATE TABLE skills (
    tenant      TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    -- Whose sessions it is for; empty = those of everybody in the tenant.
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    -- SHA-256 of its files, in hex.
    hash        TEXT    NOT NULL,
    -- What its front matter says beside name and description, and the list of its files, as JSON.
    facts       TEXT    NOT NULL,
    is_enabled  BOOLEAN NOT NULL,
    -- Counts its replacements, from 1.
    version     BIGINT  NOT NULL,
    created_by  TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_by  TEXT    NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX skills_of_owner ON skills (tenant, owner, name);

-- The files, as an archive: once in a tenant, however many skills have them.
CREATE TABLE skill_bundles (
    tenant  TEXT NOT NULL,
    hash    TEXT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (tenant, hash)
);

-- Skills that a person switched off for themselves.
CREATE TABLE skill_switches (
    tenant TEXT NOT NULL,
    person TEXT NOT NULL,
    skill  TEXT NOT NULL,
    PRIMARY KEY (tenant, person, skill)
);

-- The accounts at OpenID providers by which people sign in.
CREATE TABLE identities (
    tenant       TEXT COLLATE "C" NOT NULL,
    -- The issuer's address.
    issuer       TEXT COLLATE "C" NOT NULL,
    -- The account's id at the issuer, which never changes.
    subject      TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT           NOT NULL,
    -- When the person last signed in by it.
    last_used_at BIGINT           NOT NULL,
    PRIMARY KEY (tenant, issuer, subject),
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
);
CREATE INDEX identities_of_user ON identities (tenant, user_id);

-- Sign-ins that a browser began at an OpenID provider. Each works once.
CREATE TABLE oidc_flows (
    -- The hash of the `state`.
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- The hash of the browser's cookie.
    browser    TEXT COLLATE "C" NOT NULL,
    -- The provider's name in the settings.
    provider   TEXT COLLATE "C" NOT NULL,
    -- The path of the page to which the person returns.
    return_to  TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT           NOT NULL
);
CREATE INDEX oidc_flows_by_expiry ON oidc_flows (expires_at);

-- Logout tokens that were used, each of which works once.
CREATE TABLE oidc_logouts (
    -- The hash of issuer and `jti`.
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    expires_at BIGINT           NOT NULL
);
CREATE INDEX oidc_logouts_by_expiry ON oidc_logouts (expires_at);

-- The account by which a browser signed in, and the session at its issuer; null = by a password or a link.
ALTER TABLE web_sessions ADD COLUMN issuer TEXT COLLATE "C";
ALTER TABLE web_sessions ADD COLUMN subject TEXT COLLATE "C";
-- Null = the issuer named no session.
ALTER TABLE web_sessions ADD COLUMN sid TEXT COLLATE "C";
CREATE INDEX web_sessions_of_identity ON web_sessions (issuer, subject);
CREATE INDEX web_sessions_of_sid ON web_sessions (issuer, sid);

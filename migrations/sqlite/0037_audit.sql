-- The audit: a chain of records for each tenant and one for the installation, with the signatures over it.
-- Everything here is written once. `tenant` is a scope: `installation`, or the id of a tenant.

CREATE TABLE audit (
    tenant  TEXT   NOT NULL,
    -- Counts the records of the chain, from 1.
    n       BIGINT NOT NULL,
    -- The record itself, as canonical JSON (RFC 8785). It names the link of the record before.
    body    TEXT   NOT NULL,
    -- SHA-256 of `body`, in hex.
    link    TEXT   NOT NULL,
    -- Members of `body`, to search by: when, what was done, by whom (empty = by nobody who has an id), and to
    -- what.
    at      BIGINT NOT NULL,
    act     TEXT   NOT NULL,
    person  TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    PRIMARY KEY (tenant, n)
);
CREATE INDEX audit_at ON audit (tenant, at, n);
CREATE INDEX audit_of_person ON audit (tenant, person, at);

-- Signatures over the newest link of a chain.
CREATE TABLE audit_seals (
    tenant    TEXT   NOT NULL,
    n         BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    link      TEXT   NOT NULL,
    -- The public key (Ed25519) and the signature, in base64url.
    key       TEXT   NOT NULL,
    signature TEXT   NOT NULL,
    PRIMARY KEY (tenant, n)
);

-- What each anchor outside of the host was given, and what it answered.
CREATE TABLE audit_anchors (
    tenant   TEXT   NOT NULL,
    n        BIGINT NOT NULL,
    -- `webhook`, `file`, `mail` or `timestamp`.
    anchor   TEXT   NOT NULL,
    -- Null = not done yet.
    done_at  BIGINT,
    attempts BIGINT NOT NULL,
    due_at   BIGINT NOT NULL,
    -- The reason why the last attempt failed.
    error    TEXT,
    -- What proves it, in base64url: the token of a time-stamp service.
    receipt  TEXT,
    PRIMARY KEY (tenant, n, anchor)
);
CREATE INDEX audit_anchors_due ON audit_anchors (due_at) WHERE done_at IS NULL;

-- The last record that retention may remove from a chain. A record of the chain says so first.
CREATE TABLE audit_cuts (
    tenant  TEXT   NOT NULL PRIMARY KEY,
    through BIGINT NOT NULL
);

-- The newest version of each session's journal that a record of the chain names, and when it was recorded.
CREATE TABLE audit_sessions (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    version BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, session)
);

-- How far the records of a chain were given to a receiver outside, by the name of the receiver.
CREATE TABLE audit_cursors (
    tenant   TEXT   NOT NULL,
    receiver TEXT   NOT NULL,
    place    TEXT   NOT NULL,
    PRIMARY KEY (tenant, receiver)
);

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_cuts WHERE tenant = OLD.tenant AND through >= OLD.n) BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_seals_stay BEFORE UPDATE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_seals_are_kept BEFORE DELETE ON audit_seals
WHEN NOT EXISTS (SELECT 1 FROM audit_cuts WHERE tenant = OLD.tenant AND through >= OLD.n) BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- What was decided in sessions, to search by. Projected from the journals, which prove it.
CREATE TABLE decisions (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    version BIGINT NOT NULL,
    -- Counts the records of one commit, from 0.
    place   BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    owner   TEXT   NOT NULL,
    act     TEXT   NOT NULL,
    -- Who decided; empty = no person.
    person  TEXT   NOT NULL,
    server  TEXT   NOT NULL,
    tool    TEXT   NOT NULL,
    verdict TEXT   NOT NULL,
    -- The record, as canonical JSON.
    body    TEXT   NOT NULL,
    -- Whether the receiver outside has it, or there was none.
    is_posted BOOLEAN NOT NULL,
    is_logged BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, session, version, place)
);
CREATE INDEX decisions_to_post ON decisions (tenant, at) WHERE NOT is_posted;
CREATE INDEX decisions_to_log ON decisions (tenant, at) WHERE NOT is_logged;
CREATE INDEX decisions_at ON decisions (tenant, at);
CREATE INDEX decisions_of_person ON decisions (tenant, person, at);

-- The journals are read once more, for what was decided in them.
UPDATE sessions SET usage_version = 0;

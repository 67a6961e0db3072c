-- How often a record was changed that is changed as a whole, for ETag and If-Match.
CREATE TABLE record_versions (
    -- The tenant, or `installation`.
    scope   TEXT    NOT NULL,
    -- Its kind, and its name in the scope.
    record  TEXT    NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (scope, record)
) WITHOUT ROWID;

-- Requests that may be sent again, with what was answered.
CREATE TABLE idempotency_keys (
    tenant      TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    -- SHA-256 of the request: method, address and body.
    fingerprint TEXT    NOT NULL,
    begun_at    INTEGER NOT NULL,
    -- Who runs it until then; NULL once it is answered.
    runner      TEXT,
    until       INTEGER,
    -- The sealed answer.
    answer      TEXT,
    PRIMARY KEY (tenant, owner, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (begun_at);

-- The calls that a session waits for: the model request that asked for them, and the names of their
-- tools (a JSON list). Null while nothing waits, or where an earlier release wrote the row.
ALTER TABLE sessions ADD COLUMN batch_turn      BIGINT;
ALTER TABLE sessions ADD COLUMN batch_iteration BIGINT;
ALTER TABLE sessions ADD COLUMN batch_tools     TEXT;

-- Where mail goes, and since when its person wants some; null = nobody gets any.
ALTER TABLE users ADD COLUMN email      TEXT;
ALTER TABLE users ADD COLUMN mail_since BIGINT;

-- Addresses that tenants want told when calls wait.
CREATE TABLE webhooks (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    -- What its messages are signed with, sealed.
    secret        TEXT    NOT NULL,
    -- Whether it is also told when calls wait no longer.
    tells_decided BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    -- The last attempt: when, the status of the answer, and why it failed; null = there was none.
    last_at       BIGINT,
    last_status   BIGINT,
    last_error    TEXT,
    -- Since when every attempt has failed; null = the last one did not.
    failing_since BIGINT,
    -- Since when it is told nothing, because it failed for too long.
    disabled_at   BIGINT,
    PRIMARY KEY (tenant, id)
);

-- The outbox: what has to be told, each of a batch once to each target.
CREATE TABLE notifications (
    tenant        TEXT    NOT NULL,
    -- A webhook, or the person that gets a mail.
    target        TEXT    NOT NULL,
    -- `waiting` or `decided`.
    event         TEXT    NOT NULL,
    -- The batch: the calls of one model request.
    session       TEXT    NOT NULL,
    turn          BIGINT  NOT NULL,
    iteration     BIGINT  NOT NULL,
    is_mail       BOOLEAN NOT NULL,
    owner         TEXT    NOT NULL,
    title         TEXT    NOT NULL,
    tools         TEXT    NOT NULL,
    calls         BIGINT  NOT NULL,
    waiting_since BIGINT  NOT NULL,
    -- When what it tells happened.
    at            BIGINT  NOT NULL,
    -- Of `waiting`: when the batch was seen to wait no longer; null = it waits.
    decided_at    BIGINT,
    -- When it is tried next; whoever tries it holds it until `lease_until`.
    due_at        BIGINT  NOT NULL,
    lease_until   BIGINT  NOT NULL DEFAULT 0,
    attempts      BIGINT  NOT NULL DEFAULT 0,
    -- Null = not yet.
    done_at       BIGINT,
    PRIMARY KEY (tenant, target, event, session, turn, iteration)
);
-- What has to be told, by target.
CREATE INDEX notifications_due ON notifications (tenant, target, due_at) WHERE done_at IS NULL;
-- Batches that waited when they were last looked at.
CREATE INDEX notifications_open ON notifications (tenant, session)
    WHERE event = 'waiting' AND decided_at IS NULL;
CREATE INDEX notifications_of_session ON notifications (tenant, session);

-- What people and admins decided about calls beforehand. The rules of one session are in its journal.
CREATE TABLE rules (
    tenant     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    -- Whose sessions it is for; empty = those of everybody in the tenant.
    owner      TEXT   NOT NULL,
    -- The rule itself, as JSON.
    body       TEXT   NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX rules_of_owner ON rules (tenant, owner);

-- The rule that decided the call, if one did: its rows are how often it was used, and when last.
ALTER TABLE tool_calls ADD COLUMN rule TEXT;
CREATE INDEX tool_calls_of_rule ON tool_calls (tenant, rule, at) WHERE rule IS NOT NULL;

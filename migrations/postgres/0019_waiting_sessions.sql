-- When the oldest call began to wait that waits for a decision; null while none does.
ALTER TABLE sessions ADD COLUMN waiting_since BIGINT;
-- When a person last decided a call of it; null where nobody has, or an earlier release wrote the row.
ALTER TABLE sessions ADD COLUMN decided_at    BIGINT;

CREATE INDEX sessions_waiting ON sessions (tenant, owner) WHERE waiting > 0;
CREATE INDEX sessions_decided ON sessions (tenant, owner, decided_at) WHERE decided_at IS NOT NULL;

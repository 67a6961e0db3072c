-- Calls that wait for the yes of others than the session's owner: how many of them a person may decide
-- who has at least that role. Each number holds those before it.
ALTER TABLE sessions ADD COLUMN asks_members BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN asks_admins  BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN asks_owners  BIGINT NOT NULL DEFAULT 0;

CREATE INDEX sessions_asking ON sessions (tenant, owner) WHERE asks_owners > 0;

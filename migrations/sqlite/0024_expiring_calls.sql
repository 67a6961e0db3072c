-- When the first of the calls that a session waits for is rejected unless somebody decides it; null = they
-- wait until somebody does, or none waits.
ALTER TABLE sessions ADD COLUMN expires_at BIGINT;
CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL;

-- The same, as the batch is told.
ALTER TABLE notifications ADD COLUMN expires_at BIGINT;
